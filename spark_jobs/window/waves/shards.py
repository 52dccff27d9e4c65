"""Shards of a routed table lacking rows: they are left out, the table goes on with the others.

In:  schema histories, control/snapshots, a window's tables.
Out: from where on a shard takes part in a window; routed tables lacking rows, in words; versions of
     kind `left_out`.

A shard lacks rows if its newest version says that the log doesn't have them, or if its snapshot has
begun and isn't done. From then on none of its changes is applied, until a version empties it:
CREATE, TRUNCATE, or a snapshot's first low mark. That version deletes silver's rows of the shard,
so the skipped changes are no loss. The other shards don't depend on it: each row of a routed table
has its shard in the key.

Two facts aren't in schema_history otherwise: a shard joins with older rows, or its snapshot is over
before all rows were read. Each is recorded there as a version without other changes. The version's
commit_ts is the source's position in silver, usually a published cut. No statement below it is
still to be replayed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from spark_jobs.window.application import Application
from spark_jobs.window.shape.shapes import is_last_with, shape_of
from spark_jobs.window.standing.facts import lacks_at
from spark_jobs.window.waves.told import told_of
from spark_jobs.window.window import TableWindow, Window
from tidegate import tables
from tidegate.errors import SchemaMismatch
from tidegate.schema.model.columns import LEFT_OUT, WAITING, TableVersion, VersionStatus
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent, SnapshotState, TableKey
from tidegate.standing.events import ShardsLack, Whole
from tidegate.table_names import Physical
from tidegate.tables import State

NOT_FROM_THE_START = "what its earlier waves had is gone, so it is read from the start"
UNREAD_SHARDS = "TRUNCATE its tables there, or DROP and CREATE them, or leave them out (tables.exclude)"
_NAMED_MAX = 3


def is_shard(app: Application, physical: Physical) -> bool:
    """Whether a physical table flows into a routed one."""
    return app.names.logical(*physical.pair).routed


def part(app: Application, physical: Physical, after_ts: int, cut_ts: int) -> int | None:
    """The commit_ts above which a shard's changes in (after_ts, cut_ts] count; None when it lacks
    rows at the end.
    """
    begin, waits = after_ts, False
    for version in app.histories[physical.source].versions(*physical.pair):
        if version.commit_ts > cut_ts or is_last_with(app, version, cut_ts):
            break
        if waits and not version.status.waits:
            begin = max(begin, version.commit_ts - 1)
        waits = version.status.waits
    return None if waits else begin


def leave_out_shards(app: Application, window: Window) -> None:
    """Take shards that lack rows at the window's end out of its tables. It runs after all steps
    that make new versions.
    """
    for entry in [entry for entry in window.tables.values() if entry.routed]:
        for physical in sorted(entry.physical):
            begin = part(app, physical, entry.begins(physical), window.cut_ts)
            if begin is None:
                entry.physical.discard(physical)
                entry.chunks = [chunk for chunk in entry.chunks if chunk.physical != physical]
            elif begin > entry.begins(physical):
                entry.shards[physical] = begin
        if not entry.physical:
            del window.taking.tables[entry.name]


def is_left_out(app: Application, window: Window, physical: Physical) -> bool:
    """Whether it is a shard lacking rows at the window's end: steps after leave_out_shards ask."""
    return is_shard(app, physical) and part(app, physical, 0, window.cut_ts) is None


def lacks_rows(app: Application, physical: Physical, at_ts: int) -> bool:
    """Whether silver lacks rows that a shard had at a commit_ts, and the log won't bring them."""
    version = app.histories[physical.source].version_at(*physical.pair, at_ts)
    if version is None or version.status is VersionStatus.DROPPED:
        return False
    return version.status.waits or lacks_at(app, physical, at_ts) is not None


def rest_shards(app: Application, window: Window) -> dict[str, ShardsLack | Whole]:
    """The events of routed tables that begin to lack rows at the window's end, or cease to."""
    if not app.pipeline.tables.routes:
        return {}
    lacking: dict[str, list[Physical]] = {}
    cut_ts = max(window.cut_ts, app.cut_ts)
    for physical in _doubted(app):
        if app.names.keeps(*physical) and is_shard(app, physical) and _lacks_at(app, physical, cut_ts):
            lacking.setdefault(app.names.logical_name(*physical.pair), []).append(physical)
    events: dict[str, ShardsLack | Whole] = {
        name: ShardsLack(_lacks(app, name, of), window.cut_ts) for name, of in lacking.items()
    }
    for name, _ in app.states.of(State.SNAPSHOT):
        if name not in events and _is_route(app, name):
            events[name] = Whole(window.cut_ts)
    return {name: event for name, event in events.items() if not _is_so(app, name, event)}


def _is_so(app: Application, name: str, event: ShardsLack | Whole) -> bool:
    """Whether the table's standing has this event's reason already."""
    standing = app.states.get(name)
    lacks = isinstance(event, ShardsLack)
    said = event.what if isinstance(event, ShardsLack) else ""
    return standing is not None and ((standing.state is State.SNAPSHOT) == lacks) and standing.reason == said


def _lacks_at(app: Application, physical: Physical, cut_ts: int) -> bool:
    """Whether a shard lacks rows at the window's end. A shard of a source that joins below the cut
    lacks all of them.
    """
    version = app.histories[physical.source].version_at(*physical.pair, cut_ts)
    exists = version is not None and version.status is not VersionStatus.DROPPED
    joins = exists and physical.source in app.followed.behind
    return joins or lacks_rows(app, physical, app.followed.position(physical.source, cut_ts))


def _doubted(app: Application) -> set[Physical]:
    doubted = {Physical(source, *name) for source, history in app.histories.items() for name in history.ever(*WAITING)}
    behind = app.followed.behind.keys() & app.histories.keys()
    doubted |= {Physical(source, *name) for source in behind for name in app.histories[source].tables()}
    return doubted | {physical for physical in app.snapshots.began_empty if physical.source in app.histories}


def _is_route(app: Application, name: str) -> bool:
    return any(is_shard(app, physical) for physical in app.names.flows().get(name, ()))


def _lacks(app: Application, name: str, shards: Collection[Physical]) -> str:
    named = [f"{database}.{table} of {source}" for source, database, table in sorted(shards)]
    more = f" and {len(named) - _NAMED_MAX} more" if len(named) > _NAMED_MAX else ""
    what = f"{name} lacks rows of {', '.join(named[:_NAMED_MAX])}{more} until they are read by a snapshot"
    if unread := sorted({source for source, *_ in shards if app.pipeline.lacks_snapshots(source)}):
        what += f"; none reads {' or '.join(unread)}: {UNREAD_SHARDS}"
    return what


def leave_out(
    app: Application, shards: Iterable[Physical], joins: Mapping[str, int] = MappingProxyType({})
) -> list[Physical]:
    """Record that these shards lack rows from the published cut on. Returns those for which it
    can't be recorded yet, since there is a version of them above the cut. It is recorded once. A
    snapshot of a shard with rows in silver fails.

    joins: sources about to join -> from which commit_ts on: their statements after that are still
    to be replayed.
    """
    made, later = list[TableVersion](), list[Physical]()
    for physical in shards:
        last = app.histories[physical.source].last(physical.pair)
        if last is not None and (last.status.waits or last.status is VersionStatus.DROPPED):
            continue
        at_ts = app.positions.of(physical.source)  # statements above it are still to be replayed
        if physical.source in joins:
            at_ts = min(at_ts, max(joins[physical.source], last.commit_ts if last else 0))
        if last is not None and last.commit_ts > at_ts:
            later.append(physical)
        else:
            made.append(_left_out(physical, last, at_ts))
    if made:
        _fail_begun(app, {version.physical for version in made})
        app.histories.written(app.control.append(tables.SCHEMA_HISTORY, [version.to_row() for version in made]))
        for version in made:
            app.histories[version.source].add([version])
    return later


def _fail_begun(app: Application, left: Collection[Physical]) -> None:
    """Fail the snapshots of shards before they are left out, since that is recorded only once.
    Their rows must be asked for again.
    """
    events = list[SnapshotEvent]()
    for key, progress in app.snapshots.going.items():
        snapshot, physical = key.snapshot, key.physical
        if physical in left and progress.low_ts is not None:
            reason = f"it was left out meanwhile: {NOT_FROM_THE_START}"
            events.append(told_of(app, snapshot, physical, EventKind.FAILED, reason))
    if events:
        app.snapshots.record(app.control, events)


def _left_out(physical: Physical, last: TableVersion | None, commit_ts: int) -> TableVersion:
    if last is None:
        unknown = VersionStatus.UNPROVEN
        return TableVersion(*physical, 1, commit_ts, "", 0, LEFT_OUT, "", (), (), "utf8mb4", status=unknown)
    status, number = last.status.without_rows, last.version + 1
    return replace(last, version=number, commit_ts=commit_ts, kind=LEFT_OUT, ddl="", status=status, moved=None)


def let_shards_go(app: Application) -> None:
    """Leave out the shards whose snapshot was cancelled or failed: they lack rows, and wait for
    another snapshot.
    """
    for physical, event in list(app.snapshots.began_empty.items()):
        progress = app.snapshots.tables.get(TableKey(event.snapshot, *physical))
        if (
            physical.source not in app.histories
            or progress is None
            or not progress.state.is_over
            or not is_shard(app, physical)
        ):
            continue
        if progress.state is not SnapshotState.DONE and lacks_rows(app, physical, app.cut_ts):
            leave_out(app, [physical])


def unfit(app: Application, window: Window, physical: Physical, version: TableVersion) -> str:
    """Why a shard can't begin with these columns beside the others; "" when it can."""
    entry = TableWindow(app.names.logical_name(*physical.pair), *app.names.logical(*physical.pair), window.cut_ts)
    beside = [shard for shard in _others(app, entry.name, physical) if part(app, shard, 0, window.cut_ts) is not None]
    versions = [app.histories[shard.source].version_at(*shard.pair, window.cut_ts) for shard in beside]
    versions_beside = [
        version_beside
        for version_beside in versions
        if version_beside is not None and version_beside.status is VersionStatus.ACTIVE
    ]
    try:
        shape_of([*versions_beside, version], routed=True)
    except SchemaMismatch as error:
        return str(error)
    return ""


def splits_window(app: Application, window: Window, physical: Physical, low_ts: int, *, anew: bool) -> str:
    """Why rows from low_ts on can't be applied again in this window; "" when they can.

    A phase that ends at silver's position, or below, counts as done. Therefore no phase may begin between
    the window's lowest taken low mark and silver's position, nor right after it.
    """
    name = app.names.logical_name(*physical.pair)
    applied, entry = app.positions.applied(name), window.tables.get(name)
    lows = {shard: after_ts + 1 for shard, after_ts in entry.shards.items()} if entry else {}
    lows[physical] = min(low_ts, lows.get(physical, low_ts))
    lowest = min(lows.values())
    if lowest > applied:
        return ""
    begins = [low_ts] if anew else []
    for physical_other in app.names.flows().get(name, ()):
        after_ts = lowest if physical_other in lows else applied
        begins += [
            v.commit_ts
            for v in app.histories[physical_other.source].versions(*physical_other.pair)
            if v.commit_ts > after_ts
        ]
    if any(lowest < commit_ts <= applied + 1 for commit_ts in begins):
        return "a DDL, or another shard's beginning, lies between its low watermark and what is in silver"
    return ""


def begin_over(app: Application, window: Window, physical: Physical) -> str:
    """Let a routed table go on that is held for rows: each of its shards is read anew. Returns why
    it can't, or "".
    """
    name = app.names.logical_name(*physical.pair)
    state = app.states.get(name)
    if name in window.held:
        return f"it is held: {window.held[name].reason}"
    if state is None or state.state is not State.HELD:
        return ""
    if not state.lacks_rows or not window.main:
        return f"it is held: {state.reason}"
    if late := app.positions.late_sources(name):  # what goes on is said to be complete at the cut
        return f"{', '.join(sorted(late))}, which brings rows of its table too, is behind the cut"
    if leave_out(app, _others(app, name, physical)):
        return "a DDL of another shard is to be followed first"
    return ""


def gone_again(app: Application, window: Window, physical: Physical, commit_ts: int) -> list[TableVersion]:
    """Versions that repeat the end of dropped shards: silver still has their rows, because their
    table was held at that time.
    """
    name = app.names.logical_name(*physical.pair)
    state = app.states.get(name)
    if state is None or state.state is not State.HELD:
        return []
    last = [app.histories[shard.source].last(shard.pair) for shard in _others(app, name, physical)]
    return [
        replace(dropped, version=dropped.version + 1, commit_ts=commit_ts, moved=None)
        for dropped in last
        if dropped is not None
        and dropped.status is VersionStatus.DROPPED
        and state.applied_ts < dropped.commit_ts < min(commit_ts, window.cut_ts)
    ]


def _others(app: Application, name: str, physical: Physical) -> list[Physical]:
    return sorted(set(app.names.flows().get(name, ())) - {physical})
