"""Snapshots in a window's log and in bronze: marks, the wave open before it, segments below it.

In:  an Application, a Window, segments with the watermark table.
Out: marks in log order; segments of tables whose waves began below the window; whether a statement
     changed a table.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from spark_jobs.window.application import Application
from spark_jobs.window.window import Window
from tidegate.binlog.index.event_index import began_before, index_pieces
from tidegate.binlog.rows.decode import NOTHING_KNOWN, decode_segment
from tidegate.errors import DecodeError, LakeUnavailable, StreamCorrupt, UnknownEvent
from tidegate.lake.bronze.backlog import WantedSegments, backlog
from tidegate.lake.bronze.index import segments_or_damage
from tidegate.position import Position
from tidegate.schema.ddl.reader import DdlNotRead, read, touched_tables
from tidegate.schema.ddl.statement import DdlStatement
from tidegate.schema.ddl.tree import CreateTable, DropDatabase
from tidegate.schema.model.columns import VersionStatus
from tidegate.segment_kinds import statements_of
from tidegate.segments.result import CommitSpan
from tidegate.segments.segment import may_name
from tidegate.segments.window import SegmentRef
from tidegate.snapshot.chunks.chunk_table import chunk_refs
from tidegate.snapshot.watermark import Mark, MarkKind, watermark_version
from tidegate.snapshot.waves import EndedWave, OpenWave, SeenMark, follow
from tidegate.table_names import Physical, splits
from tidegate.tables import (
    COMMIT_TS,
    OP,
    OP_UPSERT,
    ORDINAL,
    WATERMARK,
    WATERMARK_DATABASE,
    WATERMARK_TABLE,
    SegmentFlag,
    SegmentKind,
)

log = logging.getLogger(__name__)

Name = tuple[str, str]
_PLACE: Final = (WATERMARK_DATABASE, WATERMARK_TABLE)


def has_marks(ref: SegmentRef) -> bool:
    """Whether a segment may hold a mark."""
    return may_name(ref.tables, _PLACE)


def marks_in(app: Application, refs: Iterable[SegmentRef], after_ts: int, upto_ts: int) -> list[SeenMark]:
    """This pipeline's marks of one source, of (after_ts, upto_ts], in log order."""
    wanted = [ref for ref in refs if has_marks(ref)]
    marks: list[SeenMark] = []
    for ref, segment in segments_or_damage(app.lake, wanted):
        if isinstance(segment, StreamCorrupt):
            log.warning("marks of snapshots can't be read: %s", segment)
            continue
        if segment.kind is not SegmentKind.BINLOG:
            continue
        version = watermark_version(ref.source)
        known = replace(NOTHING_KNOWN, rolled_back_ts=ref.rolled_back_ts)
        try:
            done = decode_segment(
                segment, {_PLACE: (version,)}, {_PLACE: CommitSpan(after_ts, ref.upto(upto_ts))}, known=known
            )
        except (StreamCorrupt, UnknownEvent) as error:
            log.warning("marks of snapshots can't be read: %s", error)
            continue
        for problem in done.problems:
            log.warning("%s: marks of snapshots can't be read: %s", ref.source, problem.text)
        rows = [row for changes in done.changes for row in changes.batch.to_pylist() if row[OP] == OP_UPSERT]
        for row in sorted(rows, key=lambda row: row[ORDINAL]):
            ours = (_bytes(row["pipeline"]), _bytes(row["source"])) == _ours(app, ref.source)
            if ours and (mark := _mark(row["mark"], ref.source)) is not None:
                marks.append(SeenMark(row[COMMIT_TS], segment.server_uuid, mark))
    return marks


def _ours(app: Application, source: str) -> tuple[bytes, bytes]:
    return app.pipeline.pipeline.encode(), source.encode()


def _bytes(cell: bytes | str) -> bytes:
    return cell.encode() if isinstance(cell, str) else cell


def _mark(text: str, source: str) -> Mark | None:
    try:
        return Mark.from_text(text)
    except DecodeError as error:
        log.warning("%s: a mark is left out: %s", source, error)
        return None


def open_before(app: Application, window: Window, source: str, marks: Sequence[SeenMark]) -> list[OpenWave]:
    """The waves that were open when the window began, and whose high mark is in the window.

    An earlier window has recorded the place of their low marks in control/snapshots; the marks are
    read again from bronze.
    """
    waves = []
    for token in [seen.mark.token for seen in marks if seen.mark.kind is MarkKind.HIGH]:
        low_ts = app.snapshots.low_ts(source, token)
        if low_ts is None or low_ts > window.low_ts:
            continue
        refs = below(app, window, {source: [WATERMARK]}, low_ts - 1)
        known = {} if refs is None else follow((), marks_in(app, refs, low_ts - 1, low_ts)).open
        waves += [known[token]] if token in known else []
    return waves


def below(
    app: Application, window: Window, names: dict[str, Collection[str]], after_ts: int
) -> list[SegmentRef] | None:
    """Segments of (after_ts, the window's low end] with these tables, per source; None when bronze
    lacks them.
    """
    if after_ts >= window.low_ts:
        return []
    if any(app.index.begin(source) > after_ts for source in names):
        return None
    wanted = {source: WantedSegments(after_ts, of) for source, of in names.items()}
    upto_ts, refs = backlog(app.lake, wanted, window.low_ts, sys.maxsize, app.index.below)
    if upto_ts < window.low_ts:
        raise LakeUnavailable(
            f"bronze is resolved up to {upto_ts} only, below the cut", where=app.lake.root, remedy="it is tried again"
        )
    return refs


def is_of_this_lake(app: Application, source: str, wave: EndedWave) -> bool:
    """Whether a reader of this lake read the wave: its chunks were landed before its high mark, and
    control/snapshots may have more of it.

    Another lake of the same pipeline and source writes marks beside ours: a copy of this lake, or a
    lake for tests.
    """
    return app.snapshots.has_heard_of(wave.token) or bool(chunk_refs(app.lake, source, [wave.token]))


def seen_upto(app: Application, window: Window, source: str, wave: EndedWave, after_ts: int) -> int | None:
    """commit_ts of the last transaction that the wave's view sees and that touches the wave's
    tables; None if bronze no longer tells. after_ts: the view sees everything up to it. Raises
    StreamCorrupt, UnknownEvent.
    """
    file, _, offset = wave.at.rpartition(":")
    place = Position.of(file, int(offset))
    earlier = below(
        app, window, {source: [*(".".join(manifest.name) for manifest in wave.tables), WATERMARK]}, after_ts
    )
    if earlier is None:
        return None
    seen_ts = after_ts
    for ref in _of_its_log(wave, [*earlier, *(ref for ref in window.refs if ref.source == source)]):
        if Position.of(ref.file, ref.end_pos) <= place:
            seen_ts = max(seen_ts, ref.max_commit_ts)
        elif Position.of(ref.file, ref.start_pos) < place and any(may_name(ref.tables, t.name) for t in wave.tables):
            pieces = index_pieces(app.index.read(ref))
            seen_ts = max(seen_ts, *(began_before(index, place.offset) for index in pieces))
    return seen_ts


def _of_its_log(wave: EndedWave, refs: Iterable[SegmentRef]) -> Iterator[SegmentRef]:
    """The segments of the wave's own log: those of its server, up to a reset of its log. The wave's
    view doesn't see segments of another server after a failover, nor of this server after a reset,
    however low their places are.
    """
    last: Position | None = None
    for _, ref in sorted({ref.seq: ref for ref in refs}.items()):  # one that reaches over the window's low end is twice
        if ref.server_uuid != wave.server_uuid:
            continue
        start = Position.of(ref.file, ref.start_pos)
        if ref.min_commit_ts > wave.high_ts or (last is not None and start < last):
            return
        last = start
        yield ref


def changed_by_ddl(app: Application, window: Window, physical: Physical, after_ts: int, upto_ts: int) -> str:
    """The text of a statement in (after_ts, upto_ts] that changes a table, followed or not; ""
    without one.

    A known version above upto_ts counts, too: a killed window made it, and no version may begin
    below it.
    """
    source, name = physical.source, physical.pair
    for version in app.histories[source].versions(*name):
        if version.commit_ts > after_ts:
            return version.ddl[:120] or version.kind
    earlier = below(app, window, {source: [".".join(name)]}, after_ts)
    if earlier is None:
        return "(bronze no longer reaches back to its low watermark)"
    here = [ref for ref in window.refs if ref.source == source]
    for ref in [*earlier, *here]:
        # Of TiDB's DDL there is always a version; a statement that is in none changed no table.
        if not ref.whole or not ref.flags & SegmentFlag.HAS_DDL or not may_name(ref.tables, name):
            continue
        try:
            statements = statements_of(app.index.read(ref))
        except (StreamCorrupt, UnknownEvent) as error:
            return f"(a segment can't be read: {error})"
        for statement in statements:
            if after_ts < statement.commit_ts <= min(upto_ts, ref.upto(upto_ts)) and _touches(app, statement, physical):
                return statement.shown[:120]
    return ""


def _touches(app: Application, statement: DdlStatement, physical: Physical) -> bool:
    """Whether a statement changes a table, or may."""
    server = app.histories[physical.source].server_of(statement)
    try:
        parsed = read(statement.sql, database=statement.database, sql_mode=statement.sql_mode, server=server)
    except DdlNotRead as error:
        names = [pair for text in error.tables for pair in splits(text)]
        return not names or physical.pair in names
    if isinstance(parsed, DropDatabase) and parsed.database == physical.database:
        return True
    if isinstance(parsed, CreateTable) and parsed.if_not_exists and statement.said.atomic:
        # For a table that existed before, a changefeed's file repeats its definition once in each run of capture
        # (ticdc/statements.py).
        before = app.histories[physical.source].version_at(*physical.pair, statement.commit_ts - 1)
        if before is not None and before.status is not VersionStatus.DROPPED:
            return False
    return not statement.legible or physical.pair in touched_tables(parsed)
