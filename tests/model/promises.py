"""The promises of tables' lives, which no state of the model breaks.

In:  Bounds, a State.
Out: Promises.broken(): which one a state breaks. life.py says what they are.
"""

from __future__ import annotations

from tests.model import asked, shards
from tests.model.put_back import is_unseen
from tests.model.world import EMPTIES, NOT_BEHIND, Bounds, State, rows_at
from tidegate.standing import step as rules
from tidegate.tables import State as Is


class Promises:
    """See the module's docstring."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds

    def broken(self, state: State) -> str:
        """Which promise this state breaks; "" when none."""
        pending = {table for table, _ in state.pending}
        for table in self.bounds.tables:
            sources = [self.bounds.feeds[at][0] for at in self.bounds.physical(table)]
            kept = state.chosen[0][table] and all(state.chosen[1][source] for source in sources)
            if kept and table not in pending and (what := self._wrong(state, table)):
                return what
        return ""

    def _wrong(self, state: State, table: int) -> str:
        of = state.tables[table]
        standing, name = of.standing, asked.NAMES[table]
        if any(row > gate for gate in self._gates(state, table, of.version) for row in of.rows if row >= gate):
            return f"{name}: rows {of.rows} behind a gate that nobody has opened"
        if (standing is not None and (standing.state is Is.LEFT or standing.lacks_rows)) or is_unseen(state, table):
            return ""
        if what := self._said_wrong(state, table):
            return f"{name}: {what}"
        upto = max(asked.applied(self.bounds, state, table), asked.reached(state, table))
        if standing is not None and standing.state is not Is.ACTIVE and self._is_filled(state, table, upto):
            return ""
        wanted = self._wanted(state, table, upto)
        where = standing.state if standing is not None else "active"
        if (
            standing is not None
            and standing.state in (Is.RELEASED, Is.HELD)
            and self._is_emptied(state, table, upto + 1)
        ):
            return ""
        excused = self._excused(state, table, upto)
        if {*of.rows} - excused != {*wanted} - excused:
            return f"{name} ({where}) has rows {of.rows} at {upto}, the log {wanted}"
        return self._shown_wrong(state, table)

    def _is_filled(self, state: State, table: int, upto: int) -> bool:
        """Whether a snapshot emptied it, which hasn't ended well, and no statement has up to there.

        It looks at the log itself: what the rules are told of this (asked.filled) is itself in question.
        """
        physical = self.bounds.physical(table)
        snap = state.snaps[physical[0]] if len(physical) == 1 else None
        if snap is None or not snap.begun or snap.over == "done":
            return False
        return not any(snap.begun < at <= upto and kind in EMPTIES for at, kind in state.logs[physical[0]])

    def _excused(self, state: State, table: int, upto: int) -> set[int]:
        """Rows of shards that lack some: not at a cut which says that the table is complete."""
        if not self.bounds.routed(table):
            return set()
        is_whole = rules.is_in(state.tables[table].standing, Is.ACTIVE) and upto <= state.cut
        lacking = set(state.fresh)
        if not is_whole:
            physical = self.bounds.physical(table)
            lacking |= {at for at in physical if shards.lacks_rows(self.bounds, state, at, upto)}
        return {ts for at in lacking if at in self.bounds.physical(table) for ts, _ in state.logs[at]}

    def _said_wrong(self, state: State, table: int) -> str:
        """What people read of a table, once a window is done: not that of one that lives on as gone, or the reverse."""
        standing = state.tables[table].standing
        if state.window is not None or state.kills:
            return ""
        if standing is not None and standing.source:
            source = asked.SOURCES.index(standing.source)
            return "" if state.behind[source] != NOT_BEHIND else "it goes on with a source that is back"
        is_late = any(state.behind[self.bounds.feeds[at][0]] != NOT_BEHIND for at in self.bounds.physical(table))
        is_there = state.tables[table].version > 0 and not is_late  # else nobody reads of it
        if is_there and rules.is_in(standing, Is.ACTIVE) and asked.dropped(self.bounds, state, table, state.cut):
            return "it is gone at the source, and active"
        return ""

    def _gates(self, state: State, table: int, upto: int) -> list[int]:
        if state.policy == "apply":
            return []
        logs = (state.logs[at] for at in self.bounds.physical(table))
        passed = state.tables[table].passed
        return [at - 1 for log in logs for at, kind in log if kind == "A" and passed < at <= upto]

    def _wanted(self, state: State, table: int, upto: int) -> tuple[int, ...]:
        """Of a physical table that no window has met, its source being behind, as far as that is."""
        rows: set[int] = set()
        for at in self.bounds.physical(table):
            behind = state.behind[self.bounds.feeds[at][0]]
            is_met = bool(asked.known_log(self.bounds, state, at))
            rows |= set(rows_at(state.logs, at, upto if is_met or behind == NOT_BEHIND else min(upto, behind)))
        return tuple(sorted(rows))

    def _is_emptied(self, state: State, table: int, commit_ts: int) -> bool:
        return any(at == commit_ts and k in "CDTG" for p in self.bounds.physical(table) for at, k in state.logs[p])

    def _shown_wrong(self, state: State, table: int) -> str:
        of, standing = state.tables[table], state.tables[table].standing
        if standing is not None and standing.state is not Is.ACTIVE:
            return ""
        if standing is not None and standing.applied_ts > state.cut:
            return ""  # it waits until the cut is there that its state speaks of, and readers see that
        wanted = self._wanted(state, table, state.cut)
        excused = {ts for at in state.fresh if at in self.bounds.physical(table) for ts, _ in state.logs[at]}
        if {*of.shown} - excused == {*wanted} - excused:
            return ""
        return f"the cut's row of {asked.NAMES[table]} shows {of.shown} at {state.cut}, the log says {wanted}"
