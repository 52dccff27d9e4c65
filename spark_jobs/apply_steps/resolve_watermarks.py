"""The waves that end in this window. Their tables' changes are applied again from each wave's low
mark on.

In:  the window's segments with the watermark table, bronze/chunks, control/snapshots,
     schema_history.
Out: entry.chunks and a lower entry.after_ts of tables whose waves end here, with the segments from
     there on in the window; TakenWaves: the answers, the whole tables. A table not whole as its
     snapshot began gets a version of kind `snapshot` at its first wave's low mark, which empties
     silver, and the state SNAPSHOT.

Why it is exact stands in tidegate/snapshot/__init__.py. It comes after the replay of DDL, for a
DDL of a table while a wave reads it refuses the wave, and before DDL is judged, for a snapshot
takes a table past the cause of its hold.

A killed window begins again: silver with the high mark's commit_ts has the wave's rows, so they
aren't taken twice; an existing version isn't made twice. A window below the cut does the same for
its own tables, and so does a rebuild: marks and chunks are in bronze, and a valid wave, applied
once more, changes nothing.
"""

from __future__ import annotations

from dataclasses import replace

from spark_jobs.window.application import Application
from spark_jobs.window.life.following import take_in
from spark_jobs.window.made import TakenWaves
from spark_jobs.window.shape.cascading import ancestors
from spark_jobs.window.waves.ends import leave_unread
from spark_jobs.window.waves.news import news, placed
from spark_jobs.window.waves.shards import leave_out_shards
from spark_jobs.window.waves.snapshots import Begun, fails_meanwhile, is_begun, let_go, record_begun, start
from spark_jobs.window.waves.told import answer, as_refused, told_of
from spark_jobs.window.waves.verdicts import Share, Verdict, begins_with, damage, verdict_of
from spark_jobs.window.waves.waves import below, is_of_this_lake
from spark_jobs.window.window import DamagedWaves, Sweep, TableWindow, WaveChunk, Window
from tidegate.failpoint import failpoint
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.replay.history import SchemaHistory
from tidegate.snapshot.chunks.chunk_table import ChunkRef, chunk_refs
from tidegate.snapshot.progress.events import EventKind, TableKey
from tidegate.snapshot.waves import EndedWave, OpenWave, WholeTable, refusals
from tidegate.table_names import Physical
from tidegate.tables import State


def resolve_watermarks(app: Application, window: Window) -> tuple[Window, TakenWaves]:
    """The window's waves, and the window with the segments they call for."""
    waves = TakenWaves()
    let_go(app, window)
    fails_meanwhile(app, window, waves)
    for source, of in news(app, window):
        for wave in of.ended:
            if not is_of_this_lake(app, source, wave):
                continue
            _take(app, window, waves, source, placed(app, window, source, wave))
        for whole in of.whole:
            _end(app, window, waves, source, whole)
        for begun in of.open.values():
            _note_open(app, waves, source, begun)
    window = _begin_lower(app, window, waves)
    leave_unread(app, waves)
    leave_out_shards(app, window)
    if any(entry.chunks for entry in window.tables.values()):
        failpoint("apply_after_watermarks")
    return window, waves


def _take(app: Application, window: Window, waves: TakenWaves, source: str, wave: EndedWave) -> None:
    """Take the wave's rows for each of its tables, or answer the wave with a refusal."""
    refs = chunk_refs(app.lake, source, [wave.token])
    by_name: dict[tuple[str, str], list[ChunkRef]] = {}
    for ref in refs:
        by_name.setdefault(ref.chunk.name, []).append(ref)
    history = app.histories[source]
    changed = {of.name for of in wave.tables if not wave.refused and _is_changed(history, of.name, wave)}
    begun = Begun()
    refused = refusals(wave, [ref.chunk for ref in refs], changed)
    for of in wave.tables:
        share = Share(wave, Physical(source, *of.name), by_name.get(of.name, []))
        if not _is_here(app, window, share.physical, wave.snapshot):
            continue
        reason = refused.get(of.name)
        if reason := reason or _obeyed(app, window, waves, begun, share, verdict_of(app, window, share)):
            waves.answers.append(answer(app, share.physical, EventKind.REFUSED, wave, reason))
    record_begun(app, begun)


def _obeyed(app: Application, window: Window, waves: TakenWaves, begun: Begun, share: Share, verdict: Verdict) -> str:
    """Do what the verdict says. Returns why the rows aren't taken, or "" if they are."""
    physical, wave = share.physical, share.wave
    if verdict.fails:
        waves.answers.append(told_of(app, wave.snapshot, physical, EventKind.FAILED, verdict.refused))
    if verdict.begins:
        logical = app.names.logical(*physical.pair)
        keeps = app.pipeline.tables.keeps_past(logical.database, logical.table)
        if keeps and (error := app.positions.forget_history(logical.name)) is not None:
            return f"nobody could record that the history before it is unknown: {error.line}"
        start(app, window, begun, wave, physical, verdict.made)
    if verdict.refused:
        return verdict.refused
    version, name = verdict.version, app.names.logical_name(*physical.pair)
    assert version is not None, "unfit otherwise"
    entry = window.tables.get(name) if take_in(app, window, physical) else None
    if entry is None:
        return "its table takes no part in this window"
    applied = app.positions.applied(name)
    if applied >= wave.high_ts:  # a window that was killed has written them
        damaged = damage(app, share)
    else:
        damaged = app.memory(DamagedWaves).get((wave.token, physical), "")
        entry.again_ts = max(entry.again_ts, applied)
        _again_from(entry, physical, wave, version)
        if entry.routed and begins_with(version, wave):
            _take_dropped(app, entry, wave)
        chunks = [WaveChunk(ref, version.version, wave.low_ts, wave.exact, wave.high_ts) for ref in share.refs]
        entry.chunks += chunks if not damaged else []
    if not damaged:
        waves.taken.append((name, answer(app, physical, EventKind.APPLIED, wave)))
        key = TableKey(wave.snapshot, *physical)
        waves.lows[key] = min(wave.low_ts, waves.lows.get(key, wave.low_ts))
    return damaged


def _is_changed(history: SchemaHistory, name: tuple[str, str], wave: EndedWave) -> bool:
    """Whether a DDL changed a table while a wave was read. The version that a snapshot's own wave
    begins isn't a DDL.
    """
    versions = history.versions(*name)
    return any(
        wave.ddl_after_ts < version.commit_ts <= wave.high_ts and not begins_with(version, wave) for version in versions
    )


def _is_here(app: Application, window: Window, physical: Physical, snapshot: str) -> bool:
    """Whether this window answers for a table. If not, a later window does, when the table is
    released.
    """
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


def _again_from(entry: TableWindow, physical: Physical, wave: EndedWave, version: TableVersion) -> None:
    """The table's changes are applied again from a wave's low mark on; of a routed one this shard's
    alone.

    version: in force there. Where that empties the table, rows read before it go; other waves of
    the same low mark, as from a quiet server without marks in its log, have rows of the very same
    version, and stay.
    """
    emptied = begins_with(version, wave)
    if emptied:
        entry.chunks = [
            chunk for chunk in entry.chunks if chunk.physical != physical or chunk.version >= version.version
        ]
    if entry.routed:
        if emptied:
            entry.begun.add(physical)
        entry.shards[physical] = wave.after_ts if emptied else min(entry.begins(physical), wave.after_ts)
        entry.after_ts = min(entry.after_ts, wave.after_ts)
    else:
        entry.after_ts = wave.after_ts if emptied else min(entry.after_ts, wave.after_ts)


def _take_dropped(app: Application, entry: TableWindow, wave: EndedWave) -> None:
    """Shards gone while their table was held: versions at the wave's low mark record it."""
    for shard in app.names.flows().get(entry.name, ()):
        versions = app.histories[shard.source].versions(*shard.pair)
        if any(v.commit_ts == wave.low_ts and v.status is VersionStatus.DROPPED for v in versions):
            entry.physical.add(shard)
            entry.shards[shard] = wave.after_ts


def _begin_lower(app: Application, window: Window, waves: TakenWaves) -> Window:
    """The window with the segments between the waves' beginning and its own."""
    lower = [entry for entry in window.tables.values() if entry.after_ts < window.low_ts]
    if not lower:
        return window
    refs = {(ref.source, ref.seq): ref for ref in window.refs}
    for entry in lower:
        names: dict[str, set[str]] = {}
        for source, database, table in (
            physical for physical in entry.physical if entry.begins(physical) < window.low_ts
        ):
            for log in app.pipeline.pumps(source):  # a Pump's segments name no tables: resolve_prewrites finds them
                of = names.setdefault(log, set())
                of.add(f"{database}.{table}")
                of.update(physical.shown for physical in ancestors(app, Physical(source, database, table)))
        below_refs = below(app, window, {source: sorted(of) for source, of in names.items()}, entry.after_ts)
        if below_refs is None:
            _refuse(app, window, waves, entry)
            continue
        refs = {(ref.source, ref.seq): ref for ref in below_refs} | refs
    return replace(window, refs=[refs[place] for place in sorted(refs)])


def _refuse(app: Application, window: Window, waves: TakenWaves, entry: TableWindow) -> None:
    """Bronze no longer reaches back to where its waves began."""
    reason = "bronze no longer reaches back to its low watermark"
    for name, event in [taken for taken in waves.taken if taken[0] == entry.name]:
        waves.taken.remove((name, event))
        waves.answers.append(as_refused(event, reason))
    entry.chunks.clear()
    entry.shards.clear()
    entry.begun.clear()
    entry.after_ts = max(app.positions.applied(entry.name), window.low_ts)


def _end(app: Application, window: Window, waves: TakenWaves, source: str, whole: WholeTable) -> None:
    """A table is whole with this window, when all of its waves were taken (leave_unread)."""
    physical = Physical(source, whole.database, whole.table)
    if not app.names.keeps(*physical) or not _is_here(app, window, physical, whole.snapshot):
        return
    low_ts = _began(app, waves, whole.snapshot, physical)
    if low_ts is not None:
        name = app.names.logical_name(*physical.pair)
        waves.sweeps.append((name, Sweep(whole.snapshot, physical, low_ts, whole.end_ts)))


def _began(app: Application, waves: TakenWaves, snapshot: str, physical: Physical) -> int | None:
    """L0 of a snapshot of a table, this window's waves included."""
    here = waves.lows.get(TableKey(snapshot, *physical))
    known = [low_ts for low_ts in (app.snapshots.began(snapshot, physical), here) if low_ts is not None]
    return min(known, default=None)


def _note_open(app: Application, waves: TakenWaves, source: str, wave: OpenWave) -> None:
    if app.snapshots.low_ts(source, wave.token) is None:
        place = Physical(source, "", "")
        waves.answers.append(answer(app, place, EventKind.OPENED, wave))
