"""How the model's application writes a window and publishes it, a commit at a time.

In:  a State with a window.
Out: what may come next, by name; as spark_jobs/apply_steps/publish_cut.py orders its commits.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.model import asked, shards, waves
from tests.model.world import (
    NOT_BEHIND,
    ROWS,
    Bounds,
    Snap,
    State,
    Table,
    Window,
    giver_of,
    is_unlogged,
    replaced,
    rows_at,
    swapped,
)
from tidegate.standing import events as e
from tidegate.standing import step as rules
from tidegate.standing.standing import Standing
from tidegate.tables import State as Is

Found = dict[int, Standing]


def written(bounds: Bounds, state: State, window: Window, table: int, after: int) -> Table:
    """Silver behind a window's rows."""
    before = state.tables[table]
    low = dict(window.waves).get(table)
    if max(after, asked.written(bounds, state, table)) >= window.upto:
        return before
    rows = set(before.rows) if low is None else set(rows_at(state.logs, bounds.physical(table)[0], low))
    after = max(after, asked.written(bounds, state, table), window.low) if low is None else low
    gave = before.gave
    begins, chunks = dict(window.begins), dict(window.chunks)
    for at in bounds.physical(table):
        if not _has(bounds, state, window, bounds.feeds[at][0]):
            continue
        if bounds.routed(table):
            rows = _of_shard(state, window, at, rows, (begins.get(at, after), chunks.get(at), before.done))
            continue
        for commit_ts, kind in state.logs[at]:
            if not after < commit_ts <= window.upto:
                continue
            if kind in "GW":
                gave = (*gave, (commit_ts, tuple(sorted(rows))))
            if kind in "KW":
                rows = _taken(bounds, state, commit_ts, at)
            elif kind in ROWS and kind != "S":
                if not is_unlogged(state.logs[at], commit_ts):
                    rows.add(commit_ts)
            elif kind in "CDTG" and commit_ts > before.done:  # it is done once
                rows -= rows
    past = (before.version, before.rows, before.gave) if bounds.losses else ()
    done = before.done if before.done > window.upto else 0
    return before._replace(rows=tuple(sorted(rows)), version=window.upto, gave=gave, past=past, done=done)


def half_written(bounds: Bounds, state: State, window: Window, table: int, after: int) -> Table | None:
    """Silver behind the window's last statement that removes its rows, and before the rows after that; None: it has no
    such statement. Where no row stays, rows before the statement are never written.
    """
    before = state.tables[table]
    after = max(after, asked.written(bounds, state, table), window.low)
    here = [at for at in bounds.physical(table) if _has(bounds, state, window, bounds.feeds[at][0])]
    ops = sorted(op for at in here for op in state.logs[at] if after < op[0] <= window.upto)
    emptying = [commit_ts for commit_ts, kind in ops if kind in "DT" and commit_ts > before.done]
    if not emptying or table in (*dict(window.waves), *dict(window.chunks)):
        return None
    silver = written(bounds, state, window._replace(upto=emptying[-1]), table, after)
    stays = bounds.routed(table) or bounds.keeps_deleted
    begun = stays and any(commit_ts < emptying[-1] and kind in ROWS for commit_ts, kind in ops)
    return silver._replace(version=emptying[-1] - 1 if begun else before.version, done=emptying[-1])


def _of_shard(state: State, window: Window, at: int, rows: set[int], begins: tuple[int, int | None, int]) -> set[int]:
    """A routed table's rows behind a window's changes of one shard."""
    after, low, done = begins
    own = {commit_ts for commit_ts, _ in state.logs[at]}
    if low is not None:
        after, rows = low, (rows - own) | set(rows_at(state.logs, at, low))
    for commit_ts, kind in sorted((*state.logs[at], *state.made[at])):
        if not after < commit_ts <= window.upto:
            continue
        if kind in ROWS and kind != "S":
            rows = rows | {commit_ts}
        elif kind in "CDT" and commit_ts > done:
            rows = rows - {each for each in own if each <= commit_ts}
    return rows


def _has(bounds: Bounds, state: State, window: Window, source: int) -> bool:
    """Whether a window has a source's changes."""
    assert state.read is not None
    if window.kind == "source":
        return source == window.source
    return window.kind == "tables" or (state.read[1][source] and state.behind[source] == NOT_BEHIND)


def _taken(bounds: Bounds, state: State, commit_ts: int, taker: int) -> set[int]:
    """What the giver's silver has just before a rename."""
    giver = giver_of(state.logs, commit_ts, taker)
    table = bounds.feeds[giver][1]
    if commit_ts in (gave := dict(state.tables[table].gave)):
        return set(gave[commit_ts])
    after = asked.applied(bounds, state, table)
    if after >= commit_ts:
        return set(state.tables[table].rows)
    rows = state.tables[table].rows
    for at, kind in state.logs[giver]:
        if after < at < commit_ts and kind in "KW":
            rows = tuple(_taken(bounds, state, at, giver))
        elif after < at < commit_ts:
            rows = (*rows, at) if kind in ROWS and kind != "S" else () if kind in "CDTG" else rows
    return set(rows)


def closing(bounds: Bounds, state: State, window: Window) -> Iterator[tuple[str, State]]:
    """The next commit with which a window is published."""
    if window.stage == 0:
        found = decided(bounds, state, window)
        window = window._replace(found=tuple(sorted(found.items())))
        state = state._replace(window=window)
    stages = STAGES[window.kind]
    for stage in range(window.stage, len(stages)):
        made = stages[stage](bounds, state, window)
        last = stage == len(stages) - 1
        if made != state or last:
            further = None if last else window._replace(stage=stage + 1)
            yield f"{window.kind} window: commit {stage + 1}", made._replace(window=further)
            return


def decided(bounds: Bounds, state: State, window: Window) -> Found:
    """What a window says of tables."""
    found = dict(window.held)
    if window.kind == "source":
        return _whole(bounds, state, window, found)
    event: e.Event = e.CutReached(window.low, window.upto) if window.kind == "main" else e.CaughtUp(window.upto)
    assert state.read is not None
    names = window.catches if window.kind == "tables" else bounds.tables
    for table in names:
        standing = state.tables[table].standing
        is_met = table in window.taken or (standing is not None and standing.state is Is.RELEASED)
        if table in found or is_unseen(window, table) or not is_met or not state.read[0][table]:
            continue
        after, _ = asked.after(bounds, state, table, event)
        if after is not None and after != standing:
            found[table] = after
    return _rested(bounds, state, window, _whole(bounds, state, window, found))


def _rested(bounds: Bounds, state: State, window: Window, found: Found) -> Found:
    """What the rows that shards lack make of their tables, where nothing else keeps those from going on."""
    assert state.read is not None
    for table in bounds.tables:
        event = shards.rested(bounds, state, table, window.upto) if state.read[0][table] else None
        if event is None:
            continue
        before = found.get(table) or state.tables[table].standing
        after = asked.plain(rules.step(before, event, asked.facts(bounds, state, table)).standing)
        if after is not None and after != before:
            found[table] = after
    return found


def _whole(bounds: Bounds, state: State, window: Window, found: Found) -> Found:
    """Tables whose snapshot ended well, or which a statement emptied."""
    ended = {bounds.feeds[at][1] for at in window.swept if _ends_well(bounds, state, window, at)}
    ended = {table for table in ended if not bounds.routed(table)}
    for table in {*window.whole, *ended} - found.keys():
        after, _ = asked.after(bounds, state, table, e.Whole(window.upto))
        if after is not None and after != state.tables[table].standing:
            found[table] = after
    return found


def _ends_well(bounds: Bounds, state: State, window: Window, at: int) -> bool:
    snap = dict(window.answers).get(at) or state.snaps[at]
    return snap is not None and snap.taken and not snap.over and bounds.feeds[at][1] not in dict(window.held)


def _answers(bounds: Bounds, state: State, window: Window) -> State:
    """What becomes of snapshots: of a table that left the window for want of rows the wave is read again."""
    held = dict(window.held)
    for at, snap in window.answers:
        standing = held.get(bounds.feeds[at][1])
        if not snap.taken or standing is None:
            state = waves.put(state, at, snap)
        elif standing.lacks_rows:
            state = waves.put(state, at, Snap(begun=snap.begun, filled=snap.filled))
    for at in window.swept:
        if _ends_well(bounds, state, window, at):
            state = waves.put(state, at, state.snaps[at]._replace(over="done"))  # type: ignore[union-attr]
    return state


def is_unseen(window: Window, table: int) -> bool:
    """Whether a person let it go on since the window was planned: the window has it as it was."""
    return table in window.unseen


def _states(bounds: Bounds, state: State, window: Window) -> State:
    for table, standing in window.found:
        state = replaced(state, table, standing=standing)
    return state


def _rows(bounds: Bounds, state: State, window: Window) -> State:
    """Of the cut, of whoever has news; below it only their own rows are new."""
    held, found = dict(window.held), dict(window.found)
    named = {*window.wrote, *held}
    named |= {table for table, standing in found.items() if standing.state is not Is.RELEASED}
    if window.kind == "source" and window.upto >= state.cut:
        named |= goes_back(bounds, state, window.source)
    for table in named:
        standing = found.get(table) or state.tables[table].standing
        is_waiting = standing is not None and standing.state in (Is.HELD, Is.RELEASED)
        waits = standing.applied_ts if is_waiting and standing is not None else -1
        state = _row(bounds, state, table, waits)
    return state


def _row(bounds: Bounds, state: State, table: int, waits: int) -> State:
    """The cut's row of a table."""
    of = state.tables[table]
    said = of.version if bounds.losses else 0
    return replaced(state, table, shown=of.rows, waits=waits, said=said)


def _swept(bounds: Bounds, window: Window) -> set[int]:
    return {bounds.feeds[at][1] for at in window.swept}


def goes_back(bounds: Bounds, state: State, source: int) -> set[int]:
    """Tables of a source that a window brings to the cut, written in it or not."""
    standings = [(table, state.tables[table].standing) for table in bounds.tables]
    return {table for table, of in standings if of is not None and of.source == asked.SOURCES[source]}


def _main_rows(bounds: Bounds, state: State, window: Window) -> State:
    found = dict(window.found)
    whole = {table for table, of in window.found if rules.is_in(state.tables[table].standing, Is.ACTIVE) and of}
    whole = whole & {*window.whole, *_swept(bounds, window)}
    routed = {table for table, of in window.found if bounds.routed(table) and of.state in (Is.ACTIVE, Is.SNAPSHOT)}
    for table in {*window.wrote, *dict(window.held), *whole, *routed}:
        standing = found.get(table) or state.tables[table].standing
        is_waiting = standing is not None and standing.state in (Is.HELD, Is.RELEASED)
        waits = standing.applied_ts if is_waiting and standing is not None else -1
        state = _row(bounds, state, table, waits)
    return state._replace(cut=window.upto, fresh=())


def _reached(bounds: Bounds, state: State, window: Window) -> State:
    """How far a source is. At the cut it is back, unless silver has more of a table of shards than the cut."""
    ahead = any(asked.reached(state, table) > state.cut for table in bounds.tables if bounds.routed(table))
    upto = NOT_BEHIND if window.upto >= state.cut and not ahead else window.upto
    return state._replace(behind=swapped(state.behind, window.source, upto))


def _back(bounds: Bounds, state: State, window: Window) -> State:
    if state.behind[window.source] != NOT_BEHIND:
        return state
    return back(bounds, state, window.source)


def back(bounds: Bounds, state: State, source: int) -> State:
    """Its tables, once a source is no longer behind."""
    for table in bounds.tables:
        back = asked.note(bounds, state, table, e.SourceBack(asked.SOURCES[source]))
        event = shards.rested(bounds, back, table, state.cut) if back != state else None
        state = back if event is None else asked.note(bounds, back, table, event)
    return state


STAGES = {
    "main": (_states, _answers, _main_rows),
    "tables": (_answers, _rows, _states),
    "source": (_states, _answers, _rows, _reached, _back),
}
