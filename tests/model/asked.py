"""How the model asks the rules: step() with real standings, events and facts, and follow() with a real ground.

In:  a State.
Out: States with the standings that the rules made; reasons are blanked, for they decide nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache

from tests.model.world import NOT_BEHIND, Bounds, Log, State, is_there, replaced
from tidegate.merge.follow import FollowVerdict, Ground, LeftAt, Physical, follow
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.standing import step as rules
from tidegate.standing.events import Event
from tidegate.standing.facts import Facts
from tidegate.standing.standing import Standing
from tidegate.tables import State as Is

NAMES = "tvw"
SOURCES = "abc"
_KINDS = {"C": "create", "T": "truncate", "D": "drop", "G": "rename", "K": "rename"}


def position(state: State, source: int) -> int:
    """Up to where silver has all of a source."""
    return state.cut if state.behind[source] == NOT_BEHIND else state.behind[source]


def feeding(bounds: Bounds, state: State, table: int) -> set[int]:
    """The sources of the physical tables that histories know, and that flow into a logical one."""
    sources = set()
    for at in bounds.physical(table):
        source, log = bounds.feeds[at][0], state.logs[at]
        is_read = state.read is None or state.read[1][source]
        if is_read and log and log[0][0] <= state.known[source]:
            sources.add(source)
    return sources


def late(bounds: Bounds, state: State, table: int) -> set[int]:
    """Those of them that are behind the cut."""
    return {source for source in feeding(bounds, state, table) if state.behind[source] != NOT_BEHIND}


def mark(state: State, table: int) -> int:
    """Up to where control tables say that silver has a table."""
    standing = state.tables[table].standing
    if standing is None or standing.state not in (Is.HELD, Is.RELEASED, Is.LEFT):
        return state.cut
    if standing.source:
        return max(standing.applied_ts, position(state, SOURCES.index(standing.source)))
    return standing.applied_ts


def written(bounds: Bounds, state: State, table: int) -> int:
    """Up to where silver has a table, by its own word."""
    of = state.tables[table]
    stays = bounds.routed(table) or bounds.keeps_deleted
    return of.version if stays else max(of.version, of.done - 1)


def reached(state: State, table: int) -> int:
    """The newest commit_ts of silver's commits."""
    return max(state.tables[table].version, state.tables[table].done)


def applied(bounds: Bounds, state: State, table: int) -> int:
    """Up to where silver has a table."""
    return max(written(bounds, state, table), mark(state, table))


def waits_below(bounds: Bounds, state: State, table: int, low: int) -> bool:
    """Whether a table is released, and to catch up with low first."""
    if not rules.is_in(state.tables[table].standing, Is.RELEASED):
        return False
    return mark(state, table) < low or (low >= state.cut and bool(late(bounds, state, table)))


def is_held(state: State, table: int) -> bool:
    """Whether a table waits for a person, a pause, a snapshot or a partner."""
    return state.tables[table].standing is not None and rules.is_in(state.tables[table].standing, Is.HELD)


def dropped(bounds: Bounds, state: State, table: int, at_ts: int) -> bool:
    """Whether no physical table of a logical one is left."""
    logs = [state.logs[at] for at in bounds.physical(table)]
    met = [log for log in logs if log and log[0][0] <= at_ts]
    return bool(met) and not any(is_there(log, at_ts) for log in met)


def filled(bounds: Bounds, state: State, table: int, at_ts: int) -> tuple[str, int] | None:
    """The snapshot that emptied a table, and hasn't ended well at a commit_ts."""
    physical = bounds.physical(table)
    snap = state.snaps[physical[0]] if state.snaps and len(physical) == 1 else None
    begun = lacks_since(bounds, state, physical[0], max(at_ts, snap.begun)) if snap is not None else 0
    return ("s", begun) if begun else None


def lacks_since(bounds: Bounds, state: State, at: int, upto: int) -> int:
    """The low mark since which a physical table lacks rows at a commit_ts, its silver having been emptied; 0: none."""
    snap = state.snaps[at] if state.snaps else None
    if snap is None or not snap.begun or snap.over == "done" or snap.begun > upto:
        return 0
    log = known_log(bounds, state, at)
    return 0 if any(snap.begun < commit_ts <= upto and kind in "CTDG" for commit_ts, kind in log) else snap.begun


def known_log(bounds: Bounds, state: State, at: int) -> Log:
    """What was replayed of a physical table's statements."""
    upto = state.known[bounds.feeds[at][0]]
    return tuple(op for op in state.logs[at] if op[0] <= upto)


def facts(bounds: Bounds, state: State, table: int) -> Facts:
    """As spark_jobs/window/standing/facts.py answers."""
    return Facts(
        NAMES[table],
        state.cut,
        applied=lambda: applied(bounds, state, table),
        written=lambda: written(bounds, state, table),
        reached=lambda: reached(state, table),
        mark=lambda: mark(state, table),
        position=lambda source: position(state, SOURCES.index(source)),
        late=lambda: [SOURCES[source] for source in late(bounds, state, table)],
        feeds=lambda: [SOURCES[source] for source in feeding(bounds, state, table)],
        dropped=lambda at_ts: dropped(bounds, state, table, at_ts),
        filled=lambda at_ts: filled(bounds, state, table, at_ts),
        has_silver=lambda: state.tables[table].version > 0,
    )


def after(bounds: Bounds, state: State, table: int, event: Event) -> tuple[Standing | None, bool]:
    """What an event makes of a table."""
    done = rules.step(state.tables[table].standing, event, facts(bounds, state, table))
    return plain(done.standing), done.takers_lack


@cache
def plain(standing: Standing | None) -> Standing | None:
    """A standing without what people read; equal ones are one object."""
    return None if standing is None else replace(standing, reason="", since=None)


def note(bounds: Bounds, state: State, table: int, event: Event) -> State:
    """A table meets an event, which is recorded."""
    standing, _ = after(bounds, state, table, event)
    return state if standing == state.tables[table].standing else replaced(state, table, standing=standing)


# --- the pipeline file ------------------------------------------------------------------------------
def physical_name(bounds: Bounds, at: int) -> Physical:
    """Source, database, table."""
    return Physical(SOURCES[bounds.feeds[at][0]], "d", f"p{at}")


@cache
def _versions(log: Log, name: Physical, upto: int) -> tuple[TableVersion, ...]:
    made = []
    for number, (at, kind) in enumerate((op for op in log if op[0] <= upto and op[1] in "CTDSAGK"), 1):
        status = VersionStatus.DROPPED if kind in "DG" else VersionStatus.ACTIVE
        status = VersionStatus.NEEDS_SNAPSHOT if kind == "S" else status
        made.append(TableVersion(*name, number, at, "f", at, _KINDS.get(kind, "alter"), "", (), (), "utf8", status))
    return tuple(made)


def verdicts(bounds: Bounds, state: State, old: set[int], new: set[int]) -> Mapping[str, FollowVerdict]:
    """Of the logical tables that physical ones join or leave."""
    names = {at: physical_name(bounds, at) for at in range(len(bounds.feeds))}
    back = {name: at for at, name in names.items()}
    tables = {at: NAMES[bounds.feeds[at][1]] for at in names}
    left: dict[tuple[Physical, str], LeftAt] = {}
    for at, name in names.items():
        if (where := state.tables[bounds.feeds[at][1]].left) is not None:
            left[name, tables[at]] = where
        elif at in state.left_shards:
            left[name, tables[at]] = LeftAt(state.left_sources[bounds.feeds[at][0]])

    def versions(name: Physical) -> Collection[TableVersion]:
        at = back[name]
        return versions_of(bounds, state, at)

    ground = Ground(
        state.cut,
        versions,  # type: ignore[arg-type]
        left,
        lambda name: mark(state, NAMES.index(name)),
        lambda name: state.tables[NAMES.index(name)].version > 0,
        lambda _: not bounds.keeps_deleted,
        {},
        lambda name: not state.tables[NAMES.index(name)].rows,
    )
    return follow({names[at]: tables[at] for at in old}, {names[at]: tables[at] for at in new}, ground)


def versions_of(bounds: Bounds, state: State, at: int) -> tuple[TableVersion, ...]:
    """The versions of a physical table that are in schema_history."""
    return _versions(state.logs[at], physical_name(bounds, at), state.known[bounds.feeds[at][0]])


def joins_at(state: State, source: int) -> int:
    """From where on a source counts that joins: until its own windows have reached the cut it is behind."""
    return state.left_sources[source]


def left_at(bounds: Bounds, state: State, table: int) -> LeftAt:
    """Where a table is left: as spark_jobs/window/life/following.py has it."""
    standing = state.tables[table].standing
    if standing is None:
        return LeftAt(mark(state, table))
    if standing.state is Is.SNAPSHOT:
        return LeftAt(max(1, state.cut), whole=False)
    if standing.partner:
        return LeftAt(max(1, applied(bounds, state, table)), whole=False)
    if standing.is_unread or standing.lacks_rows:
        place = None if standing.unread and standing.state is Is.HELD else standing.place
        return LeftAt(max(1, place.at_ts if place is not None else state.cut), whole=False)
    return LeftAt(mark(state, table))
