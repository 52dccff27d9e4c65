"""A model of renames by two sources at one commit_ts, in a table of shards: kills, other people's commits, a cut there.

In:  cures that are left out.
Out: states of three silver logs and of an apply in the middle of its window.

One source renames its shard o_1 to u, a table beside. The other renames its table t to o_7, a shard, and has changed
o_2 at the very same commit_ts. The order of the steps is that of spark_jobs/merge/linked.py; the rule for a giver's
version is the product's own.

The promise: when the windows are done, each table has the rows that the sources' logs give it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from tidegate.merge.given import given_version_at

CURES: Final = frozenset(
    {
        "a take of shards is recorded apart from their rows",
        "a take's own record counts for the version that is read",
    }
)
AT: Final = 2  # the commit_ts of both renames, of a row, and of a cut; more rows come at 1 and at 3
KILLS, OTHERS = 3, 1
TABLES: Final = ("o", "t", "u")
PROGRAM: Final = (
    ("rows", "o", 1), ("rows", "t", 1), ("take", "o", AT), ("take", "u", AT), ("empty", "t", AT),
    ("rows", "o", AT), ("cut", "", AT), ("rows", "o", 3),
)  # fmt: skip
WANTED: Final = {"o": {"o_2 of 1", "o_2 of 2", "o_2 of 3", "t of 1"}, "t": set(), "u": {"o_1 of 1"}}


class Commit(NamedTuple):
    """recorded: the commit_ts under the id of the rows; taken: under that of takes. None: the commit has none."""

    recorded: int | None
    taken: int | None
    rows: frozenset[str]


Log = tuple[Commit, ...]


class State(NamedTuple):
    """logs: by table. after: the commit_ts that each table's window begins after; None before it is asked."""

    logs: tuple[Log, ...] = ((), (), ())
    at: int = 0
    after: tuple[int, ...] | None = None
    emptied: bool = False
    cut: int = 0
    kills: int = 0
    others: int = 0


class Ties:
    """See the module's docstring."""

    def __init__(self, *without: str) -> None:
        assert set(without) <= CURES
        self.cures = CURES - set(without)

    def first(self) -> State:
        return State()

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        if state.others < OTHERS:
            for name, log in zip(TABLES, state.logs, strict=True):
                if log:
                    changed = _committed(state, name, Commit(None, None, log[-1].rows))
                    yield f"somebody optimizes {name}", changed._replace(others=state.others + 1)
        if state.at == len(PROGRAM):
            return
        if state.kills < KILLS and state.after is not None:
            begin = 0 if state.cut < AT else PROGRAM.index(("cut", "", AT)) + 1
            yield "apply is killed", state._replace(at=begin, after=None, kills=state.kills + 1)
        if state.after is None:
            state = state._replace(after=tuple(max(state.cut, _recorded(log)) for log in state.logs))
        what, name, ts = PROGRAM[state.at]
        yield f"{what} {name} {ts}", self._step(state, what, name, ts)._replace(at=state.at + 1)

    def _step(self, state: State, what: str, name: str, ts: int) -> State:
        if what == "cut":
            return state._replace(cut=ts, after=None)
        log = state.logs[TABLES.index(name)]
        rows = log[-1].rows if log else frozenset()
        assert state.after is not None
        if state.after[TABLES.index(name)] >= ts:  # silver has it: its window begins later
            return state
        if what == "rows":
            more = {"o": {f"o_2 of {ts}"} | ({"o_1 of 1"} if ts == 1 else set()), "t": {"t of 1"}}[name]
            return state if _recorded(log) >= ts else _committed(state, name, Commit(ts, None, rows | more))
        if what == "empty":
            emptied = _committed(state, "t", Commit(None, None, frozenset()))
            return state if state.emptied else emptied._replace(emptied=True)
        if name == "u":
            return state if _recorded(log) >= AT else _committed(state, "u", Commit(AT, None, self._given(state)))
        if max(_recorded(log), _taken(log)) >= AT:
            return state
        apart = "a take of shards is recorded apart from their rows" in self.cures
        rows = rows - {"o_1 of 1"} | state.logs[TABLES.index("t")][-1].rows
        return _committed(state, "o", Commit(None, AT, rows) if apart else Commit(AT, None, rows))

    def _given(self, state: State) -> frozenset[str]:
        """As version_before reads o, and only o_1 of it."""
        log, apart = state.logs[0], "a take's own record counts for the version that is read" in self.cures
        newest = max(_recorded(log), _taken(log) if apart else 0)

        def recorded(at: int) -> int | None:
            known = [ts for ts in (log[at].recorded, log[at].taken if apart else None) if ts is not None]
            return max(known, default=None)

        version = len(log) - 1 if newest < AT else given_version_at(len(log) - 1, recorded, AT)
        return log[version].rows & {"o_1 of 1"}

    def broken(self, state: State) -> str:
        if state.at < len(PROGRAM):
            return ""
        for name, log in zip(TABLES, state.logs, strict=True):
            if log[-1].rows != WANTED[name]:
                return f"{name} has {sorted(log[-1].rows)}, the logs {sorted(WANTED[name])}"
        return ""


def _recorded(log: Log) -> int:
    return max((commit.recorded or 0 for commit in log), default=0)


def _taken(log: Log) -> int:
    return max((commit.taken or 0 for commit in log), default=0)


def _committed(state: State, name: str, commit: Commit) -> State:
    logs = (log + (commit,) * (name == known) for known, log in zip(TABLES, state.logs, strict=True))
    return state._replace(logs=tuple(logs))
