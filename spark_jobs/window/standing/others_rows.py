"""Report rows of silver that another writer changed, and rewrites (OPTIMIZE) that perhaps kept not
all rows: once a day for each table, operation and writer.

In:  a table, its record of control and the state of its log now.
Out: a line in apply's log, and a row of control/actions, which the table's page shows. The table
     goes on: such rows may be meant (a column of its owner's). verify says whether they differ.

A nightly job may change rows of all tables at once. Therefore all notes are recorded in one commit, before
the cut that names newer versions. A killed window notes them again; they are recorded once.
"""

from __future__ import annotations

import hashlib
import logging
import re
import threading
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Final

from spark_jobs.window.application import Application
from tidegate import tables
from tidegate.errors import TidegateError
from tidegate.lake.people.audit import Author, PersonAction, observed
from tidegate.lake.silver.others_changes import ForeignCommit, changes_by_others
from tidegate.limits import OTHERS_SAID_TABLES_MAX
from tidegate.standing.silver import Said, Shown
from tidegate.tables.actions_table import Act

log = logging.getLogger(__name__)

_PLACE: Final = "silver"
_UNCOUNTED: Final = ", says that no row changed, and nobody could count its files' rows"
# Removed from a writer's name: a version, or the name of a run, doesn't make it another writer.
_NUMBERS: Final = re.compile(r"[0-9a-f]{8,}|[0-9]+")


@dataclass(slots=True)
class _Noted:
    """ids: of all acts noted on a day. waiting: of these not told yet, with their details."""

    day: date | None = None
    ids: set[str] = field(default_factory=set)
    waiting: list[tuple[PersonAction, str]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, day: date, action: PersonAction, detail: str) -> None:
        with self.lock:
            if day != self.day:
                self.day, self.ids = day, set()
            if action.id not in self.ids:
                self.ids.add(action.id)
                self.waiting.append((action, detail))

    def taken(self) -> list[tuple[PersonAction, str]]:
        with self.lock:
            waiting, self.waiting = self.waiting, []
        return waiting


def note_others(app: Application, name: str, said: Said, shown: Shown) -> None:
    """Note the acts of other writers. The table goes on: its log is the one that control knows,
    perhaps with newer versions. Many threads may call this.

    Raises LakeUnavailable, LakeRefused: of silver's log.
    """
    if said.never_filled:
        return
    log = app.lake.log(tables.silver_path(*app.names.pair(name)))
    app_id, day = tables.app_id(app.pipeline.pipeline, name), datetime.now(UTC).date()
    for change in changes_by_others(log, app_id, said.version, shown.version):
        app.memory(_Noted).take(day, *_act(app, name, shown.table_id, change, day))
    rewrite = shown.rewrite
    if rewrite is not None and not rewrite.is_known:
        change, why = ForeignCommit(rewrite.version, rewrite.operation, rewrite.engine), _UNCOUNTED
        app.memory(_Noted).take(day, *_act(app, name, shown.table_id, change, day, why))


def _act(
    app: Application, name: str, table_id: str, change: ForeignCommit, day: date, why: str = ""
) -> tuple[PersonAction, str]:
    what = f"{change.operation or 'a commit'}, version {change.version}{why}"
    detail = f"{what}: `tidegate verify` says whether rows differ from the source, `verify --repair` mends them"
    writer = Author(change.engine or "an unknown writer", _PLACE)
    engine = _NUMBERS.sub("", change.engine.lower())
    key = "\0".join((app.pipeline.pipeline, name, table_id, change.operation, engine, str(day)))
    act_id = hashlib.md5(key.encode(errors="replace"), usedforsecurity=False).hexdigest()
    return PersonAction(app.pipeline.pipeline, Act.WRITE, (name,), writer, id=act_id), detail


def tell_others(app: Application) -> None:
    """Record all notes since the last call. If a row can't be written, only the log has a line."""
    noted = app.memory(_Noted).taken()
    if not noted:
        return
    try:
        new = observed(app.lake, noted)
    except (TidegateError, OSError) as error:
        log.warning("control/actions doesn't have it: %s", error)
        new = {action.id for action, _ in noted}
    acts = [(action, detail) for action, detail in noted if action.id in new]
    for action, detail in acts[:OTHERS_SAID_TABLES_MAX]:
        line = f"{action.tables[0]}: {action.author.user} changed rows of its silver ({detail})"
        log.warning("%s", line, extra={"table": action.tables[0]})
    if len(acts) > OTHERS_SAID_TABLES_MAX:
        line = f"{len(acts) - OTHERS_SAID_TABLES_MAX} more such writes are in control/actions"
        log.warning("%s", line)
