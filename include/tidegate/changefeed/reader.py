"""A changefeed's path as capture's source.

In:  the path, looked at every look_seconds; the changefeed's checkpoint.
Out: a ChangefeedSource, whose readers keep the promises of capture/source.py.

How it keeps them. The checkpoint is read before the names: everything below it is written by then,
and is in the listing. Only at the checkpoint's own commit_ts a DDL may come later. Segments are cut
by commit_ts over all folders: each has every line of its range, and resolved_ts is the end of the
range. Therefore nothing above the checkpoint is given, whatever a file has. A late file has lines above
it, or repeats captured ones. Each segment can be read alone. Lines at or below resolved_ts are
skipped.

Schema files come with the range that their version lies in. One without a statement is of a table
found by the changefeed: it comes, once in a run, with the first lines of that table.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from tidegate.capture.captured import Captured
from tidegate.capture.own_stream import NOTHING, StreamCheckpoint, StreamPlace, check_continues, following
from tidegate.capture.source import ClockState, Retention
from tidegate.changefeed.falls import Falls
from tidegate.changefeed.folders import Folders, Schema, TableFolders
from tidegate.changefeed.storage_path import Storage
from tidegate.changefeed.wave import Wave, next_wave
from tidegate.commit_ts import physical_ms, time_text
from tidegate.errors import PositionLost
from tidegate.segments.crc32c import crc32c
from tidegate.segments.segment import Segment
from tidegate.tables import EVERY_TABLE, SegmentFlag, SegmentKind
from tidegate.ticdc.pieces import Form, Piece, context_of
from tidegate.ticdc.statements import tables_named

_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ChangefeedSettings:
    """source: its name in the pipeline. heartbeat_seconds: a quiet changefeed's resolved_ts is told this often."""

    source: str
    path: str
    options: dict[str, str]
    form: Form
    segment_bytes: int
    look_seconds: float
    heartbeat_seconds: float
    expiration_days: int


class ChangefeedSource:
    promises = False
    clock = ClockState()
    nothing = NOTHING

    def __init__(self, settings: ChangefeedSettings) -> None:
        self.settings = settings
        self._falls = Falls(f"{settings.source} at {settings.path}")

    def has_begun(self) -> bool:
        """Its log begins with the changefeed's first files: a new lake takes it from seq 1 on, or not at all."""
        return True

    def connect(self) -> ChangefeedReader:
        """Raises SourceUnavailable, SourceRefused, StreamCorrupt."""
        return ChangefeedReader(self.settings, self._falls)

    def check_continues(self, before: Segment, after: Segment) -> None:
        """Raises StreamCorrupt."""
        check_continues(before, after)


class ChangefeedReader:
    """One run's knowledge of a path; see SourceReader."""

    in_transaction = False
    sends_on = False
    waiting_bytes = 0
    reply_due = False

    def __init__(self, settings: ChangefeedSettings, falls: Falls) -> None:
        self._settings, self._falls = settings, falls
        self._folders = Folders(Storage(settings.path, settings.options), settings.form)
        self._checkpoint_ts = self._folders.checkpoint_ts()
        self._ceiling_ts = 0  # what the last look was for: all up to here is found
        self._looked_at = 0.0
        self._quiet_ts = 0  # up to here there is nothing after the last segment
        self._told_at = 0.0
        self.checkpoint: StreamCheckpoint = NOTHING

    # --- where to go on ----------------------------------------------------------------------------

    def first_checkpoint(self, captured: Captured) -> StreamCheckpoint:  # noqa: ARG002  nothing is captured
        """Before the first line that the path has."""
        return StreamCheckpoint.before_all(StreamPlace(self._settings.path))

    def resume(self, checkpoint: StreamCheckpoint, captured: Captured, *, patient: bool) -> StreamCheckpoint:  # noqa: ARG002
        """Raises PositionLost for another path, or when captured or next files were removed."""
        path, days = self._settings.path, self._settings.expiration_days
        if checkpoint.place.name != path:
            raise PositionLost(
                f"the captured files are of {checkpoint.place.name}, and the source's path is {path}",
                where=self._settings.source,
                remedy="give each changefeed a source of its own",
            )
        if days and self._days_behind(checkpoint.resolved_ts) >= days:
            raise PositionLost(
                f"captured up to {time_text(checkpoint.resolved_ts)}, and TiCDC removes files that are older than"
                f" {days} days",
                where=self._settings.source,
                remedy="begin with a new changefeed, a new path and a new lake",
            )
        tail = captured.tail
        if tail is not None and not (days and self._days_behind(tail.resolved_ts) >= days - 1):
            self._check_stands(tail)
        return checkpoint

    def _check_stands(self, tail: Segment) -> None:
        """Nobody has the changes between two changefeeds that write to one path. Raises PositionLost."""
        path, *numbers = tail.gtid_executed.rsplit(":", 3)
        if numbers and not self._folders.holds(path, *map(int, numbers)):
            raise PositionLost(
                f"{path} no longer has what was captured of it: it was removed; another changefeed may write here now",
                where=f"{self._settings.source} at {self._settings.path}",
                remedy="give a changefeed that begins anew a new path and a new lake",
            )

    def _days_behind(self, resolved_ts: int) -> float:
        return (physical_ms(self._checkpoint_ts) - physical_ms(resolved_ts)) / 1000 / _DAY.total_seconds()

    def open(self, checkpoint: StreamCheckpoint) -> None:
        self.checkpoint = checkpoint
        self._quiet_ts = checkpoint.resolved_ts

    # --- the stream --------------------------------------------------------------------------------

    @property
    def resolved_ts(self) -> int:
        return self._quiet_ts

    @property
    def source_ms(self) -> float:
        return time.time() * 1000

    def receive(self, timeout_seconds: float) -> list[Segment]:
        """Raises SourceUnavailable, SourceRefused, StreamCorrupt."""
        if self._quiet_ts >= self._ceiling_ts and not self._look(timeout_seconds):
            return []
        after_ts = self._quiet_ts
        wave = next_wave(list(self._folders.streams), after_ts, self._ceiling_ts, self._settings.segment_bytes)
        pieces = [*self._schemas(after_ts, wave), *wave.pieces]
        self._quiet_ts = wave.upto_ts
        if not pieces:
            return []
        segment = self._segment(wave, pieces)
        self.checkpoint = self.checkpoint.after(segment)
        return [segment]

    def _look(self, timeout_seconds: float) -> bool:
        """Whether there may be something new; waits for the next look that is due."""
        wait = self._looked_at + self._settings.look_seconds - time.monotonic()
        if self._looked_at and wait > 0:
            time.sleep(min(wait, timeout_seconds))
            if wait > timeout_seconds:
                return False
        self._looked_at = time.monotonic()
        self._checkpoint_ts = self._folders.checkpoint_ts()
        ceiling_ts = self._checkpoint_ts - 1  # a DDL of the checkpoint itself may come after it
        self._falls.look(ceiling_ts, self._quiet_ts)
        if ceiling_ts <= self._quiet_ts:
            return False
        self._folders.look(self._quiet_ts)
        self._ceiling_ts = ceiling_ts
        return True

    def cut_now(self) -> list[Segment]:
        """Nothing is held back: lines read and not given are read again."""
        return []

    cut_soon = cut_now

    def heartbeat(self) -> Segment | None:
        now = time.monotonic()
        quiet = self._quiet_ts > self.checkpoint.resolved_ts
        if not quiet or now - self._told_at < self._settings.heartbeat_seconds:
            return None
        segment = self._segment(Wave(self._quiet_ts, [], (0, 0)), [])
        self.checkpoint = self.checkpoint.after(segment)
        return segment

    def acknowledge(self) -> None:
        pass

    def keep_time(self) -> None:
        pass

    def retention(self) -> Retention | None:
        days = self._settings.expiration_days
        if not days:
            return Retention(None, "", self._settings.path, 0)
        left = (days - self._days_behind(self._quiet_ts)) * _DAY.total_seconds()
        return Retention(max(left, 0.0), "age", self._settings.path, 0)

    def close(self) -> None:
        pass

    # --- segments ----------------------------------------------------------------------------------

    def _schemas(self, after_ts: int, wave: Wave) -> list[tuple[Piece, bytes]]:
        """Schema files of the range, and those of found tables with their first lines."""
        pieces: list[tuple[int, Piece, bytes]] = []
        for database, schemas in self._folders.databases.items():
            pieces += _in_range(database, "", schemas, after_ts, wave.upto_ts)
        for name, table in self._folders.tables.items():
            pieces += _in_range(*name, table.schemas, after_ts, wave.upto_ts)
        versions = {(piece.name, int(piece.path.split("/")[2])) for piece, _ in wave.pieces}
        for name, version in sorted(versions):
            pieces += self._found(self._folders.tables[name], version, after_ts)
        return [(piece, data) for _, piece, data in sorted(pieces, key=lambda stamped: (stamped[0], stamped[1].path))]

    def _found(self, table: TableFolders, version: int, after_ts: int) -> Iterator[tuple[int, Piece, bytes]]:
        schema = table.schemas.get(version)
        if schema is not None and not schema.file.query and not table.announced:
            table.announced = True
            piece = Piece(schema.path, 0, len(schema.data), table.database, table.table, schema=True, found=True)
            yield after_ts, piece, schema.data

    def _segment(self, wave: Wave, pieces: list[tuple[Piece, bytes]]) -> Segment:
        before, settings = self.checkpoint, self._settings
        payload = b"".join(data for _, data in pieces)
        self._told_at = time.monotonic()
        described = [piece for piece, _ in pieces]
        has_ddl = any(piece.schema for piece in described)
        stamps = _stamps(wave, before.resolved_ts, [piece for piece in described if piece.schema])
        return replace(
            following(before, settings.source, payload),
            kind=SegmentKind.TICDC if pieces else SegmentKind.HEARTBEAT,
            min_commit_ts=stamps[0],
            max_commit_ts=stamps[1],
            resolved_ts=wave.upto_ts,
            gtid_executed=_last_file(pieces),
            tables=self._tables(described),
            flags=SegmentFlag.HAS_DDL if has_ddl else SegmentFlag(0),
            event_count=payload.count(b"\n"),
            context=context_of(settings.form, described) if pieces else b"",
        )

    def _tables(self, pieces: list[Piece]) -> tuple[str, ...]:
        """The tables that the segment may change; every one where a statement doesn't say."""
        names: set[tuple[str, str]] = {piece.name for piece in pieces if not piece.schema}
        for piece in pieces:
            if not piece.schema:
                continue
            named = tables_named(self._schema(piece).file)
            if named is None:
                return (EVERY_TABLE,)
            names.update(named)
        return tuple(sorted(".".join(name) for name in names))

    def _schema(self, piece: Piece) -> Schema:
        if not piece.table:
            schemas = self._folders.databases[piece.database]
        else:
            schemas = self._folders.tables[piece.name].schemas
        return next(schema for schema in schemas.values() if schema.path == piece.path)


def _in_range(
    database: str, table: str, schemas: dict[int, Schema], after_ts: int, upto_ts: int
) -> Iterator[tuple[int, Piece, bytes]]:
    """Those that a statement made at a commit_ts in (after_ts, upto_ts]."""
    for version, schema in schemas.items():
        if schema.file.query and after_ts < version <= upto_ts:
            yield version, Piece(schema.path, 0, len(schema.data), database, table, schema=True), schema.data


def _last_file(pieces: list[tuple[Piece, bytes]]) -> str:
    """File, begin, end and CRC-32C of the last lines, without any of the last schema file; "" of nothing."""
    if not pieces:
        return ""
    piece, data = next(((piece, data) for piece, data in reversed(pieces) if not piece.schema), pieces[-1])
    return f"{piece.path}:{piece.offset}:{piece.offset + piece.length}:{crc32c(data)}"


def _stamps(wave: Wave, before_ts: int, schemas: list[Piece]) -> tuple[int, int]:
    """The smallest and the largest commit_ts of lines and statements."""
    said = [stamp for stamp in wave.stamps if stamp]
    for piece in schemas:
        version = int(piece.path.rpartition("/")[2].split("_")[1])
        said.append(before_ts + 1 if piece.found else version)
    return (min(said), max(said)) if said else (0, 0)
