"""When a held table's hold is over because the table was emptied at the source, in the model.

In:  a State, a held table.
Out: the tables that go on, with the commit_ts that emptied each; as spark_jobs/window/life/mending.py has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.model import asked
from tests.model.world import EMPTIES, Bounds, State, is_unlogged, taker_of
from tidegate.standing.standing import Standing
from tidegate.tables import State as Is

Held = Mapping[int, Standing]


def ends(bounds: Bounds, state: State, table: int, upto: int | None, held: Held) -> dict[int, int]:
    """{} when the hold isn't over. upto: None: at the cut."""
    root = _first(state, table, held)
    first = _next(bounds, state, root, True, (0, upto), held) if root >= 0 else 0
    if not first:
        return {}
    found, waiting = {root: first}, [root]
    while waiting:
        name = waiting.pop()
        for taker, taken in _given(bounds, state, name, asked.applied(bounds, state, name), found[name]):
            if taker in found and found[taker] > taken:
                continue
            same = _first(state, taker, held) == root
            later = _next(bounds, state, taker, taker == root, (taken, upto), held) if same else 0
            if not later:
                return {}
            found[taker] = later
            waiting.append(taker)
    return found


def _held(state: State, table: int, held: Held) -> Standing | None:
    standing = held.get(table) or state.tables[table].standing
    return standing if standing is not None and standing.state is Is.HELD else None


def _first(state: State, table: int, held: Held) -> int:
    """The table whose hold it is that this one waits for; -1 when one of them isn't held."""
    seen: set[int] = set()
    while table not in seen and (standing := _held(state, table, held)) is not None:
        seen.add(table)
        if not standing.partner:
            return table
        table = asked.NAMES.index(standing.partner)
    return -1


def _next(bounds: Bounds, state: State, table: int, own: bool, span: tuple[int, int | None], held: Held) -> int:
    """The first commit_ts in a span that emptied a table, and with it took away what it waits for; 0: none."""
    after, upto = span
    standing = _held(state, table, held)
    assert standing is not None, "asked of tables of the hold"
    if bounds.routed(table):
        return 0
    at = bounds.physical(table)[0]
    most = asked.position(state, bounds.feeds[at][0]) if upto is None else upto
    found: list[int] = []
    for commit_ts, kind in asked.known_log(bounds, state, at):
        if not asked.applied(bounds, state, table) < commit_ts <= most:
            continue
        if kind == "S" or (kind in "UCTDGKX" and is_unlogged(state.logs[at], commit_ts)):
            found.clear()
        elif (
            kind in EMPTIES
            and commit_ts > after
            and standing.ends_by_emptying(commit_ts, first=own, rows_stay=bounds.keeps_deleted)
        ):
            found.append(commit_ts)
    return found[0] if found else 0


def _given(bounds: Bounds, state: State, table: int, after: int, upto: int) -> Iterator[tuple[int, int]]:
    """Who takes rows of a table in (after, upto] that silver doesn't have there yet."""
    assert state.read is not None
    for at in bounds.physical(table):
        for commit_ts, kind in state.logs[at]:
            if after < commit_ts <= upto and kind in "GW":
                taker = bounds.feeds[taker_of(state.logs, commit_ts, at)][1]
                if state.read[0][taker] and asked.applied(bounds, state, taker) < commit_ts:
                    yield taker, commit_ts
