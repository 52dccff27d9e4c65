"""Decide whether a wave's rows of a table can be taken, and by which version, before anything is
changed.

In:  a wave's share of a table; schema histories, standings, control/snapshots, silver's positions
     as they are now.
Out: Verdict. The caller obeys it (apply_steps/resolve_watermarks.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from spark_jobs.window.application import Application
from spark_jobs.window.standing.same_names import mixed_with_shards, several_sources
from spark_jobs.window.standing.standings import standing_of
from spark_jobs.window.standing.unlogged_tables import unlogged_reason
from spark_jobs.window.waves import shards
from spark_jobs.window.waves.shards import NOT_FROM_THE_START, is_shard
from spark_jobs.window.waves.waves import changed_by_ddl
from spark_jobs.window.window import Window
from tidegate.errors import StreamCorrupt
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.model.types import UNKNOWN
from tidegate.schema.replay.history import SNAPSHOT as SNAPSHOT_KIND
from tidegate.snapshot.chunks.chunk import rows_of, schema_of, shape_of
from tidegate.snapshot.chunks.chunk_table import ChunkRef
from tidegate.snapshot.chunks.spans import is_whole
from tidegate.snapshot.progress.events import TableKey
from tidegate.snapshot.waves import EndedWave
from tidegate.standing import snapshots as rules
from tidegate.standing.standing import Standing
from tidegate.table_names import Physical
from tidegate.tables import State


@dataclass(frozen=True, slots=True)
class Share:
    """A wave's share of one table."""

    wave: EndedWave
    physical: Physical
    refs: list[ChunkRef]


@dataclass(frozen=True, slots=True)
class Verdict:
    """refused: why the rows aren't taken; "" if they are. version: the columns of the rows. begins:
    the table begins anew at the wave's low mark, whether or not the rows are taken. made: the
    versions for that, which its history lacks. fails: the snapshot's other waves are of no use,
    either.
    """

    version: TableVersion | None = None
    refused: str = ""
    begins: bool = False
    made: tuple[TableVersion, ...] = ()
    fails: bool = False


def verdict_of(app: Application, window: Window, share: Share) -> Verdict:
    """The fate of a wave's share of a table."""
    physical, wave = share.physical, share.wave
    if not app.names.keeps(*physical):
        return Verdict(refused="the pipeline file doesn't keep the table, as apply read it when it began")
    name = app.names.logical_name(*physical.pair)
    if several := several_sources(app, name) or mixed_with_shards(app, name):
        return Verdict(refused=several)
    version = app.histories[physical.source].version_at(*physical.pair, wave.low_ts)
    if reason := _is_there(app, version, share):
        return Verdict(refused=reason)
    anew = not _is_whole(app, window, share) or _replaces(app, share)
    if is_shard(app, physical) and (reason := shards.splits_window(app, window, physical, wave.low_ts, anew=anew)):
        return Verdict(refused=reason)
    if not anew:
        begins = version is not None and not version.key and begins_with(version, wave)
        return Verdict(version, unfit(version, share), begins=begins and not _is_filled(app, name, wave))
    verdict = _anew(app, window, share)
    return verdict if verdict.refused else replace(verdict, refused=unfit(verdict.version, share))


def begins_with(version: TableVersion, wave: EndedWave) -> bool:
    """Whether it is a wave's own version, the new beginning of its table."""
    return version.kind == SNAPSHOT_KIND and version.commit_ts == wave.low_ts


def damage(app: Application, share: Share) -> str:
    """Why chunks can't be read; "" if they can. An earlier try of the window found the damage."""
    try:
        for ref in share.refs:
            rows_of(ref.read(app.lake))
    except StreamCorrupt as error:
        return str(error)
    return ""


def unfit(version: TableVersion | None, share: Share) -> str:
    """Why rows of a version can't be taken."""
    if version is None or version.status is not VersionStatus.ACTIVE:
        return "the log doesn't tell the table's columns at its low watermark"
    if not version.key and not is_whole([ref.chunk.span for ref in share.refs]):
        return "the table has no key, and wasn't read as a whole at one moment"
    shape = shape_of(schema_of(version))
    if any(ref.chunk.shape != shape for ref in share.refs):
        return f"it was read with other columns than version {version.version} of the table has"
    return ""


def _is_whole(app: Application, window: Window, share: Share) -> bool:
    """Whether silver has all rows of a table told by the log and earlier waves."""
    physical = share.physical
    name = app.names.logical_name(*physical.pair)
    state = window.held.get(name) or app.states.get(name)
    if not app.histories[physical.source].versions(*physical.pair) or (state and state.state is State.HELD):
        return False
    ends = (share.wave.low_ts, window.cut_ts)
    return not is_shard(app, physical) or all(shards.part(app, physical, 0, at_ts) is not None for at_ts in ends)


def _is_filled(app: Application, name: str, wave: EndedWave) -> bool:
    """Whether the table's state already says that it begins with the wave's snapshot. If it
    doesn't, a window was killed between the version and the state. Only the state shows this for a
    table that was whole; a held one begins once more.
    """
    state = app.states.get(name)
    filled = state is not None and (state.state, state.snapshot) == (State.SNAPSHOT, wave.snapshot)
    return filled or (state is not None and state.state is State.RELEASED)


def _replaces(app: Application, share: Share) -> bool:
    """Whether a wave's rows replace all rows of silver: rows without a key can't be written twice."""
    versions = app.histories[share.physical.source].versions(*share.physical.pair)
    versions_then = [version for version in versions if version.commit_ts <= share.wave.low_ts]
    return bool(versions_then) and not versions_then[-1].key and not begins_with(versions_then[-1], share.wave)


def _is_there(app: Application, version: TableVersion | None, share: Share) -> str:
    """Why a wave of a table without a key isn't taken if another wave begins at the same place:
    both have the same rows.
    """
    if version is None or version.key or not begins_with(version, share.wave):
        return ""
    begun_by = app.snapshots.begun_by(share.physical, version.commit_ts)
    return "" if begun_by in ("", share.wave.token) else "another wave has begun the table at this very place already"


def _unfit_anew(app: Application, version: TableVersion, share: Share) -> str:
    """As unfit, for rows that begin the table. Without a key, the log can be applied only to all
    rows.
    """
    return unfit(version, share) or ("" if version.key else damage(app, share))


def _anew(app: Application, window: Window, share: Share) -> Verdict:
    """Whether a table without all rows can begin at the wave's low mark."""
    physical, wave = share.physical, share.wave
    routed, name = is_shard(app, physical), app.names.logical_name(*physical.pair)
    state = standing_of(app, window, name)
    last = app.histories[physical.source].last(physical.pair)
    if last is not None and begins_with(last, wave):
        if reason := unlogged_reason(app, last):  # to a rebuild, or by the pipeline file since then
            return Verdict(refused=reason, fails=True)
        return Verdict(last, begins=True)  # a try before this one was killed
    if state is not None and state.by_other_rules and app.pipeline.tables.keeps_past(*app.names.pair(name)):
        return Verdict(refused=f"no snapshot makes its past anew: {state.reason}", fails=True)
    if routed and app.positions.applied(name) >= wave.high_ts:  # ... which would have begun the shard, had it taken it
        return Verdict(refused="a window that was killed wrote its table beyond it, without its rows")
    if routed and (reason := shards.begin_over(app, window, physical)):
        return Verdict(refused=reason)
    if window.behind is not None:
        return Verdict(refused="its source is behind the cut")
    known = app.snapshots.tables.get(TableKey(wave.snapshot, *physical))
    if known is None or known.state.is_over:
        return Verdict(refused="its snapshot is over" if known else "nobody has asked for its snapshot")
    if rules.loses_past(state, known.asked_at, by_itself=known.by_itself):
        return Verdict(refused=rules.PAST_LOST, fails=True)
    if known.low_ts is not None and (last is None or last.key):  # this wave's low mark would remove them from silver
        return Verdict(refused=f"silver lost its rows while it was read: {NOT_FROM_THE_START}", fails=True)
    if state is not None and rules.came_later(state, wave.low_ts):
        return Verdict(refused=f"it is held for what came later: {state.reason}")
    if changed := changed_by_ddl(app, window, physical, wave.ddl_after_ts, window.cut_ts):
        return Verdict(refused=f"a DDL changed the table while it was read, or before it could be taken: {changed}")
    version = _version(app, share, state)
    if version is None:
        return Verdict(refused="its columns aren't known here, and control/snapshots doesn't tell them")
    if reason := unlogged_reason(app, version):
        return Verdict(refused=reason, fails=True)
    if reason := _unfit_anew(app, version, share):
        return Verdict(refused=reason)
    if not routed:
        return Verdict(version, begins=True, made=(version,))
    if reason := shards.unfit(app, window, physical, version):
        return Verdict(refused=reason)
    gone = shards.gone_again(app, window, physical, wave.low_ts)
    return Verdict(version, begins=True, made=(version, *gone))


def _version(app: Application, share: Share, state: Standing | None) -> TableVersion | None:
    """The columns in force, as a version of kind `snapshot`. The reader's own columns count if the
    log's can't be trusted or differ from them: an ALTER may have been lost, or not been followed.
    They also count if a changefeed's file lacks the members of an ENUM.
    """
    physical, wave = share.physical, share.wave
    last = app.histories[physical.source].last(physical.pair)
    changefeed = app.pipeline.sources[physical.source].traits.changefeed

    def begun(base: TableVersion) -> TableVersion:
        return replace(
            base, version=last.version + 1 if last else 1, commit_ts=wave.low_ts, file="", pos=0, kind=SNAPSHOT_KIND,
            ddl="", status=VersionStatus.ACTIVE, moved=None, settings=last.settings if last else None,
        )  # fmt: skip

    doubted = state is not None and state.columns_doubted
    doubted |= changefeed and last is not None and any(UNKNOWN in column.type for column in last.columns)
    known = last is not None and last.status not in (VersionStatus.UNPROVEN, VersionStatus.DROPPED)
    if last is not None and known and not doubted and not _unfit_anew(app, begun(last), share):
        return begun(last)
    definition = app.snapshots.definition(wave.token, physical)
    if definition:
        defined = _renumbered(app, physical, definition)
        return begun(replace(defined, origin="") if changefeed else defined)  # its lines name no ids
    return begun(last) if last is not None and known and not doubted else None


def _renumbered(app: Application, physical: Physical, row: Any) -> TableVersion:
    """A definition with column ids of its own."""
    version = TableVersion.from_row(row)
    history = app.histories[physical.source]
    ids = {column.id: history.new_id() for column in version.columns}
    indexes = [replace(index, parts=tuple(ids.get(part, 0) for part in index.parts)) for index in version.indexes]
    renumbered = replace(
        version,
        source=physical.source, database=physical.database, table=physical.table,
        columns=tuple(replace(column, id=ids[column.id]) for column in version.columns),
        key=tuple(ids[number] for number in version.key),
        indexes=tuple(indexes),
    )  # fmt: skip
    return history.named(renumbered)
