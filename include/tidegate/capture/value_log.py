"""The value log: segments on this machine's disk, safe before anything else is done with them.

In:  segments in order of seq.
Out: the same segments after a crash, up to the last complete record.

Files 000001.vlog, 000002.vlog ...; record = u32 magic, u64 length, u32 CRC-32C of payload, payload; a file that
is full ends with a footer = i64 largest commit_ts, u32 end magic; all little-endian (TiDB Binlog,
pump/storage/vlog.go and log.go). A record's payload = u32 length of a JSON header, the header (a segment's
fields), its context, its payload.

append writes, sync makes durable; a segment counts as captured only after sync. Opening scans every file that
has no footer for its true end; a torn tail is cut off, since nothing behind the last sync was promised.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from tidegate.binlog.crc32c import crc32c
from tidegate.binlog.segment import Segment
from tidegate.errors import Fenced, ValueLogError
from tidegate.limits import VALUE_LOG_FILE_BYTES
from tidegate.tables import SegmentFlag, SegmentKind

RECORD_MAGIC: Final = 0x823A56E8
FOOTER_MAGIC: Final = 0x123AB922
_RECORD: Final = struct.Struct("<IQI")
_FOOTER: Final = struct.Struct("<qI")
_LENGTH: Final = struct.Struct("<I")
_BYTES_FIELDS: Final = ("context", "payload")


@dataclass(slots=True)
class _File:
    """A file of the log: what it holds, so that gc needs no look inside."""

    path: Path
    bytes: int = 0
    max_commit_ts: int = 0
    max_seq: int = 0
    complete: bool = False


class ValueLog:
    """One source's value log; at most one process has it open (flock)."""

    def __init__(self, folder: Path, *, file_bytes: int = VALUE_LOG_FILE_BYTES) -> None:
        self.folder = folder
        self._file_bytes = file_bytes
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = (folder / "lock").open("a")
        except OSError as error:
            raise ValueLogError(
                f"can't be opened: {error.strerror}",
                where=str(folder),
                remedy="set capture.value_log_path to a writable folder",
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise Fenced(
                "another process captures this source on this machine", where=str(folder), remedy="stop it first"
            ) from error
        self._files = [self._scan(path) for path in sorted(folder.glob("*.vlog"))]
        self._current = self._open_last()

    def close(self) -> None:
        """Give up files and lock; what wasn't synced stays unpromised."""
        self._current.close()
        self._lock.close()

    @property
    def bytes(self) -> int:
        """On disk."""
        return sum(file.bytes for file in self._files)

    @property
    def max_commit_ts(self) -> int:
        """The largest commit_ts in here; 0 when empty."""
        return max((file.max_commit_ts for file in self._files), default=0)

    def append(self, segment: Segment) -> None:
        """Write a record. Raises ValueLogError; then the log must be opened anew."""
        if self._files[-1].bytes >= self._file_bytes:
            self._rotate()
        parts = _encode(segment)
        crc = 0
        for part in parts:
            crc = crc32c(part, crc)
        length = sum(len(part) for part in parts)
        try:
            _write_all(self._current.fileno(), [_RECORD.pack(RECORD_MAGIC, length, crc), *parts])
        except OSError as error:
            raise ValueLogError(
                f"can't be written: {error.strerror}", where=str(self._files[-1].path), remedy="make room on this disk"
            ) from error
        file = self._files[-1]
        file.bytes += _RECORD.size + length
        _count(file, segment)

    def sync(self) -> None:
        """Make every append so far durable (fdatasync)."""
        try:
            os.fdatasync(self._current.fileno())
        except OSError as error:
            raise ValueLogError(
                f"can't be synced: {error.strerror}", where=str(self._files[-1].path), remedy="check this disk"
            ) from error

    def read(self, after_seq: int = 0) -> Iterator[Segment]:
        """Segments with a larger seq, in order. Raises ValueLogError on a damaged record."""
        for file in self._files:
            if file.max_seq > after_seq:
                for segment, _ in _records(file.path):
                    if segment.seq > after_seq:
                        yield segment

    def gc(self, committed_seq: int) -> int:
        """Delete files whose segments are all in bronze; bytes freed. The file being written is first completed."""
        if self._files[-1].bytes and self._files[-1].max_seq <= committed_seq:
            if self._files[-1].bytes < self._file_bytes // 8:
                committed = self._files[:-1]
            else:
                self._rotate()
                committed = self._files[:-1]
        else:
            committed = self._files[:-1]
        freed = 0
        for file in list(committed):
            if file.max_seq > committed_seq:
                break
            file.path.unlink()
            self._files.remove(file)
            freed += file.bytes
        return freed

    def _open_last(self) -> Any:
        if not self._files or self._files[-1].complete:
            number = int(self._files[-1].path.stem) + 1 if self._files else 1
            self._files.append(_File(self.folder / f"{number:06d}.vlog"))
        file = self._files[-1].path.open("ab", buffering=0)
        _sync_folder(self.folder)
        return file

    def _rotate(self) -> None:
        last = self._files[-1]
        _write_all(self._current.fileno(), [_FOOTER.pack(last.max_commit_ts, FOOTER_MAGIC)])
        self.sync()
        self._current.close()
        last.bytes += _FOOTER.size
        last.complete = True
        self._current = self._open_last()

    def _scan(self, path: Path) -> _File:
        """Find the true end of a file, cut off a torn tail, and learn what it holds."""
        file = _File(path)
        size = path.stat().st_size
        for segment, end in _records(path, torn_is_end=True):
            file.bytes = end
            _count(file, segment)
        with path.open("r+b") as opened:
            opened.seek(file.bytes)
            tail = opened.read(_FOOTER.size)
            if (
                len(tail) == _FOOTER.size
                and _FOOTER.unpack(tail)[1] == FOOTER_MAGIC
                and size == file.bytes + _FOOTER.size
            ):
                file.bytes, file.complete = size, True
            elif size > file.bytes:
                opened.truncate(file.bytes)
                os.fsync(opened.fileno())
        return file


def _count(file: _File, segment: Segment) -> None:
    file.max_commit_ts = max(file.max_commit_ts, segment.max_commit_ts, segment.resolved_ts)
    file.max_seq = max(file.max_seq, segment.seq)


def _encode(segment: Segment) -> list[bytes | memoryview]:
    header = {field.name: getattr(segment, field.name) for field in fields(segment) if field.name not in _BYTES_FIELDS}
    header |= {
        "captured_at": segment.captured_at.isoformat(),
        "flags": int(segment.flags),
        "context_bytes": len(segment.context),
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    return [_LENGTH.pack(len(text)), text, segment.context, segment.payload]


def _decode(record: bytes) -> Segment:
    (size,) = _LENGTH.unpack_from(record)
    header = json.loads(record[4 : 4 + size])
    at = 4 + size
    end = at + header.pop("context_bytes")
    return Segment(
        **header
        | {
            "kind": SegmentKind(header["kind"]),
            "tables": tuple(header["tables"]),
            "flags": SegmentFlag(header["flags"]),
            "captured_at": datetime.fromisoformat(header["captured_at"]),
            "context": record[at:end],
            "payload": record[end:],
        }
    )


def _records(path: Path, *, torn_is_end: bool = False) -> Iterator[tuple[Segment, int]]:
    """(segment, offset behind its record) of each record; stops at the footer or the end."""
    with path.open("rb") as file:
        while True:
            at = file.tell()
            head = file.read(_RECORD.size)
            if len(head) < _RECORD.size:
                if head and not torn_is_end and _FOOTER.size != len(head):
                    raise ValueLogError("a record is torn", where=f"{path}:{at}", remedy="open the log anew")
                return
            magic, length, crc = _RECORD.unpack(head)
            record = file.read(length) if magic == RECORD_MAGIC else b""
            if magic != RECORD_MAGIC or len(record) < length or crc32c(record) != crc:
                if torn_is_end:
                    return
                raise ValueLogError("a record is damaged", where=f"{path}:{at}", remedy="check this disk")
            yield _decode(record), file.tell()


def _write_all(descriptor: int, parts: list[bytes | memoryview]) -> None:
    """Writev until all is written; a short write goes on where it stopped."""
    waiting = [memoryview(part) for part in parts if len(part)]
    while waiting:
        written = os.writev(descriptor, waiting)
        while waiting and written >= len(waiting[0]):
            written -= len(waiting.pop(0))
        if written:
            waiting[0] = waiting[0][written:]


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
