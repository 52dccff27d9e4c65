"""A model of a rename or a swap of two tables in silver: kills between commits, other people's commits, a later window.

In:  whether the names are swapped, or one is renamed; cures that are left out.
Out: states of two silver logs and of an apply in the middle of its window.

The product's own rule is asked which version of the giver is read: given_version_at(). The order of the steps is that
of spark_jobs/merge/linked.py, and find_moves' question is asked at each start: has the taker recorded the statement?

The promise: when the window is done, each table has the rows that the source's log gives it.

Not covered: standings and partners (the model of tables' lives), moves of partitions, chains in one statement.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from tidegate.merge.given import given_version_at

CURES: Final = frozenset(
    {
        "the giver is read as it was before the statement",
        "what others committed since is passed over",
        "takers are written before givers are emptied",
    }
)
AT: Final = 2  # the statement's commit_ts; rows change at 1 and at 3
KILLS, OTHERS = 2, 2
A, B = 0, 1


class Commit(NamedTuple):
    """recorded: the commit_ts for our application; None: somebody else's, or the emptying of a giver."""

    recorded: int | None
    rows: frozenset[str]


class State(NamedTuple):
    """logs: of A and B. emptied: A was emptied by the statement. at: the next step."""

    logs: tuple[tuple[Commit, ...], tuple[Commit, ...]] = ((), ())
    emptied: bool = False
    at: int = 0
    moves: tuple[int, ...] | None = None
    kills: int = 0
    others: int = 0


class Moves:
    """See the module's docstring."""

    def __init__(self, is_swap: bool, *without: str) -> None:
        assert set(without) <= CURES
        self.is_swap, self.cures = is_swap, CURES - set(without)
        takers = (("take", A), ("take", B)) if is_swap else (("take", B), ("empty", A))
        if "takers are written before givers are emptied" not in self.cures:
            takers = takers[::-1]
        self.program = (("rows 1", A), ("rows 1", B), *takers, ("rows 3", A), ("rows 3", B))

    def first(self) -> State:
        return State()

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        if state.others < OTHERS:
            for table in (A, B):
                if log := state.logs[table]:
                    changed = _committed(state, table, Commit(None, log[-1].rows))
                    yield f"somebody optimizes {'AB'[table]}", changed._replace(others=state.others + 1)
        if state.at == len(self.program):
            return
        if state.kills < KILLS and state.at:
            yield "apply is killed", state._replace(at=0, moves=None, kills=state.kills + 1)
        if state.moves is None:
            moves = tuple(taker for taker in self._takers() if _applied(state, taker) < AT)
            state = state._replace(moves=moves)
        what, table = self.program[state.at]
        yield f"{what} {'AB'[table]}", self._step(state, what, table)._replace(at=state.at + 1)

    def _takers(self) -> tuple[int, ...]:
        return (A, B) if self.is_swap else (B,)

    def _step(self, state: State, what: str, table: int) -> State:
        log = state.logs[table]
        rows = log[-1].rows if log else frozenset()
        if what.startswith("rows"):
            ts = int(what[-1])
            if _applied(state, table) >= ts:
                return state
            return _committed(state, table, Commit(ts, rows | {f"{'ab'[table]}{ts}"}))
        if what == "empty":
            if state.emptied:
                return state
            return _committed(state, A, Commit(None, frozenset()))._replace(emptied=True)
        assert state.moves is not None
        if table not in state.moves:
            return state
        giver = 1 - table
        return _committed(state, table, Commit(AT, state.logs[giver][self._version(state, giver)].rows))

    def _version(self, state: State, table: int) -> int:
        """As version_before."""
        log = state.logs[table]
        newest = len(log) - 1
        if "the giver is read as it was before the statement" not in self.cures or _applied(state, table) < AT:
            return newest
        if "what others committed since is passed over" not in self.cures:
            return newest - 1
        return given_version_at(newest, lambda at: log[at].recorded, AT)

    def broken(self, state: State) -> str:
        if state.at < len(self.program):
            return ""
        ours = {"b1", "a3"} if self.is_swap else {"a3"}
        for table, wanted in ((A, ours), (B, {"a1", "b3"})):
            if state.logs[table][-1].rows != wanted:
                return f"{'AB'[table]} has {sorted(state.logs[table][-1].rows)}, the log {sorted(wanted)}"
        return ""


def _applied(state: State, table: int) -> int:
    return max((commit.recorded or 0 for commit in state.logs[table]), default=0)


def _committed(state: State, table: int, commit: Commit) -> State:
    first, second = state.logs
    return state._replace(logs=((*first, commit), second) if table == A else (first, (*second, commit)))
