"""Which waves of snapshots this window takes, and from where on their tables' changes are applied again.

In:  the window's segments that name the watermark table, bronze/chunks, control/snapshots, schema_history.
Out: entry.chunks and a lower entry.after_ts of tables whose waves end here, with the segments from there on in
     window.refs; window.waves: what to answer, which tables are whole. A table that wasn't whole as its snapshot
     began gets a version of kind `snapshot` at its first wave's low mark, which empties silver, and the state SNAPSHOT.

Why it is exact stands in tidegate/snapshot/__init__.py. It comes behind the replay of DDL, for a DDL of a table while
a wave reads it refuses the wave, and before DDL is judged, for a snapshot takes a table past what it was held for.

A killed window begins again: silver that has the high mark's commit_ts has the wave's rows, so they aren't taken twice;
a version that is there isn't made twice. A window below the cut does the same for its own tables, and so does a
rebuild: marks and chunks are in bronze, and a valid wave that is applied once more changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spark_jobs.window.application import Application
from spark_jobs.window.life.following import take_in
from spark_jobs.window.standing.same_names import several_sources
from spark_jobs.window.waves.shards import is_shard, leave_out_shards, part, splits_window
from spark_jobs.window.waves.snapshots import begin, begun_before, fails_meanwhile, is_begun, let_go, record_begun
from spark_jobs.window.waves.told import answer, as_refused
from spark_jobs.window.waves.unlogged_marks import unlogged_waves
from spark_jobs.window.waves.waves import below, has_marks, marks_in, open_before, seen_upto
from spark_jobs.window.window import DamagedWaves, Sweep, TableWindow, WaveChunk, Window
from tidegate.errors import StreamCorrupt, UnknownEvent
from tidegate.failpoint import failpoint
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.replay.history import SNAPSHOT as SNAPSHOT_KIND
from tidegate.schema.replay.history import SchemaHistory
from tidegate.segments.window import SegmentRef
from tidegate.snapshot.chunks.chunk import rows_of, schema_of, shape_of
from tidegate.snapshot.chunks.chunk_table import ChunkRef, chunk_refs
from tidegate.snapshot.chunks.spans import is_whole
from tidegate.snapshot.progress.events import EventKind, TableKey
from tidegate.snapshot.waves import EndedWave, OpenWave, WholeTable, follow, refusals
from tidegate.table_names import Physical
from tidegate.tables import State


def resolve_watermarks(app: Application, window: Window) -> None:
    """Fill window.waves and what waves bring to window.tables."""
    let_go(app, window)
    fails_meanwhile(app, window)
    by_source: dict[str, list[SegmentRef]] = {}
    for ref in window.refs:
        if has_marks(ref):
            by_source.setdefault(ref.source, []).append(ref)
    for source, refs in by_source.items():
        marks = marks_in(app, refs, window.low_ts, window.cut_ts)
        if not marks:
            continue
        found = follow(open_before(app, window, source, marks), marks)
        for wave in found.ended:
            _take(app, window, source, _placed(app, window, source, wave))
        for whole in found.whole:
            _end(app, window, source, whole)
        if found.open is not None:
            _note_open(app, window, source, found.open)
    for source, unlogged in unlogged_waves(app, window).items():
        for wave in unlogged.ended:
            _take(app, window, source, _placed(app, window, source, wave))
        for whole in unlogged.whole:
            _end(app, window, source, whole)
    _begin_lower(app, window)
    leave_out_shards(app, window)
    if any(entry.chunks for entry in window.tables.values()):
        failpoint("apply_after_watermarks")


def _placed(app: Application, window: Window, source: str, wave: EndedWave) -> EndedWave:
    """With the low_ts that its view really has: that of the version which it made, where its low mark isn't known."""
    if not wave.at or wave.refused:
        return wave
    known = [one for told in wave.tables for one in app.histories[source].versions(*told.name)]
    begun_ts = max(
        (one.commit_ts for one in known if one.kind == SNAPSHOT_KIND and one.commit_ts <= wave.high_ts), default=0
    )
    try:
        low_ts = seen_upto(app, window, source, wave, wave.low_ts or max(0, begun_ts - 1))
    except (StreamCorrupt, UnknownEvent) as error:
        return replace(wave, refused=f"where its view lies in the log can't be told: {error}")
    if low_ts is None or (not wave.low_ts and low_ts + 1 != begun_ts):
        return replace(wave, refused="its low watermark isn't in the log, or bronze no longer reaches back to it")
    return replace(wave, low_ts=low_ts + 1)


@dataclass(frozen=True, slots=True)
class _Share:
    """A wave's share of one table."""

    wave: EndedWave
    physical: Physical
    refs: list[ChunkRef]


def _take(app: Application, window: Window, source: str, wave: EndedWave) -> None:
    refs = chunk_refs(app.lake, source, [wave.token])
    history = app.histories[source]
    by_name: dict[tuple[str, str], list[ChunkRef]] = {}
    for ref in refs:
        by_name.setdefault(ref.chunk.name, []).append(ref)
    changed = {told.name for told in wave.tables if not wave.refused and _is_changed(history, told.name, wave)}
    refused = refusals(wave, [ref.chunk for ref in refs], changed)
    for told in wave.tables:
        share = _Share(wave, Physical(source, *told.name), by_name.get(told.name, []))
        if not _is_here(app, window, share.physical, wave.snapshot):
            continue
        if reason := refused.get(told.name) or _taken(app, window, share):
            window.waves.answers.append(answer(app, share.physical, EventKind.REFUSED, wave, reason))
    record_begun(app, window)


def _is_changed(history: SchemaHistory, name: tuple[str, str], wave: EndedWave) -> bool:
    """Whether a DDL changed a table while a wave was read. What a snapshot's own wave begins is none."""
    mine = history.versions(*name)
    return any(wave.ddl_after_ts < one.commit_ts <= wave.high_ts and not _begins(one, wave) for one in mine)


def _is_here(app: Application, window: Window, physical: Physical, snapshot: str) -> bool:
    """Whether this window answers for a table; else one does that is still to come, when the table is released."""
    name = app.names.logical_name(*physical.pair)
    if window.catches_up is not None:
        return name in window.catches_up
    if window.behind is not None or not app.names.keeps(*physical):
        return True
    state = window.held.get(name) or app.states.get(name)
    if state is None:
        return True
    if state.state is State.RELEASED:
        return name not in window.held and not app.positions.waits_below(name, window.low_ts)
    return state.state is not State.HELD or not is_begun(app, snapshot, physical, state)


def _taken(app: Application, window: Window, share: _Share) -> str:
    """Put a wave's chunks on its table's entry; why that can't be, or "" when it is done."""
    physical, wave = share.physical, share.wave
    if not app.names.keeps(*physical):
        return "the pipeline file doesn't keep the table, as apply read it when it began"
    name = app.names.logical_name(*physical.pair)
    if several := several_sources(app, name):
        return several
    history = app.histories[physical.source]
    state = window.held.get(name) or app.states.get(name)
    whole = history.versions(*physical.pair) and (state is None or state.state is not State.HELD)
    if whole and is_shard(app, physical):
        whole = all(part(app, physical, 0, at_ts) is not None for at_ts in (wave.low_ts, window.cut_ts))
    if reason := _is_there(app, history.version_at(*physical.pair, wave.low_ts), share):
        return reason
    anew = not whole or _replaces(history.versions(*physical.pair), share)
    if is_shard(app, physical) and (reason := splits_window(app, window, physical, wave.low_ts, anew=anew)):
        return reason
    if anew and (reason := begin(app, window, wave, physical, lambda version: _unfit_anew(app, version, share))):
        return reason
    version = history.version_at(*physical.pair, wave.low_ts)
    if not anew and version is not None and not version.key and _begins(version, wave):
        begun_before(app, window, wave, physical)
    if reason := _unfit(version, share):
        return reason
    assert version is not None, "unfit otherwise"
    entry = window.tables.get(name) if take_in(app, window, physical) else None
    if entry is None:
        return "its table takes no part in this window"
    applied = app.positions.applied(name)
    damage = app.memory(DamagedWaves).get((wave.token, physical), "")
    if applied >= wave.high_ts:  # a window that was killed has written them
        damage = _damage(app, share)
    else:
        entry.again_ts = max(entry.again_ts, applied)
        _again_from(entry, physical, wave, version)
        if entry.routed and _begins(version, wave):
            _take_dropped(app, entry, wave)
        entry.chunks += [WaveChunk(ref, version.version, wave.low_ts) for ref in share.refs if not damage]
    if not damage:
        window.waves.taken.append((name, answer(app, physical, EventKind.APPLIED, wave)))
        key = TableKey(wave.snapshot, *physical)
        window.waves.lows[key] = min(wave.low_ts, window.waves.lows.get(key, wave.low_ts))
    return damage


def _again_from(entry: TableWindow, physical: Physical, wave: EndedWave, version: TableVersion) -> None:
    """The table's changes are applied again from a wave's low mark on; of a routed one this shard's alone.

    version: in force there. Where that empties the table, what was read before it goes; other waves of the same low
    mark, as a quiet server without marks in its log has them, have rows of that very version, and stay.
    """
    emptied = _begins(version, wave)
    if emptied:
        entry.chunks = [one for one in entry.chunks if one.physical != physical or one.version >= version.version]
    if entry.routed:
        entry.shards[physical] = wave.after_ts if emptied else min(entry.begins(physical), wave.after_ts)
        entry.after_ts = min(entry.after_ts, wave.after_ts)
    else:
        entry.after_ts = wave.after_ts if emptied else min(entry.after_ts, wave.after_ts)


def _take_dropped(app: Application, entry: TableWindow, wave: EndedWave) -> None:
    """Shards that went while their table was held: begin() says at the wave's low mark that they are gone."""
    for one in app.names.flows().get(entry.name, ()):
        versions = app.histories[one.source].versions(*one.pair)
        if any(v.commit_ts == wave.low_ts and v.status is VersionStatus.DROPPED for v in versions):
            entry.physical.add(one)
            entry.shards[one] = wave.after_ts


def _replaces(versions: Sequence[TableVersion], share: _Share) -> bool:
    """Whether a wave's rows are to replace all that silver has: rows without a key can't be written twice."""
    mine = [version for version in versions if version.commit_ts <= share.wave.low_ts]
    return bool(mine) and not mine[-1].key and not _begins(mine[-1], share.wave)


def _is_there(app: Application, version: TableVersion | None, share: _Share) -> str:
    """Why a wave of a table without a key isn't taken that begins where another one's rows begin: it has the same."""
    if version is None or version.key or not _begins(version, share.wave):
        return ""
    begun_by = app.snapshots.begun_by(share.physical, version.commit_ts)
    return "" if begun_by in ("", share.wave.token) else "another wave has begun the table at this very place already"


def _begins(version: TableVersion, wave: EndedWave) -> bool:
    return version.kind == SNAPSHOT_KIND and version.commit_ts == wave.low_ts


def _unfit(version: TableVersion | None, share: _Share) -> str:
    """Why rows of a version can't be taken."""
    if version is None or version.status is not VersionStatus.ACTIVE:
        return "the log doesn't tell the table's columns at its low watermark"
    if not version.key and not is_whole([ref.chunk.span for ref in share.refs]):
        return "the table has no key, and wasn't read as a whole at one moment"
    shape = shape_of(schema_of(version))
    if any(ref.chunk.shape != shape for ref in share.refs):
        return f"it was read with other columns than version {version.version} of the table has"
    return ""


def _unfit_anew(app: Application, version: TableVersion, share: _Share) -> str:
    """... where they begin the table. Without a key its log can be applied only to all of them."""
    return _unfit(version, share) or ("" if version.key else _damage(app, share))


def _damage(app: Application, share: _Share) -> str:
    """As the try before found it, which didn't take them then."""
    try:
        for ref in share.refs:
            rows_of(ref.read(app.lake))
    except StreamCorrupt as error:
        return str(error)
    return ""


def _begin_lower(app: Application, window: Window) -> None:
    """Bring the segments into the window that lie between where waves began and where it begins."""
    lower = [entry for entry in window.tables.values() if entry.after_ts < window.low_ts]
    if not lower:
        return
    known = {(ref.source, ref.seq) for ref in window.refs}
    for entry in lower:
        names: dict[str, set[str]] = {}
        for source, database, table in (one for one in entry.physical if entry.begins(one) < window.low_ts):
            for log in app.pipeline.pumps(source):  # a Pump's segments name no tables: take_committed finds them
                names.setdefault(log, set()).add(f"{database}.{table}")
        found = below(app, window, {source: sorted(of) for source, of in names.items()}, entry.after_ts)
        if found is None:
            _refuse(app, window, entry)
            continue
        window.refs += [ref for ref in found if (ref.source, ref.seq) not in known]
        known |= {(ref.source, ref.seq) for ref in found}
    window.refs.sort(key=lambda ref: (ref.source, ref.seq))


def _refuse(app: Application, window: Window, entry: TableWindow) -> None:
    """Bronze no longer reaches back to where its waves began."""
    reason = "bronze no longer reaches back to its low watermark"
    for name, told in [one for one in window.waves.taken if one[0] == entry.name]:
        window.waves.taken.remove((name, told))
        window.waves.answers.append(as_refused(told, reason))
    entry.chunks.clear()
    entry.shards.clear()
    entry.after_ts = max(app.positions.applied(entry.name), window.low_ts)


def _end(app: Application, window: Window, source: str, whole: WholeTable) -> None:
    """A table is whole with this window, when all of its waves were taken."""
    physical = Physical(source, whole.database, whole.table)
    if not app.names.keeps(*physical) or not _is_here(app, window, physical, whole.snapshot):
        return
    low_ts = _began(app, window, whole.snapshot, physical)
    if low_ts is not None:
        name = app.names.logical_name(*physical.pair)
        window.waves.sweeps.append((name, Sweep(whole.snapshot, physical, low_ts, whole.end_ts)))


def _began(app: Application, window: Window, snapshot: str, physical: Physical) -> int | None:
    """L0 of a snapshot of a table, this window's waves included."""
    here = window.waves.lows.get(TableKey(snapshot, *physical))
    known = [one for one in (app.snapshots.began(snapshot, physical), here) if one is not None]
    return min(known, default=None)


def _note_open(app: Application, window: Window, source: str, wave: OpenWave) -> None:
    if app.snapshots.low_ts(source, wave.token) is None:
        place = Physical(source, "", "")
        window.waves.answers.append(answer(app, place, EventKind.OPENED, wave))
