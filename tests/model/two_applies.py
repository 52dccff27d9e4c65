"""A model of two applications that apply one table: DDL phases, transaction versions, one winner, other windows.

In:  cures that are left out.
Out: states of silver's Delta log and of two applications (a retried task whose first try lives on), each of which looks
     at the newest version, then commits the next one, and may be killed between any two commits.

The promise: once a cut is published, silver holds what the log says up to the cut, or up to its own transaction version
where that is larger. It needs no lease: a lease saves work, and is not believed. Code, in spark_jobs:
merge/rows.py, positional/writer.py, apply_steps/publish_cut.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

DDL_ONCE: Final = "a DDL phase has a transaction version of its own"
ONE_WINNER: Final = "of two commits of one version one wins, and the other looks again"
ROWS_TOO: Final = "a statement that removes all rows counts as all rows before it"
CURES: Final = frozenset({DDL_ONCE, ONE_WINNER, ROWS_TOO})

KILLS_MAX: Final = 1
# The log of the table: rows at 1 and 3, a TRUNCATE at 2, a row at 4. The first window is (0, 1] or (0, 3]; of the
# second one rows before the statement aren't written.
SHORT: Final = (("rows", 1), ("cut", 1), ("truncate", 2), ("rows", 3), ("cut", 3), ("rows", 4), ("cut", 4))
PHASES: Final = SHORT[2:]


class Silver(NamedTuple):
    """The newest version: its rows, and the transaction versions of rows and of DDL."""

    number: int = 0
    rows: tuple[int, ...] = ()
    rows_ts: int = 0
    ddl_ts: int = 0


class Apply(NamedTuple):
    """at: the phase that comes next. looked: the version that it decided on; None when it has yet to look. phases: none
    before it has planned its first window.
    """

    at: int = 0
    looked: Silver | None = None
    phases: tuple[tuple[str, int], ...] = ()

    def gone_on(self) -> Apply:
        """At the next phase."""
        return self._replace(at=self.at + 1, looked=None)


class State(NamedTuple):
    """cut: the newest published one."""

    silver: Silver = Silver()
    applies: tuple[Apply, Apply] = (Apply(), Apply())
    cut: int = 0
    kills: int = 0


def told(upto: int) -> tuple[int, ...]:
    """The table's rows at a commit_ts, by its log."""
    rows = tuple(at for kind, at in SHORT if kind == "rows" and at <= upto)
    return rows if upto < 2 else tuple(at for at in rows if at > 2)


class TwoApplies:
    """See the module's docstring."""

    def __init__(self, *without: str) -> None:
        assert set(without) <= CURES
        self.cures = CURES - set(without)

    def first(self) -> State:
        return State()

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        for number, apply in enumerate(state.applies):
            if not apply.phases:
                yield from self._planned(state, number)
                continue
            if apply.at == len(apply.phases):
                continue
            kind, at = apply.phases[apply.at]
            name = f"{'AB'[number]}: {kind} {at}"
            if kind == "cut":
                published = _with(state, number, apply.gone_on())
                yield f"{name} is published", published._replace(cut=max(state.cut, at))
            elif apply.looked is None:
                done = at <= self._done(state.silver, kind)
                after = apply.gone_on() if done else apply._replace(looked=state.silver)
                yield f"{name}: looks{', is done' if done else ''}", _with(state, number, after)
            else:
                yield self._commit(state, number, name)
            if state.kills < KILLS_MAX:
                again = _with(state, number, Apply())
                yield f"{'AB'[number]} is killed and starts again", again._replace(kills=state.kills + 1)

    def _planned(self, state: State, number: int) -> Iterator[tuple[str, State]]:
        """It begins at the newest cut. Its first window reaches as far as any commit in silver."""
        for phases in (SHORT, PHASES):
            if phases is PHASES or max(state.cut, state.silver.rows_ts, state.silver.ddl_ts) == 0:
                left = [n for n, (what, at) in enumerate(phases) if what != "cut" and at > state.cut]
                begun = Apply(left[0] if left else len(phases), None, phases)
                yield f"{'AB'[number]} plans {phases[0]}", _with(state, number, begun)

    def _done(self, silver: Silver, kind: str) -> int:
        """Up to where a phase of this kind is in silver already."""
        if kind == "rows":
            return silver.rows_ts
        return max(silver.ddl_ts, silver.rows_ts) if DDL_ONCE in self.cures else 0

    def _commit(self, state: State, number: int, name: str) -> tuple[str, State]:
        apply = state.applies[number]
        assert apply.looked is not None
        if apply.looked != state.silver and ONE_WINNER in self.cures:
            return f"{name}: lost the race", _with(state, number, apply._replace(looked=None))
        kind, at = apply.phases[apply.at]
        seen = apply.looked  # what is committed follows from what was seen, whoever committed meanwhile
        if kind == "truncate":
            rows_ts = max(seen.rows_ts, at - 1) if ROWS_TOO in self.cures else seen.rows_ts
            after = seen._replace(rows=(), ddl_ts=at, rows_ts=rows_ts)
        else:
            after = seen._replace(rows=(*seen.rows, at), rows_ts=at)
        committed = after._replace(number=seen.number + 1)
        return f"{name}: commits", _with(state, number, apply.gone_on())._replace(silver=committed)

    def broken(self, state: State) -> str:
        if not state.cut:
            return ""
        upto = max(state.cut, state.silver.rows_ts, state.silver.ddl_ts)
        found, wanted = state.silver.rows, told(upto)
        return "" if found == wanted else f"silver has rows {found} at {upto}, the log {wanted}"


def _with(state: State, number: int, apply: Apply) -> State:
    first, second = state.applies
    return state._replace(applies=(apply, second) if number == 0 else (first, apply))
