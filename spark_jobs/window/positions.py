"""How far each table is: the published cut, sources behind it, standings, silver's own transaction
versions.

In:  control/cuts, control/followed, control/table_states, silver's transactions.
Out: Positions; events of control/table_states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from spark_jobs.window.handles import Handles
from spark_jobs.window.names import Names
from spark_jobs.window.states import States
from spark_jobs.window.window import Window
from tidegate import tables
from tidegate.delta.table.state import TableState
from tidegate.errors import CommitOverwritten, DeltaUnsupported, LakeRefused, Terminal
from tidegate.failpoint import failpoint
from tidegate.lake import control
from tidegate.lake.silver.as_published import emptied_ts, own_ts
from tidegate.lake.silver.known_history import forget_history, history_name
from tidegate.lake.standing.followed import FollowedSources, load
from tidegate.lake.standing.held import behind, last_states, to_row
from tidegate.standing.standing import Standing
from tidegate.tables import State


class _Written(NamedTuple):
    """rows_ts: up to where silver has a table's rows. own_ts: the newest commit_ts of a commit of ours."""

    rows_ts: int = 0
    own_ts: int = 0


class Positions:
    """cut_ts: the published cut. states: of logical tables, as table_states has them or is to have them soon."""

    def __init__(self, handles: Handles, names: Names) -> None:
        self._handles = handles
        self._names = names
        self.cut_ts = 0
        self.followed = FollowedSources()
        self.states = States()
        self.states_version = -1
        self.unread: dict[str, Terminal] = {}  # tables whose silver couldn't be read the last time -> why
        self._applied: dict[str, _Written] = {}
        self._noted: dict[str, Standing] = {}  # states that are to be recorded
        self._recorded_at: dict[str, datetime | None] = {}  # the last row of each table

    def load(self) -> None:
        """Read earlier applications' records: the newest published cut, the sources behind it."""
        lake = self._handles.lake
        self.cut_ts = control.application_version(lake, tables.CUTS, self._handles.cuts_app_id) or 0
        self.followed = load(lake)

    def forget(self) -> None:
        """Forget all but the cut and the followed selection. It is read again when it is needed."""
        self._applied.clear()
        self._noted.clear()
        self.states_version = -1

    def read_states(self) -> bool:
        """Take in others' rows of table_states, if any."""
        version = self._handles.control.version(tables.TABLE_STATES)
        if version == self.states_version:
            return False
        self.states_version = version
        self.states = States(last_states(self._handles.lake))
        self._recorded_at = {name: state.since for name, state in self.states.items()}
        return True

    def of(self, source: str) -> int:
        """The commit_ts up to which silver has all of a source's changes, except those of waiting
        tables.
        """
        return self.followed.position(source, self.cut_ts)

    def applied(self, name: str) -> int:
        """applied_ts of a logical table: everything at or below it is in silver.

        Silver's transaction version, or the last published cut if it is larger: a table without
        changes isn't written, and the cut counts it as complete.
        """
        return max(self.written(name), self.mark(name))

    def written(self, name: str) -> int:
        """Up to where silver has a logical table, by its own word; 0 where it can't be read
        (unread).

        A TRUNCATE is one commit, the rows after it are another. It takes all rows before it: a window
        ending below it, after a kill in between or where the rows are refused, has none to add.
        """
        return self._of_silver(name).rows_ts

    def reached(self, name: str) -> int:
        """The newest commit_ts of silver's own commits. It is above `written` where a statement is
        followed, and the rows after it aren't written.
        """
        return self._of_silver(name).own_ts

    def _of_silver(self, name: str) -> _Written:
        if name not in self._applied:
            silver = self.silver(name)
            if silver is None:
                return _Written()
            app_id = tables.app_id(self._handles.pipeline.pipeline, name)
            rows_ts = silver.transaction(app_id)
            if not self._names.logical(*self._names.pair(name)).routed:  # of shards a statement empties one alone
                rows_ts = max(rows_ts, emptied_ts(silver, app_id, name) - 1)  # CREATE ... SELECT has rows at its own
            self._applied[name] = _Written(rows_ts, own_ts(silver, app_id))
        return self._applied[name]

    def silver(self, name: str) -> TableState | None:
        """A logical table's silver as its log has it; None where the log can't be read, and
        `unread` says why.

        One unreadable log must not stop the other tables. If the table is in a window, its log is
        read there again, and the error holds it.
        """
        try:
            state = self._handles.lake.log(tables.silver_path(*self._names.pair(name))).state()
        except Terminal as error:
            self.unread[name] = error
            return None
        self.unread.pop(name, None)
        return state

    def mark(self, name: str) -> int:
        """applied_ts by the control tables alone: the cut; or the table's own mark, if it isn't
        followed up to the cut; or its source's position, if it goes on with the source.
        """
        state = self.states.get(name)
        if state is None or state.state not in (State.HELD, State.RELEASED, State.LEFT):
            return self.cut_ts
        return max(state.applied_ts, self.of(state.source)) if state.source else state.applied_ts

    def is_held(self, name: str) -> bool:
        """Whether a table waits for a person, or for a pause."""
        state = self.states.get(name)
        return state is not None and state.state is State.HELD

    def waits_below(self, name: str, low_ts: int) -> bool:
        """Whether a table is released and must catch up with low_ts first. At the cut this includes a table that goes
        on with its source.
        """
        state = self.states.get(name)
        waits = state is not None and state.state == State.RELEASED
        return waits and (self.mark(name) < low_ts or (low_ts >= self.cut_ts and bool(self.late_sources(name))))

    def late_sources(self, name: str) -> set[str]:
        """Those of a table's sources that are behind the cut."""
        late = self.followed.behind.keys()
        return {physical.source for physical in self._names.flows().get(name, ())} & late if late else set()

    def held_at(self, name: str, error: BaseException) -> int:
        """applied_ts of a table that is held with an error. Changes that another writer has
        overwritten in silver don't count as applied.
        """
        if not isinstance(error, CommitOverwritten):
            return self.applied(name)
        self._handles.lake.log(tables.silver_path(*self._names.pair(name))).accept_loss()
        self.forget_applied(name)
        return self.written(name)

    def note_applied(self, name: str, upto_ts: int) -> None:
        """A killed window may have followed a statement from above this one: silver stays as far as that."""
        self._applied[name] = _Written(upto_ts, max(upto_ts, self.reached(name)))

    def forget_applied(self, name: str) -> None:
        """After an error: ask silver again for its commits."""
        self._applied.pop(name, None)

    def note(self, states: Mapping[str, Standing]) -> None:
        """Take table_states events into memory; the next record appends them with its own, in one
        commit.

        A window's steps may note them up to the writing of silver.
        """
        self._noted |= states
        self.states |= states

    def record(
        self,
        states: Mapping[str, Standing],
        app_transaction: tuple[str, int] | None = None,
        told_at: Callable[[], Mapping[str, datetime]] = dict,
    ) -> bool:
        """Append table_states events and take them into memory. app_transaction: as control.append
        has it. told_at: logical table -> a time that its state comes after.

        False if they were appended under this transaction before, or another writer came first.
        Then they are outdated: the table's newer rows count.
        """
        states, self._noted = {**self._noted, **states}, {}
        if not states:
            return True
        self._forget_parted(states)
        times, latest = dict[str, datetime](), told_at()
        for name in states:
            times[name] = behind(self._recorded_at.get(name))
            if name in latest:
                times[name] = behind(latest[name], times[name])
        rows = [to_row(state, self._handles.pipeline.pipeline, name, times[name]) for name, state in states.items()]
        version = self._handles.control.append(tables.TABLE_STATES, rows, app_transaction)
        if app_transaction is not None and version != self.states_version + 1:
            return False
        self.states |= {name: replace(state, since=times[name]) for name, state in states.items()}
        self._recorded_at |= times
        if version == self.states_version + 1:  # else somebody wrote too: the next refresh reads it
            self.states_version = version
        return True

    def forget_history(self, name: str) -> Terminal | None:
        """Nobody knows any more from when on silver's versions of a table tell its rows: it may go on without a part of
        its log. Its standing is recorded afterwards: a killed apply has forgotten too much.

        Returns why the log of a table that keeps its past can't say so: such a log answers no query now, but may when
        it is whole again, so the table mustn't go on. Raises LakeUnavailable.
        """
        log = self._handles.lake.log(tables.silver_path(*self._names.pair(name)))
        try:
            forget_history(log, history_name(self._handles.pipeline.pipeline, name))
        except (LakeRefused, DeltaUnsupported, CommitOverwritten) as error:
            return error if self._keeps_past(name) else None
        failpoint("apply_after_forget")
        return None

    def _forget_parted(self, states: Mapping[str, Standing]) -> None:
        """Forget the histories of tables that may go on without a part of their log. Where a log can't say so, the
        table waits, and the end of its wait forgets again.

        A table that the pipeline file leaves out may have left tables.history by the same edit: its silver is asked.
        """
        parted = [
            name
            for name, state in states.items()
            if state.parts_from_log and (state.state is State.LEFT or self._keeps_past(name))
        ]
        # An edit may leave out thousands of tables, and an object store takes its time for each.
        for _ in self._handles.pool.map(self.forget_history, parted):
            pass

    def _keeps_past(self, name: str) -> bool:
        return self._handles.pipeline.tables.keeps_past(*self._names.pair(name))

    def publications(self, window: Window) -> int:
        """The number of the next publication below the cut. Each published window raises it; a
        second try, or a release, doesn't.
        """
        if window.behind:
            return self.followed.number + 1
        return (control.application_version(self._handles.lake, tables.TABLE_STATES, self.caught_up_id) or 0) + 1

    @property
    def caught_up_id(self) -> str:
        return f"tidegate/{self._handles.pipeline.pipeline}/caught_up"
