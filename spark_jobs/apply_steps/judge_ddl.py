"""The pipeline file's word on each kind of DDL, before any of it reaches silver.

In:  window.tables with the versions beginning inside it, `ddl` of the pipeline file, a person's
     approvals.
Out: the changes of each table; tables whose DDL has to be asked for, or stops them, are held with
     the statement and its position.

schema_history has followed the statement all the same: later rows are read with the right columns.
Only the table's silver waits, and catches up from bronze. Nothing is remembered here but the
approval itself, in the table's `released` event: every look at the window gives the same answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from spark_jobs.window.application import Application
from spark_jobs.window.plan import Change
from spark_jobs.window.shape.kept import apart
from spark_jobs.window.shape.moves import all_partners
from spark_jobs.window.shape.shapes import kept_of, version_changes
from spark_jobs.window.standing.same_names import hold_other_kinds, hold_same_names
from spark_jobs.window.standing.standings import hold
from spark_jobs.window.window import TableWindow, Window
from tidegate.config import Policy
from tidegate.schema.follow.kinds import column_kinds, ddl_kinds
from tidegate.schema.follow.renames import RENAME
from tidegate.schema.model.columns import TableVersion
from tidegate.standing.causes import Cause
from tidegate.standing.events import Refused
from tidegate.standing.standing import Place

_Id = tuple[str, str, str, int]


def judge_ddl(app: Application, window: Window) -> dict[str, list[Change]]:
    """The changes of each table; tables are held by `ask` and `stop`, and if they aren't one
    table.
    """
    hold_same_names(app, window)
    changes = {name: version_changes(app, entry, window.cut_ts) for name, entry in window.tables.items()}
    hold_other_kinds(app, window, changes)
    origins = {_id(move.new): move.old for move in window.moves if move.moved is None}
    linked = all_partners(window.moves)
    for entry in list(window.tables.values()):
        if entry.name in window.tables:  # else a partner took it along
            _judge(app, window, entry, changes[entry.name], (origins, linked.get(entry.name, frozenset())))
    return changes


def _judge(
    app: Application,
    window: Window,
    entry: TableWindow,
    changes: Sequence[Change],
    moved: tuple[Mapping[_Id, TableVersion], Collection[str]],
) -> None:
    """moved: the former version of each renamed table; the tables that moves link with this one."""
    origins, linked = moved
    own_ts = _approved_ts(app, entry.name)
    # A rename, and EXCHANGE PARTITION, are one statement of several tables: a person approves it once.
    renames_ts = max([own_ts, *(_approved_ts(app, name) for name in linked)])
    for before, version in changes:
        origin = origins.get(_id(version))
        out = apart(kept_of(app, entry), before, origin, version)
        kinds = ddl_kinds(before, version, out)
        if origin:
            kinds += column_kinds(origin, version, out)
        policies = {kind: getattr(app.pipeline.ddl, kind) for kind in kinds}
        stops = [kind for kind, policy in policies.items() if policy is Policy.STOP]
        several = version.kind == RENAME or (version.moved is not None and version.moved.links)
        approved_ts = renames_ts if several else own_ts
        asks = [kind for kind, policy in policies.items() if policy is Policy.ASK and version.commit_ts > approved_ts]
        if stops or asks:
            cause, reason = (
                (Cause.DDL_STOPS, _stop(version, stops[0])) if stops else (Cause.DDL_ASKS, _ask(version, asks))
            )
            hold(app, window, entry.name, Refused(cause, reason, Place.of(version)))
            return


def _id(version: TableVersion) -> _Id:
    return version.source, version.database, version.table, version.version


def _approved_ts(app: Application, name: str) -> int:
    """A person has approved the table's DDL up to this commit_ts."""
    standing = app.states.get(name)
    return standing.approved_ts if standing is not None else 0


def _what(version: TableVersion) -> str:
    return f"{version.name} at {version.file}:{version.pos} of {version.source}"


def _stop(version: TableVersion, kind: str) -> str:
    return f"{_what(version)}: ddl.{kind} is stop in the pipeline file ({version.ddl[:120]})"


def _ask(version: TableVersion, kinds: list[str]) -> str:
    return f"{_what(version)}: {', '.join(kinds)} waits for approval ({version.ddl[:120]})"
