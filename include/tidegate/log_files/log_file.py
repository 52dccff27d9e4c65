"""A binlog file on disk as segments, in bounded memory.

In:  the path of a binlog or relay log file of MySQL or MariaDB; the commit_ts before it.
Out: Segments that each decode alone; StreamCorrupt where the file is damaged, and at the end when
     its tail is missing. Only whole transactions come out.

The file is read in pieces of SEGMENT_BYTES_MAX (more when one event is larger). A piece ends with
its last whole transaction; the beginning of an unfinished one is read again with the next piece. A
transaction larger than a piece is cut at event boundaries, with the same context as in
mysql/stream/cutter.py. Its pieces come out once its end was read.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from stat import S_ISREG
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from tidegate.binlog import transaction_scan as scan
from tidegate.binlog.format.events import BINLOG_MAGIC, HEADER_BYTES, EventType, closed_file, read_header, type_name
from tidegate.binlog.format.format_description import FormatDescription, parse_format_description
from tidegate.binlog.format.query import parse_query
from tidegate.binlog.kernel import file_walk as F  # noqa: N812 - a page of constants
from tidegate.errors import DecodeError, StreamCorrupt, Terminal, UnknownEvent, UnsupportedValue, UsageError
from tidegate.limits import LOG_EVENT_BYTES_MAX, SEGMENT_BYTES_MAX
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentFlag, SegmentKind

MAGIC_BYTES: Final = len(BINLOG_MAGIC)
_ENCRYPTED_MAGIC: Final = b"\xfdbin"  # mysql-server sql/binlog_ostream.h, binlog_encryption=ON
_ROWS_AT_ONCE: Final = 1 << 17
_DESCRIPTION: Final = int(EventType.FORMAT_DESCRIPTION)
_NOT_FIRST: Final = -1
_WORDS: Final = {
    F.LOOK: "stands inside a transaction",
    F.BAD_LENGTH: "has an impossible length",
    F.BAD_CHECKSUM: "has a wrong checksum",
    F.BAD_EVENT: "is too short for what its type says",
    F.BAD_BEGIN: "begins a transaction inside another: the server crashed there, or bytes are missing",
    _NOT_FIRST: "comes first, before any FORMAT_DESCRIPTION",
}
_REMEDY: Final = "copy the file again from its server"
_TAIL: Final = "what comes before is complete; copy the file again for the rest"
_DECRYPT: Final = "give what the server sends, which is decrypted: mysqlbinlog --read-from-remote-server --raw"


@dataclass(frozen=True, slots=True)
class FilePiece:
    """A part of the file that decodes alone. Its payload lies in a buffer that the next piece overwrites.

    description: the FORMAT_DESCRIPTION event in force. events: how many the payload has. undone: a part of a
    transaction with ROLLBACK at its end; undoes: that ROLLBACK is in it, and the parts before it are marked so.
    """

    segment: Segment
    description: bytes
    events: int
    undone: bool = False
    undoes: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a piece lies, and what decoding it needs beside its bytes."""

    start: int
    end: int
    prev_commit_ts: int
    context: bytes
    events: int


class BinlogFile:
    """An open file. The attributes say how far the last walk came.

    read_to: offset after the last whole transaction given out. commit_ts: of that transaction, the floor of the next
    file. format: of the FORMAT_DESCRIPTION read last, None before the first.
    """

    def __init__(self, path: Path, commit_ts: int = 0) -> None:
        """Raises UsageError when there is no such file, StreamCorrupt or UnsupportedValue when it isn't a binlog."""
        self.path = path
        self.name = path.name
        self.commit_ts = commit_ts
        self.format: FormatDescription | None = None
        self._description = b""
        self._buffer = np.empty(0, np.uint8)
        self._found = np.empty((0, F.FOUND_WORDS), np.int64)
        self._carried: tuple[list[bytes], list[bytes]] = ([], [])
        self._event_bytes = 0  # of an event that didn't fit into the buffer
        try:
            if not S_ISREG(path.stat().st_mode):  # before it is opened: a pipe would make us wait
                raise UsageError("not a file", where=str(path), remedy="give a binlog file, not a pipe or a folder")
            self._file = FileIO(path)
        except OSError as error:
            what = f"can't be read: {error.strerror}"
            raise UsageError(what, where=str(path), remedy="give a binlog file") from error
        try:
            self.size, self.read_to = self._check()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def where(self, offset: int) -> str:
        return f"{self.name}:{offset}"

    def _check(self) -> tuple[int, int]:
        """Size of the file, and how much of the magic number is there (all of it, unless the file ends within)."""
        status = os.fstat(self._file.fileno())
        magic = self._file.read(MAGIC_BYTES)
        if magic == _ENCRYPTED_MAGIC:
            raise UnsupportedValue("the file is encrypted (binlog_encryption=ON)", where=self.name, remedy=_DECRYPT)
        if not BINLOG_MAGIC.startswith(magic):
            raise StreamCorrupt(
                f"not a binlog file: it begins with {magic.hex()}, not with {BINLOG_MAGIC.hex()}",
                where=self.name,
                remedy="give a file as the server wrote it, not one that was compressed or converted",
            )
        return status.st_size, len(magic)

    def pieces(self) -> Iterator[FilePiece]:
        """All whole transactions. Raises StreamCorrupt, UnsupportedValue or UnknownEvent after the last one that is
        whole: for a fault, and at the end of a file whose tail is missing.
        """
        if 0 < self.size < MAGIC_BYTES:
            raise StreamCorrupt("the file ends inside its magic number", where=self.where(0), remedy=_REMEDY)
        yield from self._pieces(MAGIC_BYTES, self.size)

    def range(self, start: int, end: int, description: bytes) -> Iterator[FilePiece]:
        """The transactions between two offsets at which transactions begin and end, walked before."""
        self.format, self._description = parse_format_description(description, self.name), description
        yield from self._pieces(start, end)

    def _pieces(self, at: int, end: int) -> Iterator[FilePiece]:
        state = scan.new_state(self.commit_ts, self.format.checksum_bytes if self.format else 0)
        held: list[_Place] = []
        fault: Terminal | None = None
        looked = False
        while at < end and fault is None:
            begun_open, floor = _open(state), _floor(state)
            if not begun_open:
                self._carried = ([], [])
            events, reached, stopped = self._walk(at, end, state, looked=looked)
            looked = False
            if _open(state) and (begun := _last_begun(events)):
                # A transaction whose end isn't read yet: walk it again from its beginning.
                reached = int(events[begun, F.OFFSET])
                events = events[:begun]
                state = scan.new_state(int(state[scan.BEFORE]), int(state[scan.CHECKSUM]))
                stopped = F.FULL
            if reached:
                frames, maps = self._carried
                place = _Place(at, at + reached, floor, b"".join([self._description, *frames, *maps]), len(events))
                if _open(state):
                    self._carry(events)
                    held.append(place)
                else:
                    undone = bool(held) and self._rolled_back(events)
                    for earlier in held:
                        yield replace(self._piece(earlier, self._read(earlier.start, earlier.end)), undone=undone)
                    held = []
                    yield replace(self._piece(place, self._buffer[:reached]), undoes=undone)
                    self.read_to, self.commit_ts = place.end, int(state[scan.PREVIOUS])
            at += reached
            if stopped != F.FULL:
                looked, fault = self._stop(at, end, stopped, state)
            if looked:
                self._describe(at)
        if fault is None and _open(state):
            fault = self._truncated(self.read_to, "inside a transaction")
        if fault is not None:
            raise fault

    def _walk(
        self, at: int, end: int, state: npt.NDArray[np.int64], *, looked: bool
    ) -> tuple[npt.NDArray[np.int64], int, int]:
        """(events found, bytes they take, why it stopped) from offset at on; the buffer then begins with them."""
        room = min(end - at, max(SEGMENT_BYTES_MAX, self._event_bytes))
        if len(self._buffer) < room:
            self._buffer = np.empty(room, np.uint8)
        if not len(self._found):
            self._found = np.empty((_ROWS_AT_ONCE, F.FOUND_WORDS), np.int64)
        total = self._fill(self._buffer[:room], at)
        if self.format is None and not looked and (total < HEADER_BYTES or self._buffer[4] != _DESCRIPTION):
            return self._found[:0], 0, F.END if total < HEADER_BYTES else _NOT_FIRST
        place = np.zeros(2, np.int64)
        stopped = int(F.walk_file(self._buffer, total, 0 if looked else -1, state, self._found, place))
        return self._found[: int(place[1])], int(place[0]), stopped

    def _fill(self, buffer: npt.NDArray[np.uint8], at: int) -> int:
        """Read the file from an offset into all of buffer; fewer bytes only when the file was cut meanwhile."""
        view, filled = memoryview(buffer.data), 0
        self._file.seek(at)
        while filled < len(view):
            count = self._file.readinto(view[filled:])
            if not count:
                break
            filled += count
        return filled

    def _read(self, start: int, end: int) -> npt.NDArray[np.uint8]:
        data = np.empty(end - start, np.uint8)
        if self._fill(data, start) < len(data):
            raise StreamCorrupt("the file was cut while it was read", where=self.where(start), remedy=_REMEDY)
        return data

    def _stop(self, at: int, end: int, stopped: int, state: npt.NDArray[np.int64]) -> tuple[bool, Terminal | None]:
        """(whether a FORMAT_DESCRIPTION lies at offset at, a fault there) for the walk's stop."""
        event = self._read(at, min(at + HEADER_BYTES, end)).tobytes()
        if stopped == F.END and len(event) < HEADER_BYTES:
            return False, self._truncated(at, f"{len(event)} bytes into an event") if event else None
        header = read_header(event)
        named = type_name(header.type)
        if stopped == F.END:
            if at + header.size > end:
                cut_off = f"{end - at} bytes into event {named}, whose size is {header.size}"
                return False, self._truncated(at, cut_off)
            if header.size > LOG_EVENT_BYTES_MAX:
                return False, self._corrupt(at, f"event {named} has a length of {header.size} bytes")
            self._event_bytes = max(self._event_bytes, header.size)
            return False, None
        if stopped == F.LOOK and header.type == _DESCRIPTION and not _open(state):
            return True, None
        if stopped == F.LOOK and header.type == EventType.MARIADB_START_ENCRYPTION:
            encrypted = "the file is encrypted (START_ENCRYPTION, encrypt_binlog=ON)"
            return False, UnsupportedValue(encrypted, where=self.where(at), remedy=_DECRYPT)
        return False, self._corrupt(at, f"event {named} {_WORDS[stopped]}")

    def _truncated(self, at: int, how: str) -> StreamCorrupt:
        inside = "" if at == self.read_to else f" (at {at})"
        return StreamCorrupt(f"truncated: the file ends {how}{inside}", where=self.where(self.read_to), remedy=_TAIL)

    def _corrupt(self, at: int, what: str) -> StreamCorrupt:
        return StreamCorrupt(what, where=self.where(at), remedy=_REMEDY)

    def _describe(self, at: int) -> None:
        """Check and take in the FORMAT_DESCRIPTION event at an offset."""
        size = read_header(self._read(at, at + HEADER_BYTES).tobytes()).size
        event = closed_file(self._read(at, at + size))
        self.format = parse_format_description(bytes(event), self.where(at))
        if self.format.checksum_bytes and zlib.crc32(event[:-4]) != int.from_bytes(event[-4:], "little"):
            raise self._corrupt(at, f"event FORMAT_DESCRIPTION (15) {_WORDS[F.BAD_CHECKSUM]}")
        self._description = bytes(event)

    def _carry(self, events: npt.NDArray[np.int64]) -> None:
        """Keep the open transaction's FRAME events and live TABLE_MAPs for the next piece's context."""
        frames, maps = self._carried
        bits = events[:, F.BITS]
        ended = np.flatnonzero(bits & scan.STATEMENT_END)
        live = int(ended[-1]) + 1 if len(ended) else 0
        new_frames = events[(bits & scan.FRAME) != 0]
        new_maps = events[live:][(bits[live:] & scan.TABLE_MAP) != 0]
        self._carried = (
            frames + [self._event(row) for row in new_frames],
            ([] if live else maps) + [self._event(row) for row in new_maps],
        )

    def _rolled_back(self, events: npt.NDArray[np.int64]) -> bool:
        """Whether the transaction that ends first is rolled back."""
        last = events[int(np.flatnonzero(events[:, F.BITS] & scan.ENDS)[0])]
        if last[F.TYPE] != EventType.QUERY or self.format is None:
            return False
        try:
            return parse_query(self._event(last), self.format.checksum_bytes).sql.upper() == "ROLLBACK"
        except (DecodeError, UnsupportedValue):
            return False  # whoever decodes the event reports it

    def _event(self, row: npt.NDArray[np.int64]) -> bytes:
        return self._buffer[int(row[F.OFFSET]) : int(row[F.OFFSET] + row[F.SIZE])].tobytes()

    def _piece(self, place: _Place, payload: npt.NDArray[np.uint8]) -> FilePiece:
        segment = Segment(
            source=self.name,
            seq=0,
            kind=SegmentKind.BINLOG,
            server_id=0,
            server_uuid="",
            file=self.name,
            start_pos=place.start,
            end_pos=place.end,
            gtid_executed="",
            prev_commit_ts=place.prev_commit_ts,
            min_commit_ts=0,
            max_commit_ts=0,
            resolved_ts=0,
            tables=(),
            flags=SegmentFlag(0),
            event_count=place.events,
            txn_count=0,
            context=place.context,
            payload=memoryview(payload.data).toreadonly(),
            payload_crc32c=0,
            captured_at=datetime.fromtimestamp(0, tz=UTC),
        )
        return FilePiece(segment, self._description, place.events)


def server_version(paths: Sequence[Path]) -> str:
    """The version of the server, from the first file that says it; "" when none does."""
    for path in paths:
        try:
            with BinlogFile(path) as log:
                next(log.pieces(), None)
        except (StreamCorrupt, UnsupportedValue, UnknownEvent):
            continue  # whoever decodes the file reports it
        if log.format:
            return log.format.server_version
    return ""


def _open(state: npt.NDArray[np.int64]) -> bool:
    return bool(state[scan.PHASE] != scan.IDLE)


def _last_begun(events: npt.NDArray[np.int64]) -> int:
    """Which row begins a transaction last; 0 when none does, or the first."""
    begins = np.flatnonzero(events[:, F.BITS] & scan.BEGINS)
    return int(begins[-1]) if len(begins) else 0


def _floor(state: npt.NDArray[np.int64]) -> int:
    """prev_commit_ts of a piece that begins in this state."""
    return int(state[scan.BEFORE] if _open(state) else state[scan.PREVIOUS])
