"""Snapshots in the model of tables' lives: a wave is read between two marks, apply takes it, an end mark ends it.

In:  a State; a Plan, behind its statements.
Out: what readers may do next; what becomes of a window's tables by waves and end marks: as resolve_watermarks does it
     (spark_jobs/apply_steps) with window/waves/snapshots.py. Of what it says the window records answers before its cut.

A wave has all rows of its table as of its low mark, one wave a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.model import asked, shards
from tests.model.world import EMPTIES, Bounds, Snap, State, is_there, is_unlogged, taker_of
from tidegate.remedy import Needs
from tidegate.standing import events as e
from tidegate.standing import snapshots as rules
from tidegate.standing.causes import Cause
from tidegate.standing.step import is_in
from tidegate.tables import State as Is

if TYPE_CHECKING:
    from tests.model.planning import Plan

_DDL = "CDTSULXAGKW"


def put(state: State, at: int, snap: Snap) -> State:
    """A state with another snapshot."""
    return state._replace(snaps=(*state.snaps[:at], snap, *state.snaps[at + 1 :]))


def read(bounds: Bounds, state: State) -> Iterator[tuple[str, State]]:
    """What a reader, or a person who ends his work, may do."""
    clock = state.clock + 1
    for at, (_, table) in enumerate(bounds.feeds):
        snap, standing = state.snaps[at] or Snap(), state.tables[table].standing
        is_new = not state.snaps[at] or bool(snap.over)
        wants = standing is not None and standing.lacks_rows if is_new else not snap.low
        if is_new and not wants and bounds.routed(table) and not asked.is_held(state, table):
            wants = shards.wants_rows(bounds, state, at)
        if wants and state.waves < bounds.snaps and is_there(state.logs[at], state.clock):
            begun = Snap(low=clock, begun=0 if is_new else snap.begun)
            yield f"a wave of {at} begins", put(state, at, begun)._replace(clock=clock, waves=state.waves + 1)
        elif snap.over:
            continue
        elif snap.low and not snap.high:
            yield f"the wave of {at} ends", put(state, at, snap._replace(high=clock))._replace(clock=clock)
        elif snap.taken and not snap.end:
            yield f"the end mark of {at}", put(state, at, snap._replace(end=clock))._replace(clock=clock)
        if snap.low and not snap.over and state.cancels < bounds.cancels:
            lost = put(state, at, snap._replace(over="lost"))
            yield f"a person ends the snapshot of {at}", lost._replace(cancels=state.cancels + 1)


def resolve(plan: Plan) -> None:
    """See the module's docstring."""
    _leave_takers(plan)
    shards.let_go(plan)
    for at, snap in enumerate(plan.state.snaps):
        table = plan.bounds.feeds[at][1]
        if snap is None:
            continue
        is_filled = is_in(plan.state.tables[table].standing, Is.SNAPSHOT) and not plan.bounds.routed(table)
        if is_filled and snap.over and snap.over != "done":
            plan.meet(table, e.SnapshotLost(""))
        if not snap.over:
            _meanwhile(plan, at, snap)
    for at, snap in enumerate(plan.state.snaps):
        if snap is None or at in plan.answers or plan.bounds.feeds[at][0] not in plan.sources():
            continue
        if snap.taken and snap.over in ("", "done") and plan.low < snap.high <= plan.upto and _is_here(plan, at, snap):
            plan.take_in(at)  # by a window that was killed: the cut gets its row of it
        if snap.over:
            continue
        if plan.low < snap.high <= plan.upto and not snap.taken:
            _take(plan, at, snap)
        elif snap.high and snap.high <= plan.state.cut and not snap.taken:
            _refuse_earlier(plan, at, snap)
        if plan.low < snap.end <= plan.upto and _is_here(plan, at, snap):
            plan.sweeps.add(at)


def _leave_takers(plan: Plan) -> None:
    """Who takes the rows of a table that lacks some lacks them, too."""
    for giver, taker, commit_ts in list(plan.moves):
        at, to = plan.bounds.physical(giver)[0], plan.bounds.physical(taker)[0]
        is_filled = is_in(plan.state.tables[giver].standing, Is.SNAPSHOT)
        if not is_filled and not asked.lacks_since(plan.bounds, plan.state, at, commit_ts - 1):
            continue
        plan.moves.remove((giver, taker, commit_ts))
        place = plan.place(to, commit_ts)
        if is_in(plan.held.get(taker) or plan.state.tables[taker].standing, Is.HELD):
            plan.meet_always(taker, e.RowsGone("", place))
        else:
            plan.hold(taker, Cause.NEEDS_ROWS, place, Needs.ROWS)


def _meanwhile(plan: Plan, at: int, snap: Snap) -> None:
    """What statements and holds of this window make of a snapshot that is under way."""
    table = plan.bounds.feeds[at][1]
    held = plan.held.get(table) or plan.state.tables[table].standing
    if snap.begun and is_in(held, Is.HELD) and rules.fails(held, keeps_past=False) and snap.filled:
        plan.answers[at] = snap._replace(over="failed")
    elif table in plan.tables:
        begun = max(plan.tables[table], snap.begun)
        for commit_ts, kind in plan.state.logs[at]:
            if not begun < commit_ts <= plan.upto:
                continue
            if kind in EMPTIES and not plan.bounds.routed(table):
                plan.whole.add(table)
            if kind in ("DS" if plan.bounds.routed(table) else "DGKW"):
                plan.answers[at] = snap._replace(over="lost")


def _refuse_earlier(plan: Plan, at: int, snap: Snap) -> None:
    """It was read before its table came to wait for rows, and none of its windows to come has its marks."""
    standing = plan.state.tables[plan.bounds.feeds[at][1]].standing
    if standing is not None and standing.lacks_rows:
        plan.answers[at] = _anew(snap)


def _anew(snap: Snap) -> Snap:
    """A refused wave is read again."""
    return Snap(begun=snap.begun, filled=snap.filled)


def _is_here(plan: Plan, at: int, snap: Snap) -> bool:
    """Whether this window answers for a table; else one that is still to come, when it is released."""
    table = plan.bounds.feeds[at][1]
    if plan.kind == "tables":
        return table in plan.catches
    here = plan.held.get(table) or plan.state.tables[table].standing
    if plan.kind == "source" or here is None:
        return True
    if here.state is Is.RELEASED:
        return table not in plan.held and not asked.waits_below(plan.bounds, plan.state, table, plan.low)
    return here.state is not Is.HELD or not snap.filled


def _take(plan: Plan, at: int, snap: Snap) -> None:
    if not _is_here(plan, at, snap):
        return
    table, log = plan.bounds.feeds[at][1], plan.state.logs[at]
    is_changed = any(snap.low < ts <= snap.high and kind in _DDL for ts, kind in log)
    here = plan.held.get(table) or plan.state.tables[table].standing
    if plan.bounds.routed(table):
        _take_shard(plan, at, snap, is_changed=is_changed)
        return
    if is_changed or (is_in(here, Is.HELD) and not _begin(plan, at, snap)):
        plan.answers.setdefault(at, _anew(snap))
        return
    if not plan.take_in(at):
        plan.answers[at] = _anew(plan.state.snaps[at] or snap)
        return
    if asked.applied(plan.bounds, plan.state, table) < snap.high:
        plan.waves[table] = snap.low
        plan.tables[table] = min(plan.tables[table], snap.low - 1)
    plan.taken.add(at)


def _take_shard(plan: Plan, at: int, snap: Snap, *, is_changed: bool) -> None:
    if is_changed or shards.refused(plan, at, snap) or not plan.take_in(at):
        plan.answers.setdefault(at, _anew(plan.state.snaps[at] or snap))
        return
    if asked.applied(plan.bounds, plan.state, plan.bounds.feeds[at][1]) < snap.high:
        plan.chunks[at] = snap.low
    plan.taken.add(at)


def _begin(plan: Plan, at: int, snap: Snap) -> bool:
    """Let a table that isn't whole begin anew at the wave's low mark, if it may."""
    table = plan.bounds.feeds[at][1]
    here = plan.held.get(table) or plan.state.tables[table].standing
    log = plan.state.logs[at]
    known = asked.known_log(plan.bounds, plan.state, at)
    if any(commit_ts > snap.low and kind in _DDL for commit_ts, kind in known):
        return False  # by a window that was killed, perhaps: no version begins below one that is known
    if snap.begun != snap.low:
        if plan.kind == "source" or rules.came_later(here, snap.low) or (known and known[-1][1] in "DG"):
            return False
        if any(snap.low < ts <= plan.upto and kind in _DDL for ts, kind in log) or is_unlogged(log, snap.low):
            return False
        plan.state = put(plan.state, at, snap._replace(begun=snap.low))
        plan.half = plan.state
    plan.held.pop(table, None)
    applied = asked.applied(plan.bounds, plan.state, table)
    plan.note(table, e.WaveBegins("s", snap.low))
    plan.state = put(plan.state, at, snap._replace(begun=snap.low, filled=True))
    for commit_ts, kind in log:
        if kind in "GW" and applied < commit_ts < snap.low:
            taker = plan.bounds.feeds[taker_of(plan.state.logs, commit_ts, at)][1]
            if asked.applied(plan.bounds, plan.state, taker) < commit_ts:
                plan.meet_always(taker, e.RowsGone("", plan.place(at, commit_ts)))
    return True
