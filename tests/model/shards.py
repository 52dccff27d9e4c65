"""Shards of a routed table in the model: which lack rows, and what becomes of their table and their snapshots by that.

In:  a State; a Plan.
Out: states with versions that apply itself makes; events of tables. As spark_jobs/window/waves/shards.py does it.

A version that apply makes is (commit_ts, kind) in State.made: O: it is left out from there on; B: a wave begins it; D:
it is said once more that it is gone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import product
from typing import TYPE_CHECKING

from tests.model import asked
from tests.model.world import NOT_BEHIND, Bounds, Log, Snap, State
from tidegate.standing import events as e
from tidegate.standing import snapshots as rules
from tidegate.standing.step import is_in
from tidegate.tables import State as Is

if TYPE_CHECKING:
    from tests.model.planning import Plan

_WAITS = "SO"
_VERSIONS = "CDTSABO"


def versions(bounds: Bounds, state: State, at: int) -> Log:
    """All that histories have of a physical table, oldest first."""
    known = tuple(op for op in asked.known_log(bounds, state, at) if op[1] in _VERSIONS)
    return tuple(sorted((*known, *state.made[at]), key=lambda op: op[0]))


def part(bounds: Bounds, state: State, at: int, after: int, upto: int) -> int | None:
    """After which commit_ts a shard's changes in (after, upto] count; None when it lacks rows at the end."""
    begin, waits = after, False
    for commit_ts, kind in versions(bounds, state, at):
        if commit_ts > upto:
            break
        if waits and kind not in (*_WAITS, "A"):
            begin = max(begin, commit_ts - 1)
        waits = kind in _WAITS or (waits and kind == "A")
    return None if waits else begin


def lacks_rows(bounds: Bounds, state: State, at: int, at_ts: int) -> bool:
    """Whether rows of a shard aren't in silver, and won't come by the log."""
    known = [kind for commit_ts, kind in versions(bounds, state, at) if commit_ts <= at_ts]
    if not known or known[-1] == "D":
        return False
    snap = state.snaps[at]
    begun = snap.begun if snap is not None else 0
    is_filled = bool(begun) and bool(asked.lacks_since(bounds, state, at, max(at_ts, begun)))
    return part(bounds, state, at, 0, at_ts) is None or is_filled


def wants_rows(bounds: Bounds, state: State, at: int) -> bool:
    """Whether a reader begins a snapshot of a shard by itself."""
    known = versions(bounds, state, at)
    return bool(known) and part(bounds, state, at, 0, known[-1][0]) is None


def leave_out(bounds: Bounds, state: State, ats: Collection[int], joins: Mapping[int, int]) -> tuple[State, list[int]]:
    """The state with versions of those that lack rows from now on; those that this can't be said of yet."""
    later = []
    for at in ats:
        known, source = versions(bounds, state, at), bounds.feeds[at][0]
        if known and (part(bounds, state, at, 0, known[-1][0]) is None or known[-1][1] == "D"):
            continue
        last = known[-1][0] if known else 0
        at_ts = asked.position(state, source)
        if source in joins:
            at_ts = min(at_ts, max(joins[source], last))
        if last > at_ts:
            later.append(at)
            continue
        snap = state.snaps[at]
        if snap is not None and not snap.over and (snap.begun or snap.taken):
            state = put(state, at, snap._replace(over="failed"))
        state = made(state, at, (at_ts, "O"))
    return state, later


def made(state: State, at: int, version: tuple[int, str]) -> State:
    """A state with one more version of a physical table."""
    return state._replace(made=(*state.made[:at], (*state.made[at], version), *state.made[at + 1 :]))


def put(state: State, at: int, snap: Snap) -> State:
    """A state with another snapshot."""
    return state._replace(snaps=(*state.snaps[:at], snap, *state.snaps[at + 1 :]))


# --- a window -----------------------------------------------------------------------------------------
def let_go(plan: Plan) -> None:
    """A shard whose snapshot is over without having ended lacks rows, and waits for another one."""
    for at, snap in enumerate(plan.state.snaps):
        if snap is None or not plan.bounds.routed(plan.bounds.feeds[at][1]) or snap.over not in ("failed", "lost"):
            continue
        if snap.begun and lacks_rows(plan.bounds, plan.state, at, plan.state.cut):
            plan.state, _ = leave_out(plan.bounds, plan.state, [at], {})


def refused(plan: Plan, at: int, snap: Snap) -> bool:
    """Whether a wave of a shard isn't taken; else the shard begins with it, where it isn't whole."""
    b, table = plan.bounds, plan.bounds.feeds[at][1]
    held = plan.held.get(table) or plan.state.tables[table].standing
    is_held = is_in(held, Is.HELD)
    ends = (part(b, plan.state, at, 0, snap.low), part(b, plan.state, at, 0, plan.upto))
    anew = is_held or None in ends or not versions(b, plan.state, at)
    if _splits(plan, at, snap.low, anew):
        return True
    return anew and not _begins(plan, at, snap)


def _splits(plan: Plan, at: int, low: int, anew: bool) -> bool:
    b, table = plan.bounds, plan.bounds.feeds[at][1]
    applied = asked.applied(plan.bounds, plan.state, table)
    lows = {**plan.chunks, at: low}
    lowest = min(lows.values())
    begins = [low] if anew else []
    for other in b.physical(table):
        after = lowest if other in lows else applied
        begins += [ts for ts, _ in versions(b, plan.state, other) if ts > after]
    return lowest <= applied and any(lowest < ts <= applied + 1 for ts in begins)


def _begins(plan: Plan, at: int, snap: Snap) -> bool:
    b, table = plan.bounds, plan.bounds.feeds[at][1]
    known = versions(b, plan.state, at)
    if (snap.low, "B") not in known:
        held = plan.held.get(table) or plan.state.tables[table].standing
        if asked.applied(plan.bounds, plan.state, table) >= snap.high:
            return False  # a window that was killed has written its table beyond it, and didn't take it
        if plan.kind == "source" or rules.came_later(held, snap.low) or _begins_over(plan, at):
            return False
        if known and (known[-1][0] > snap.low or known[-1][1] == "D"):
            return False
        gone = _gone_again(plan, at, snap.low)
        plan.state = put(made(plan.state, at, (snap.low, "B")), at, snap._replace(begun=snap.low, filled=True))
        for other in gone:
            plan.state = made(plan.state, other, (snap.low, "D"))
        plan.half = plan.state
    plan.held.pop(table, None)
    plan.note(table, e.ShardBegins())
    plan.state = put(plan.state, at, snap._replace(begun=snap.low, filled=True))
    return True


def _begins_over(plan: Plan, at: int) -> bool:
    """Whether a held table can't go on with this shard; else its others are left out."""
    b, table = plan.bounds, plan.bounds.feeds[at][1]
    if table in plan.held:
        return True
    standing = plan.state.tables[table].standing
    if standing is None or standing.state is not Is.HELD:
        return False
    if not standing.lacks_rows or plan.kind != "main" or asked.late(b, plan.state, table):
        return True
    others = [other for other in b.physical(table) if other != at and asked.known_log(b, plan.state, other)]
    plan.state, later = leave_out(b, plan.state, others, {})
    return bool(later)


def _gone_again(plan: Plan, at: int, low: int) -> list[int]:
    b, table = plan.bounds, plan.bounds.feeds[at][1]
    standing = plan.state.tables[table].standing
    if standing is None or standing.state is not Is.HELD:
        return []
    last = {other: versions(b, plan.state, other)[-1:] for other in b.physical(table) if other != at}
    return [
        other
        for other, of in last.items()
        if of and of[0][1] == "D" and standing.applied_ts < of[0][0] < min(low, plan.upto)
    ]


def leave_out_shards(plan: Plan) -> None:
    """Whose rows a window takes of its routed tables, and after which commit_ts."""
    b = plan.bounds
    for table in [table for table in plan.tables if b.routed(table)]:
        lacking = set()
        for at in b.physical(table):
            begin = max(plan.tables[table], asked.applied(plan.bounds, plan.state, table))
            begin = plan.chunks[at] - 1 if at in plan.chunks else begin
            taken = part(b, plan.state, at, begin, plan.upto)
            if taken is None:
                lacking.add(at)
                plan.chunks.pop(at, None)
            plan.begins[at] = plan.upto if taken is None else taken
        for at, low in product(b.physical(table), plan.chunks.values()):
            if (low, "D") in plan.state.made[at]:
                plan.begins[at] = low - 1
        if {*b.physical(table)} & plan.touched <= lacking:
            del plan.tables[table]


def rested(bounds: Bounds, state: State, table: int, upto: int) -> e.Event | None:
    """What a routed table meets that lacks rows of a shard at the end of a window, or no longer does."""
    if not bounds.routed(table):
        return None
    assert state.read is not None
    cut = max(upto, state.cut)
    lacking = []
    for at in bounds.physical(table):
        source = bounds.feeds[at][0]
        if not state.read[1][source]:
            continue
        known = [kind for ts, kind in versions(bounds, state, at) if ts <= cut]
        joins = bool(known) and known[-1] != "D" and state.behind[source] != NOT_BEHIND
        behind = state.behind[source]
        if joins or lacks_rows(bounds, state, at, cut if behind == NOT_BEHIND else behind):
            lacking.append(at)
    is_filled = state.tables[table].standing is not None and is_in(state.tables[table].standing, Is.SNAPSHOT)
    if lacking:
        return None if is_filled else e.ShardsLack("", upto)
    return e.Whole(upto) if is_filled else None
