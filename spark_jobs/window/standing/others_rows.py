"""Rows of silver that another writer changed: said once a day for each table, operation and writer.

In:  a table, its record of control and the state of its log now.
Out: a line in apply's log, and a row of control/actions, which the table's page shows. The table
     goes on: such rows may be meant (a column of its owner's). verify says whether they differ.
"""

from __future__ import annotations

import hashlib
import sys
from datetime import UTC, datetime

from spark_jobs.window.application import Application
from tidegate import tables
from tidegate.actions_table import Act
from tidegate.errors import TidegateError
from tidegate.lake.audit import Author, PersonAction, observed
from tidegate.lake.others_changes import ForeignCommit, changes_by_others
from tidegate.standing.silver import Said, Shown

_PLACE = "silver"


def note_others(app: Application, name: str, said: Said, shown: Shown) -> None:
    """The table goes on: its log is control's, perhaps further on.

    Raises LakeUnavailable, LakeRefused: of silver's log. A row that can't be written is only a line
    of the log.
    """
    if said.never_filled:
        return
    log = app.lake.log(tables.silver_path(*app.names.pair(name)))
    app_id = tables.app_id(app.pipeline.pipeline, name)
    for change in changes_by_others(log, app_id, said.version, shown.version):
        _note(app, name, shown.table_id, change)


def _note(app: Application, name: str, table_id: str, change: ForeignCommit) -> None:
    what = f"{change.operation or 'a commit'}, version {change.version}"
    detail = f"{what}: `tidegate verify` says whether rows differ from the source, `verify --repair` mends them"
    writer = Author(change.engine or "an unknown writer", _PLACE)
    day = datetime.now(UTC).date()
    key = "\0".join((app.pipeline.pipeline, name, table_id, change.operation, change.engine, str(day)))
    action = PersonAction(
        app.pipeline.pipeline,
        Act.WRITE,
        (name,),
        writer,
        id=hashlib.md5(key.encode(), usedforsecurity=False).hexdigest(),
    )
    try:
        is_new = observed(app.lake, action, detail)
    except (TidegateError, OSError) as error:
        print(f"tidegate: warning: control/actions doesn't say it: {error}", file=sys.stderr, flush=True)
        is_new = True
    if is_new:
        line = f"{name}: {writer.user} changed rows of its silver ({detail})"
        print(f"tidegate: warning: {line}", file=sys.stderr, flush=True)
