"""Check silver before its state is used: compare a table's Delta log with its rows in control/cuts.

In:  control/cuts, silver's logs, the tables of a window.
Out: tables that differ, by name. They catch up from the position of silver's own transaction
     version, or from their beginning in bronze; or they wait for rows; or, if another writer's
     table lies there, for a person. Nothing is written to any of them before.

When a table is checked, and the cost:
- all going on or waiting for rows, when an apply starts: one listing after the published version,
  on a disk two looks, and no more for an untouched table; in S3 and GCS dozens of them share a
  listing (lake/silver/quiet_tables.py). Those that differ are recorded before the first
  window, in control/table_states and in a row of control/cuts with the log as it is now: the next
  cut then tells the truth.
- a released one, as soon as it is met.
- one written by a window: by the very state its write is planned on, and again by the state its
  commit stands on. Unless somebody else wrote to it meanwhile, this costs no look at the store. If
  several commits write it, the version that the cut names is checked as well, by one look.
- one going on, or leaving a window, without being written: before the cut has a row of it. A
  waiting one keeps its last answer, until it is asked again.
A quiet table costs a window nothing.

If a difference is found within a window, the table is held, whatever silver's transaction version
shows: its rows were planned for another log. The next apply, or a snapshot, goes on with it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from spark_jobs.window.application import Application
from spark_jobs.window.standing.facts import facts_of
from spark_jobs.window.standing.from_bronze import from_bronze
from spark_jobs.window.standing.others_rows import note_others, tell_others
from spark_jobs.window.standing.standings import line_of, note
from tidegate import tables
from tidegate.delta.log import DeltaLog
from tidegate.delta.table.state import TableState
from tidegate.errors import PastUnlike, SilverForeign, SilverUnlike, Terminal
from tidegate.lake.silver.as_published import is_quiet, own_ts, said_by, said_of_all, shown_by
from tidegate.lake.silver.quiet_tables import quiet_tables
from tidegate.lake.silver.sizes import size_cells
from tidegate.lake.standing.from_bronze import FromBronze
from tidegate.limits import SILVER_LISTED_TABLES
from tidegate.remedy import REFILL, Needs
from tidegate.standing.causes import cause_of
from tidegate.standing.events import Event, Refused, SilverOlder
from tidegate.standing.silver import (
    AT_REST,
    CATCHES_UP,
    MOVE_AWAY,
    NO_SILVER,
    Answer,
    Said,
    Shown,
    Unlike,
    answer,
    catches_up,
    told,
)
from tidegate.tables import State

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Said:
    """Answers by logical name, carried forward with each publication. released: tables asked as
    such.
    """

    of: dict[str, Said] | None = None
    released: dict[str, int] = field(default_factory=dict)

    def known(self, app: Application) -> dict[str, Said]:
        if self.of is None:
            self.of = said_of_all(app.lake)
        return self.of


def ask_all(app: Application) -> None:
    """At the start of an apply: check every table that is about to go on. Raises LakeUnavailable."""
    memory = app.memory(_Said)
    memory.of = None
    known = memory.known(app)
    names = [name for name in known if not _is_at_rest(app, name)]
    _take(app, names)


def ask_released(app: Application) -> None:
    """Tables released by a person, or by the end of their cause."""
    memory = app.memory(_Said)
    fresh = {
        name: standing.applied_ts
        for name, standing in app.states.of(State.RELEASED)
        if memory.released.get(name) != standing.applied_ts
    }
    if fresh:
        memory.released = {name: standing.applied_ts for name, standing in app.states.of(State.RELEASED)}
        _take(app, fresh)


def check(app: Application, name: str, state: TableState) -> None:
    """Before silver is written on the ground of this state. Raises SilverUnlike, SilverForeign,
    LakeUnavailable, LakeRefused.
    """
    known = app.memory(_Said).known(app)
    said = None if _is_dropped(app, name) else known.get(name)
    if said is not None and _is_as_said(app, name, state, said):
        return
    shown = shown_by(app.lake, _log(app, name), state, _app_id(app, name), said)
    verdict = answer(said, shown)
    if verdict.unlike is Unlike.FOREIGN:
        raise SilverForeign(told(name, verdict, said), where=state.place, remedy=MOVE_AWAY)
    if verdict.unlike is not None:
        raise _unlike_class(app, name)(told(name, verdict, said), where=state.place, remedy=REFILL)
    if said is not None and not said.never_filled:
        note_others(app, name, said, shown)
        known[name] = shown.said  # what stands between is looked at once


def met_unwritten(app: Application, name: str, state: TableState) -> Terminal | None:
    """The fault of a table's silver that this window didn't write, and so didn't check; None
    without one.

    Raises LakeUnavailable.
    """
    try:
        check(app, name, state)
    except Terminal as error:
        return error
    return None


def version_for_cut(app: Application, name: str, state: TableState) -> int | Terminal:
    """The version of this state, or its fault: the cut must not name what another writer did since our commit, for
    nobody would see it any more. Raises LakeUnavailable.
    """
    error = met_unwritten(app, name, state)
    return state.version if error is None else error


def _is_as_said(app: Application, name: str, state: TableState, said: Said) -> bool:
    """Whether nothing was committed since the last answer. Our own transaction version is compared as well: other
    commits may have brought the same number of versions as lost ones.
    """
    return state.created and said == Said(state.version, state.table_id, own_ts(state, _app_id(app, name)))


def silver_cells(app: Application, name: str, version: int) -> dict[str, Any]:
    """The cells of a row of control/cuts for this version: silver's size, and the marks by which this table is
    recognised later.
    """
    if version == NO_SILVER:
        return {"silver_id": None, "silver_ts": None, **size_cells(TableState(""))}
    log = _log(app, name)
    state = log.known if log.known.version >= version else log.state()
    shown = shown_by(app.lake, log, state, _app_id(app, name), None)
    return {"silver_id": shown.table_id, "silver_ts": shown.own_ts, **size_cells(state)}


def said_of(app: Application, name: str) -> Said | None:
    """The newest record of control, as far as this application knows."""
    return app.memory(_Said).known(app).get(name)


def note_published(app: Application, rows: Iterable[Mapping[str, Any]]) -> None:
    """These rows of control/cuts are in the lake."""
    app.memory(_Said).known(app).update({row["table"]: said_by(row) for row in rows if row["table"]})


def _take(app: Application, names: Iterable[str]) -> None:
    """Ask these tables, and record the new standings of those that differ from control."""
    kept = [name for name in names if not _is_dropped(app, name)]
    quiet = _quiet(app, kept)
    asked = {name: app.pool.submit(_asked, app, name) for name in kept if name not in quiet}
    unlike = {name: answered for name, done in asked.items() if (answered := done.result()) is not None}
    tell_others(app)
    if not unlike:
        return
    known = app.memory(_Said).known(app)
    app.index.refresh(app.cut_ts)  # where bronze begins
    bronze = from_bronze(app, [name for name in unlike if _catches_up(app, name)])
    for name, (verdict, _) in sorted(unlike.items()):
        done = note(app, name, _event(app, name, verdict, bronze.get(name)))
        line = line_of(app, name, done.standing) if done.standing is not None else ""
        log.warning("%s", line, extra={"table": name})
    app.record_states({})
    now = datetime.now(UTC)
    rows = []
    for name, (verdict, shown) in sorted(unlike.items()):
        if verdict.unlike is Unlike.FOREIGN:  # with its id in the record, it would count as ours
            continue
        standing = app.states[name]
        cells = {"silver_id": shown.table_id or None, "silver_ts": shown.own_ts, **size_cells(_log(app, name).known)}
        rows.append(
            {"cut_ts": app.cut_ts, "table": name, "delta_version": shown.version, "applied_ts": standing.applied_ts}
            | {"state": standing.state, "published_at": now, **cells}
        )
        known[name] = shown.said
        app.positions.forget_applied(name)
    if rows:
        app.publish(rows)
    app.reload()  # versions of tables from below the cut are wanted now


def _quiet(app: Application, names: Sequence[str]) -> set[str]:
    """The tables that are as published, by listings of many tables at once. The others are checked one by one."""
    known = app.memory(_Said).known(app)
    by_path = []
    for name in names:
        if name in known and known[name].version != NO_SILVER:
            path = tables.silver_path(*app.names.pair(name))
            by_path.append((path.removeprefix(f"{tables.SILVER_FOLDER}/"), name))
    by_path.sort()
    store = app.lake.store(tables.SILVER_FOLDER)

    def listed(begin: int) -> set[str]:
        part = dict(by_path[begin : begin + SILVER_LISTED_TABLES])
        try:
            quiet = quiet_tables(store, {path: known[name] for path, name in part.items()})
        except Terminal:
            return set()
        return set(map(part.__getitem__, quiet))

    return set().union(*app.pool.map(listed, range(0, len(by_path), SILVER_LISTED_TABLES)))


def _asked(app: Application, name: str) -> tuple[Answer, Shown] | None:
    """The fault of a table; None without one. An unreadable log is reported when the table is
    written.
    """
    said = app.memory(_Said).known(app).get(name)
    if said is None or said.version == NO_SILVER:
        return None
    log = _log(app, name)
    try:
        if is_quiet(log, said):
            return None
        shown = shown_by(app.lake, log, log.state(), _app_id(app, name), said)
        verdict = answer(said, shown)
        if verdict.unlike is None:
            note_others(app, name, said, shown)
    except Terminal:
        return None
    return (verdict, shown) if verdict.unlike is not None else None


def _event(app: Application, name: str, verdict: Answer, bronze: FromBronze | None) -> Event:
    """The event: the table catches up if bronze certainly has the rest, else it waits for rows."""
    assert verdict.unlike is not None, "asked of those"
    what = told(name, verdict, app.memory(_Said).known(app).get(name))
    if verdict.unlike is Unlike.FOREIGN:
        fault = SilverForeign.__name__
        return Refused(cause_of(fault), f"{what}; {MOVE_AWAY}", fault=fault)
    at_ts = bronze.way(verdict, app.states.get(name)) if bronze is not None else None
    if at_ts is not None:
        return SilverOlder(at_ts, f"{what}; {catches_up(verdict, at_ts)}")
    fault = _unlike_class(app, name).__name__
    return Refused(cause_of(fault), what, needs=Needs.ROWS, fault=fault, at_ts=app.cut_ts)


def _unlike_class(app: Application, name: str) -> type[SilverUnlike]:
    """The class of the error. It also counts for a table whose silver is gone: bronze may have its
    past, a snapshot has none.
    """
    return PastUnlike if app.pipeline.tables.keeps_past(*app.names.pair(name)) else SilverUnlike


def _catches_up(app: Application, name: str) -> bool:
    standing = app.states.get(name)
    return standing is None or standing.state in CATCHES_UP


def _is_at_rest(app: Application, name: str) -> bool:
    """Whether a table needs no check. A table that waits for rows needs one: it gets them beside
    silver's present rows, so control must know these.
    """
    standing = app.states.get(name)
    return standing is not None and standing.state in AT_REST and not standing.lacks_rows


def _is_dropped(app: Application, name: str) -> bool:
    """Whether the source has no such table, at silver's position. Then its folder may be removed,
    and a later table there is new. A table whose source is behind has the state released, and may
    be dropped as well.
    """
    standing = app.states.get(name)
    if standing is None or standing.state is not State.RELEASED:
        return standing is not None and standing.state is State.DROPPED
    return facts_of(app, name).dropped(app.positions.mark(name))


def _log(app: Application, name: str) -> DeltaLog:
    return app.lake.log(tables.silver_path(*app.names.pair(name)))


def _app_id(app: Application, name: str) -> str:
    return tables.app_id(app.pipeline.pipeline, name)
