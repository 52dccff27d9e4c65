"""A model of capture's first start: baseline, the place where it was read, the first durable segment, kills between.

In:  cures that are left out.
Out: states of a source with one table, what the lake has of it, and a capture that may be killed anywhere.

The promise: a table that the baseline takes as empty holds just the rows that bronze has, up to resolved_ts; and what
isn't so is named (needs_snapshot). Code: include/tidegate/mysql/start/position.py, baseline.py,
include/tidegate/capture/run.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

CURES: Final = frozenset({"the start is recorded with the baseline", "a baseline of a lost place is replaced"})
ROWS_MAX: Final = 3
KILLS_MAX: Final = 2


class State(NamedTuple):
    """rows: the source's log, a row each; purged: how many of its first ones the server no longer has.

    baseline: (where it was read, whether the table had rows then). running: None, or (from where, how far in memory).
    bronze: (from where, up to where); resolved: up to where bronze says that it is whole.
    """

    rows: int = 0
    purged: int = 0
    baseline: tuple[int, bool] | None = None
    running: tuple[int, int] | None = None
    bronze: tuple[int, int] | None = None
    kills: int = 0


class FirstStart:
    """See the module's docstring."""

    def __init__(self, *without: str) -> None:
        assert set(without) <= CURES
        self.cures = CURES - set(without)

    def first(self) -> State:
        return State()

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        if state.rows < ROWS_MAX:
            yield "the source writes a row", state._replace(rows=state.rows + 1)
        if state.purged < state.rows:
            yield "the source purges a file", state._replace(purged=state.rows)
        if state.running is None:
            yield from self._start(state)
            return
        begin, upto = state.running
        if upto < state.rows and state.purged <= upto:
            yield "capture reads a row", state._replace(running=(begin, upto + 1))
        if state.bronze is None or state.bronze[1] < upto or state.bronze == (begin, upto):
            landed = (begin if state.bronze is None else state.bronze[0], upto)
            yield "a segment or a heartbeat lands in bronze", state._replace(bronze=landed)
        if state.kills < KILLS_MAX:
            yield "capture is killed", state._replace(running=None, kills=state.kills + 1)

    def _start(self, state: State) -> Iterator[tuple[str, State]]:
        now = state.rows
        if state.bronze is not None:
            if state.purged <= state.bronze[1]:
                yield "capture goes on behind bronze", state._replace(running=(state.bronze[0], state.bronze[1]))
            return  # else it stops by name
        if state.baseline is None:
            yield "a first start: baseline, here", state._replace(baseline=(now, now > 0), running=(now, now))
            yield "a first start, killed behind its baseline", self._killed(state._replace(baseline=(now, now > 0)))
            return
        if "the start is recorded with the baseline" not in self.cures:
            yield "a first start again: here, the old baseline stays", state._replace(running=(now, now))
            return
        place = state.baseline[0]
        if state.purged <= place:
            yield "a first start again: from the recorded place", state._replace(running=(place, place))
        elif "a baseline of a lost place is replaced" in self.cures:
            yield "a first start again: a new baseline", state._replace(baseline=(now, now > 0), running=(now, now))
        else:
            yield "a first start again: here, past what is lost", state._replace(running=(now, now))

    def _killed(self, state: State) -> State:
        return state._replace(kills=state.kills + 1) if state.kills < KILLS_MAX else state

    def broken(self, state: State) -> str:
        if state.baseline is None or state.bronze is None or state.baseline[1]:
            return ""
        begin, upto = state.bronze
        # A table that was empty at the baseline: all of its rows up to the end of bronze are bronze's.
        return "" if begin == 0 or state.baseline[0] == begin else f"rows up to {begin} of {upto} are nowhere"
