"""End the hold of a table that was emptied at the source.

In:  a version emptying a table, by TRUNCATE, CREATE, DROP or a rename away; or the holds of tables.
Out: the tables going on, each from just before its emptying version.

Nothing from before counts any more, so the rows that silver lacks are no loss. There is one
exception: a rename gave them to another table. The taker reads them in the giver's silver, which
lacks changes. A rename or a moved partition ties such tables into one hold (standing/standings.py).
It is over once its first table was emptied. Every table due to get such rows from silver must have
been emptied, too, later than it took them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from spark_jobs.window.application import Application
from spark_jobs.window.made import Planned
from spark_jobs.window.shape.moves import still_given
from spark_jobs.window.standing.standings import mend, note, standing_of
from spark_jobs.window.standing.unlogged_tables import unlogged_reason
from spark_jobs.window.waves.told import told_of
from tidegate.schema.follow.renames import empties
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.snapshot.progress.events import EventKind
from tidegate.standing.events import Emptied
from tidegate.standing.standing import Standing
from tidegate.table_names import Physical
from tidegate.tables import State

log = logging.getLogger(__name__)

_EMPTIED = "the table was emptied while it was held: all of its rows come by the log"


@dataclass(slots=True)
class _Looked:
    """Held tables that `release_emptied` has looked at, with their standings then. stamp: of States
    at that time.
    """

    states: dict[str, Standing] = field(default_factory=dict)
    stamp: int = 0

    def forget(self) -> None:
        self.states, self.stamp = {}, 0


def mend_emptied(app: Application, planned: Planned, emptied: TableVersion) -> list[TableVersion]:
    """Let a held table go on that this version empties, together with the tables that wait with it.
    If the window has all of them, they go on in it. Returns their versions from there up to this
    one, oldest first; [] if the hold isn't over.
    """
    name = app.names.logical_name(emptied.database, emptied.table)
    ends = _Hold(app, name, emptied.commit_ts, planned).ends()
    if not _are_forgotten(app, ends):
        return []
    _cancel(app, ends.values())
    for table, end in ends.items():
        mend(app, planned.window, table, end.commit_ts - 1)
    if ends:
        app.memory(_Looked).forget()
    versions = [
        version
        for end in ends.values()
        for version in app.histories[end.source].versions(end.database, end.table)
        if end.commit_ts <= version.commit_ts <= emptied.commit_ts
    ]
    return sorted(versions, key=lambda version: version.commit_ts)


def release_emptied(app: Application) -> None:
    """Let held tables catch up that were emptied at the cut or below it: in the same window in
    which they were held, or before another table lost their rows.
    """
    looked = app.memory(_Looked)
    if looked.stamp == app.states.stamp:
        return
    if any(app.states.get(name) is not state for name, state in looked.states.items()):
        looked.states = {}  # a table that goes on may be the taker that another one waits for
    fresh = [name for name, state in app.states.of(State.HELD) if looked.states.get(name) is not state]
    if not fresh:
        looked.stamp = app.states.stamp
        return
    ended = dict[str, TableVersion]()
    for name in fresh:
        if name not in ended and _are_forgotten(app, ends := _Hold(app, name, app.cut_ts).ends()):
            ended |= ends
    _cancel(app, ended.values())
    for name, end in ended.items():
        note(app, name, Emptied(end.commit_ts - 1))
    looked.states = {} if ended else dict(app.states.of(State.HELD))
    app.record_states({})


def _are_forgotten(app: Application, names: Iterable[str]) -> bool:
    """Whether all histories of these tables are unknown from here on: what they missed is in no version. A table with
    history stays held if its log can't say so: once somebody has repaired the log, it would tell too much.
    """
    for name in names:
        error = app.positions.forget_history(name)
        if error is not None:
            log.warning("%s was emptied, and stays held: %s", name, error.line, extra={"table": name})
            return False
    return True


def _cancel(app: Application, ends: Iterable[TableVersion]) -> None:
    """Cancel the snapshots of these tables: all of their rows come after this. Waves and end marks
    that passed during the hold are in no later window. It is recorded before the table goes on,
    since that is recorded only once.
    """
    emptied = {Physical(end.source, end.database, end.table): end for end in ends}
    events = [
        told_of(app, snapshot, physical, EventKind.CANCELLED, f"{_EMPTIED} ({emptied[physical].ddl[:120]})")
        for snapshot, physical in ((going.snapshot, going.physical) for going in app.snapshots.going)
        if physical in emptied
    ]
    if events:
        app.snapshots.record(app.control, events)


class _Hold:
    """The hold of a table, with all tables waiting for it.

    planned: the window where it is met; without, at the cut.
    """

    def __init__(self, app: Application, name: str, upto_ts: int, planned: Planned | None = None) -> None:
        self._app, self._planned = app, planned
        self._upto_ts = upto_ts
        self._root = self._first(name)

    def ends(self) -> dict[str, TableVersion]:
        """The version that emptied its first table, and others if needed; {} when it isn't over."""
        first = self._next(self._root, 0) if self._root else None
        if first is None:
            return {}
        ends, waiting = {self._root: first}, [self._root]
        # A taker reads its rows in the giver's silver, which lacks changes. So each taker must have been emptied after
        # it took them, and so must each table that the taker gave rows to.
        while waiting:
            name = waiting.pop()
            end = ends[name]
            physical = end.physical
            for taker, taken in still_given(self._app, physical, self._app.positions.applied(name), end.commit_ts):
                if taker in ends and ends[taker].commit_ts > taken.commit_ts:
                    continue
                later = self._next(taker, taken.commit_ts) if self._first(taker) == self._root else None
                if later is None:
                    return {}
                ends[taker] = later
                waiting.append(taker)
        return ends

    def _next(self, name: str, after_ts: int) -> TableVersion | None:
        """The first version after after_ts that empties the table and ends the cause of its hold."""
        app, standing = self._app, self._held(name)
        assert standing is not None, "asked of tables of the hold"
        gap_ts = self._planned.gap_ts.get(name, 0) if self._planned else 0
        ending: list[TableVersion] = []
        for version in self._versions(name):
            if not max(app.positions.applied(name), gap_ts) < version.commit_ts <= self._upto(version.source):
                continue
            if version.status.waits or unlogged_reason(app, version):
                ending.clear()  # it brings a cause back, so an earlier emptying doesn't end the hold
            elif empties(version) and version.commit_ts > after_ts and self._ends(name, standing, version):
                ending.append(version)
        return ending[0] if ending else None

    def _ends(self, name: str, standing: Standing, emptied: TableVersion) -> bool:
        app = self._app
        ends = standing.ends_by_emptying(
            emptied.commit_ts,
            first=name == self._root,
            rows_stay=app.pipeline.tables.keeps_past(*app.names.pair(name)),
            gone=emptied.status is VersionStatus.DROPPED and not self._comes_back(name, standing, emptied),
        )
        return ends and not _columns_are_lost(app, name, emptied)

    def _comes_back(self, name: str, standing: Standing, gone: TableVersion) -> bool:
        """Whether the source has a table of this name again, up to the place where it was held."""
        upto_ts = standing.place.at_ts if standing.place is not None else 0
        return any(gone.commit_ts < version.commit_ts <= upto_ts for version in self._versions(name))

    def _held(self, name: str) -> Standing | None:
        app, planned = self._app, self._planned
        standing = standing_of(app, planned.window, name) if planned else app.states.get(name)
        return standing if standing is not None and standing.state is State.HELD else None

    def _first(self, name: str) -> str:
        """The table at the end of the chain of partners, for whose hold this one waits; "" if one
        of them isn't held.
        """
        seen: set[str] = set()
        while name not in seen and (standing := self._held(name)) is not None:
            seen.add(name)
            if not standing.partner:
                return name
            name = standing.partner
        return ""

    def _versions(self, name: str) -> tuple[TableVersion, ...]:
        """The versions of a logical table with a single physical table; else none."""
        physical: list[Physical] = list(self._app.names.flows().get(name, ()))
        if len(physical) != 1 or self._app.names.logical(*physical[0].pair).routed:
            return ()
        return self._app.histories[physical[0].source].versions(*physical[0].pair)

    def _upto(self, source: str) -> int:
        return self._upto_ts if self._planned else self._app.followed.position(source, self._upto_ts)


def _columns_are_lost(app: Application, name: str, emptied: TableVersion) -> bool:
    """Whether the columns are unknown: the table is emptied by a TRUNCATE after an accepted gap,
    which may hide an ALTER. Then only a CREATE TABLE tells them.
    """
    history = app.histories[emptied.source]
    gap_ts = history.settings.gap_ts
    if emptied.kind != "truncate" or app.positions.applied(name) >= gap_ts:
        return False
    since = (v for v in history.versions(emptied.database, emptied.table) if gap_ts < v.commit_ts <= emptied.commit_ts)
    return not any(version.kind == "create" for version in since)
