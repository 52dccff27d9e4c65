"""A model of a table's changelog: holds, releases, later beginnings, snapshots, kills between its commit and silver's.

In:  cures that are left out.
Out: states of the log, the table's standing, silver, the changelog and the cut.

The product's own rule is asked where a window's changes begin, and what a changelog lacks: log_share(). The steps
around it are those of apply: standings are recorded before anything is written, the changelog before silver, the cut
at last; a window is tried again up to a later end, too.

The promise: from its `begin` on a changelog has each change of the log once, in order, up to its own end; or a gap
says between which two commits it may lack some. Silver has no change above the changelog's end while one is asked for.

Not covered: many physical tables in one, a source behind the cut, damaged segments and rows that can't be read (a gap
by name), retention of its rows (tests/unit/query), statements (tests/integration/query).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple
from unittest import mock

from tidegate.changelog import share as rules
from tidegate.changelog.share import Reached, log_share, still_counting
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.tables import State as Is

ENDS: Final = 3
KILLS, HOLDS, WAVES, ASKED = 2, 2, 1, 2
CURES: Final = frozenset(
    {
        "a later beginning is a gap",
        "changes that silver has alone are a gap",
        "a table that begins anew has its changes of the same window",
        "the changelog records its end",
        "the changelog is written before silver",
    }
)


class Window(NamedTuple):
    """(low, cut]; from_ts: where the table's share begins. at: what comes next: log and silver, or publish."""

    low: int
    cut: int
    from_ts: int
    at: str


class State(NamedTuple):
    """ends: how long the log is: a change at each commit_ts. wrote: the changelog: changes (n,), and what it lacks
    (above, upto). end: its transaction version. standings: recorded ones, the present one last. left: how many kills,
    holds, waves, and changes of mind about the changelog may come.
    """

    ends: int = 0
    cut: int = 0
    silver: int = 0
    wrote: tuple[tuple[int, ...], ...] = ()
    end: int | None = None
    is_asked: bool = True
    standings: tuple[Standing, ...] = ()
    window: Window | None = None
    wave: int = 0  # low mark of one that waits
    left: tuple[int, int, int, int] = (KILLS, HOLDS, WAVES, ASKED)


class Changelog:
    """See the module's docstring."""

    def __init__(self, *without: str) -> None:
        assert set(without) <= CURES
        self.cures = CURES - set(without)

    def first(self) -> State:
        return State()

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        if state.ends < ENDS:
            yield "the source commits", state._replace(ends=state.ends + 1)
        if state.left[2] and not state.wave and state.ends < ENDS:
            yield "a snapshot reads the table", _spent(state, 2)._replace(wave=state.ends + 1, ends=state.ends + 1)
        if state.window is None:
            yield from self._between(state)
            return
        if state.left[0]:
            yield "apply is killed", _spent(state, 0)._replace(window=None)
        yield self._goes_on(state, state.window)

    def _between(self, state: State) -> Iterator[tuple[str, State]]:
        if state.left[3]:
            yield "the pipeline file changes", _spent(state, 3)._replace(is_asked=not state.is_asked)
        of = state.standings[-1] if state.standings else None
        where = of.state if of is not None else Is.ACTIVE
        applied = max(state.silver, of.applied_ts if of and where in (Is.HELD, Is.RELEASED) else state.cut)
        if where is Is.ACTIVE and state.left[1]:
            left = Standing(Is.LEFT, applied_ts=applied)
            yield "the pipeline file leaves it out", _stands(_spent(state, 1), left)
        if where is Is.LEFT:
            assert of is not None
            yield "it is kept again", _stands(state, Standing(Is.RELEASED, applied_ts=of.applied_ts))
            lacks = Standing(Is.HELD, "", Cause.NEEDS_ROWS, applied_ts=state.cut)
            yield "it is kept again, and lacks rows", _stands(state, lacks)
        if where is Is.HELD and of is not None and of.cause is not Cause.NEEDS_ROWS:
            released = Standing(Is.RELEASED, applied_ts=of.applied_ts)
            yield "a person lets it go on", _stands(state, released)
            for at in range(of.applied_ts + 1, state.cut + 1):
                yield f"it was emptied at {at}", _stands(state, Standing(Is.RELEASED, applied_ts=at - 1))
        if where is Is.RELEASED and applied < state.cut:
            yield "a window below the cut", state._replace(window=Window(applied, state.cut, applied, "log"))
            return
        if where is Is.RELEASED:
            yield "it has caught up", _stands(state, Standing(Is.ACTIVE, applied_ts=applied))
            return
        if state.cut == state.ends:
            return
        window = Window(state.cut, state.ends, applied, "log")
        if state.wave > state.cut:
            begins = Standing(Is.SNAPSHOT, applied_ts=state.wave - 1, snapshot="s")
            known = state if of == begins else _stands(state, begins)
            yield "a window with a snapshot", known._replace(window=window._replace(from_ts=state.wave - 1))
            if state.left[1]:
                held = Standing(Is.HELD, "", Cause.FAULT, applied_ts=max(state.silver, state.cut))
                yield "it is held again by that window", _stands(_spent(known, 1), held)._replace(cut=state.ends)
        elif where in (Is.HELD, Is.LEFT):
            yield "a window without the table", state._replace(cut=state.ends)
        else:
            yield "a window", state._replace(window=window)
            if state.left[1]:
                held = Standing(Is.HELD, "", Cause.FAULT, applied_ts=applied)
                yield "a window in which it is held", _stands(_spent(state, 1), held)._replace(cut=state.ends)

    def _goes_on(self, state: State, window: Window) -> tuple[str, State]:
        if window.at == "publish":
            is_filled = bool(state.standings) and state.standings[-1].state is Is.SNAPSHOT
            after = _stands(state, Standing(Is.ACTIVE, applied_ts=window.cut)) if is_filled else state
            return "the cut is published", after._replace(window=None, cut=max(state.cut, window.cut))
        is_first = window.at == "log"
        after = state._replace(window=window._replace(at="silver" if is_first else "publish"))
        if is_first != ("the changelog is written before silver" in self.cures):
            return "silver is written", after._replace(silver=max(state.silver, window.cut))
        return "the changelog is written", self._written(after, window) if state.is_asked else after

    def _written(self, state: State, window: Window) -> State:
        """As write_changelog."""
        reached = Reached(state.end, state.silver, window.low, window.from_ts)
        if "changes that silver has alone are a gap" not in self.cures:
            reached = Reached(state.end, 0, window.low, window.from_ts)
        standings = state.standings
        if "a table that begins anew has its changes of the same window" not in self.cures:
            reached = Reached(state.end, reached.silver, window.from_ts, window.from_ts)
        if "a later beginning is a gap" in self.cures:
            begins = log_share(reached, standings)
        else:
            with mock.patch.object(rules, "leaps", return_value=()):
                begins = log_share(reached, standings)
        wrote = state.wrote
        if begins.lacks_upto is not None:
            wrote = (*wrote, (-1 if state.end is None else state.end, begins.lacks_upto))
        changes = tuple((number,) for number in range(begins.after_ts + 1, window.cut + 1))
        if not changes:
            return state
        end = window.cut if "the changelog records its end" in self.cures else state.end
        return state._replace(wrote=(*wrote, *changes), end=end)

    def broken(self, state: State) -> str:
        changes = [entry[0] for entry in state.wrote if len(entry) == 1]
        if sorted(set(changes)) != changes:
            return f"the changelog has {changes}"
        if state.end is None:
            return ""
        if state.left[3] == ASKED and state.silver > state.end:
            return f"silver has changes up to {state.silver}, the changelog ends at {state.end}"
        lacks = {*range(1, state.end + 1)} - {*changes}
        for above, upto in [entry for entry in state.wrote if len(entry) == 2]:
            gap = {*range(above + 1, upto + 1)}
            if above >= 0 and gap <= {*changes}:
                return f"a gap tells of {sorted(gap)}, which are there"
            lacks -= gap
        return f"the changelog ends at {state.end}, and lacks {sorted(lacks)} in silence" if lacks else ""


def _stands(state: State, standing: Standing) -> State:
    """Maintain may forget at any time what no longer counts."""
    standings = (*state.standings, standing)
    return state._replace(standings=tuple(standings[number] for number in sorted(still_counting(standings))))


def _spent(state: State, what: int) -> State:
    left = tuple(count - (at == what) for at, count in enumerate(state.left))
    return state._replace(left=left)  # type: ignore[arg-type]
