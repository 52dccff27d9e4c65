"""Silver that somebody put back to an older state, in the model: what a start, or a release, finds out about it.

In:  a State without an application, or one that has just started.
Out: the State with a table's silver as it was before its last commit; what apply makes of that, by the real answer()
     and FromBronze, as spark_jobs/window/standing/silver_guard.py asks them. While an application runs nobody does it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tests.model import asked
from tests.model.world import Bounds, State, replaced
from tidegate.lake.standing.from_bronze import FromBronze
from tidegate.remedy import Needs
from tidegate.standing import events as e
from tidegate.standing import silver
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.tables import State as Is


def put_back(bounds: Bounds, state: State) -> Iterator[tuple[str, State]]:
    """Each table may lose its last commit, once the cut names it."""
    if state.losses >= bounds.losses or state.ticks:
        return
    for table in bounds.tables:
        of = state.tables[table]
        if of.past and of.said == of.version:
            version, rows, gave = of.past
            older = replaced(state, table, version=version, rows=rows, gave=gave, past=())
            yield f"silver of {table} is put back", older._replace(losses=state.losses + 1)


def asked_at_start(bounds: Bounds, state: State) -> State:
    """Of all tables but those that wait for something else than rows, or of which nothing in silver counts."""
    standings = {table: state.tables[table].standing for table in bounds.tables}
    return _asked(bounds, state, [table for table, of in standings.items() if not _is_at_rest(of)])


def asked_when_released(bounds: Bounds, state: State) -> State:
    """Of those that go on again."""
    standings = {table: state.tables[table].standing for table in bounds.tables}
    return _asked(bounds, state, [table for table, of in standings.items() if of and of.state is Is.RELEASED])


def is_unseen(state: State, table: int) -> bool:
    """Whether silver lacks what was published, and nobody has looked yet."""
    return state.tables[table].said > state.tables[table].version


def _is_at_rest(standing: Standing | None) -> bool:
    return standing is not None and standing.state in silver.AT_REST and not standing.lacks_rows


def _asked(bounds: Bounds, state: State, tables: Collection[int]) -> State:
    for table in tables:
        of = state.tables[table]
        standing = of.standing
        is_released = standing is not None and standing.state is Is.RELEASED
        if is_released and asked.dropped(bounds, state, table, asked.mark(state, table)):
            continue
        version = of.version or silver.NO_SILVER
        said = silver.Said(of.said or silver.NO_SILVER, "id", of.said)
        verdict = silver.answer(said, silver.Shown(version, "id", of.version, of.version, bool(of.rows), born=True))
        if verdict.unlike is None:
            continue
        catches_up = standing is None or standing.state in silver.CATCHES_UP
        at_ts = (
            _from_bronze(bounds, state, table).way(verdict, standing)
            if catches_up and not bounds.routed(table)
            else None
        )
        event: e.Event = e.Refused(Cause.NEEDS_ROWS, "", needs=Needs.ROWS, at_ts=state.cut)
        if at_ts is not None:
            event = e.SilverOlder(at_ts, "")
        state = replaced(asked.note(bounds, state, table, event), table, said=of.version)
    return state


def _from_bronze(bounds: Bounds, state: State, table: int) -> FromBronze:
    (at,) = bounds.physical(table)
    snap = state.snaps[at]
    return FromBronze(
        state.cut,
        asked.versions_of(bounds, state, at),
        0,
        0,
        bounds.keeps_deleted,
        lambda at_ts: snap is not None and (snap.over != "done" or snap.high > at_ts),
    )
