"""Compressed events become the plain events that they stand for, before anything looks at them.

In:  the captured bytes: whole events, some of them compressed.
Out: Pieces: plain events back to back, and which captured event each comes from. StreamCorrupt for bytes that
     contradict themselves, UnknownEvent for a compression that this version doesn't know; both with the place of the
     captured event, which is the position of everything in it.

What must hold: nothing is believed before it is seen. A length in a header bounds what is expanded, it allocates
nothing; a huge transaction comes in several pieces, none larger than about the size asked for or its largest event.

Layouts: TRANSACTION_PAYLOAD: mysql-server libs/mysql/binlog/event/codecs/binary.cpp: fields of (type, length, value),
all packed integers: 2 compression (0 zstd, 255 none), 3 uncompressed size, 1 payload size; 0 ends them, and the payload
follows. MariaDB: sql/log_event.cc (binlog_buf_compress, query_event_uncompress, row_log_event_uncompress): all in front
of the statement, or of the first row, stays as it is; then one byte 0x80 | algorithm << 4 | n, the original length in
n bytes, big-endian, and zlib's stream.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.binlog.cursor import Cursor
from tidegate.binlog.events import HEADER_BYTES, EventType, type_name
from tidegate.binlog.kernel import compressed as C  # noqa: N812 - a page of constants
from tidegate.errors import DecodeError, StreamCorrupt, UnknownEvent
from tidegate.limits import EXPANDED_PIECE_BYTES

_REMEDY: Final = "capture the segment again from the source"
_ZSTD, _NONE = 0, 255
_PAYLOAD_SIZE, _COMPRESSION, _UNCOMPRESSED_SIZE = 1, 2, 3
_ZLIB_GAIN_MAX: Final = 1040  # zlib never packs more than 1032 bytes into one, and a header is a few
_EVENT_BYTES_MAX: Final = (1 << 32) - 1
_CODEC: Final = pa.Codec("zstd")

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Piece:
    """Plain events. base: where data begins in all that the payload expands to.

    spans: int64[n, SPAN_WORDS], ascending. ends: offsets in data behind the last event of each transaction payload.
    complete: whether the captured event that the last bytes come from ends here.
    """

    data: Bytes
    base: int
    spans: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    complete: bool

    def origins(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Offsets in the captured payload of the events at these offsets in data."""
        spans = self.spans[self.span_of(offsets)]
        along = (offsets - spans[:, SPAN_START]) * (spans[:, SPAN_KIND] == PLAIN)
        return spans[:, SPAN_ORIGIN] + along  # type: ignore[no-any-return]

    def span_of(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Number of the span that each offset lies in."""
        return np.searchsorted(self.spans[:, SPAN_START], offsets, side="right") - 1


SPAN_START: Final = 0  # in data
SPAN_ORIGIN: Final = 1  # in the captured payload
SPAN_KIND: Final = 2
SPAN_WORDS: Final = 3
PLAIN: Final = 0  # as captured: offsets in both run side by side
SINGLE: Final = 1  # one event, expanded
NESTED: Final = 2  # events of a transaction payload


@dataclass(slots=True)
class _Pile:
    """What will be the next piece."""

    base: int = 0
    parts: list[Bytes] = field(default_factory=list)
    spans: list[tuple[int, int, int]] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    size: int = 0

    def add(self, part: Bytes, origin: int, kind: int) -> None:
        if len(part):
            self.spans.append((self.size, origin, kind))
            self.parts.append(part)
            self.size += len(part)

    def take(self, *, complete: bool) -> Piece:
        piece = Piece(
            np.concatenate(self.parts) if self.parts else np.empty(0, np.uint8),
            self.base,
            np.array(self.spans, np.int64).reshape(-1, SPAN_WORDS),
            np.array(self.ends, np.int64),
            complete,
        )
        self.base += self.size
        self.parts, self.spans, self.ends, self.size = [], [], [], 0
        return piece


def captured_events(data: Bytes, checksum_bytes: int) -> npt.NDArray[np.int64]:
    """int64[n, FOUND_WORDS] (kernel/compressed.py) of the events in data, as far as they are whole."""
    count = int(C.list_events(data.ctypes.data, len(data), checksum_bytes, 0))
    found = np.empty((count, C.FOUND_WORDS), np.int64)
    C.list_events(data.ctypes.data, len(data), checksum_bytes, found.ctypes.data)
    return found


def expand(
    data: Bytes, checksum_bytes: int, where: Callable[[int], str], piece_bytes: int = EXPANDED_PIECE_BYTES
) -> Iterator[Piece]:
    """Pieces of about piece_bytes. where: the place of a captured event by its offset, for errors."""
    found = captured_events(data, checksum_bytes)
    found = found[np.isin(found[:, C.FOUND_TYPE], _COMPRESSED_TYPES)]
    pile, done = _Pile(), 0
    for offset, size, kind, checksum in found.tolist():
        pile.add(data[done:offset], done, PLAIN)
        done = offset + size
        event = data[offset:done]
        if kind != EventType.TRANSACTION_PAYLOAD:
            with _named(kind, where, offset):
                pile.add(expand_event(event, checksum), offset, SINGLE)
        else:
            parts = inner_events(event, checksum, piece_bytes)
            while True:
                with _named(kind, where, offset):
                    part = next(parts, None)
                if part is None:
                    break
                if pile.size >= piece_bytes:
                    yield pile.take(complete=not pile.spans or pile.spans[-1][1] != offset)
                pile.add(part, offset, NESTED)
            pile.ends.append(pile.size)
        if pile.size >= piece_bytes:
            yield pile.take(complete=True)
    pile.add(data[done:], done, PLAIN)
    if pile.size:
        yield pile.take(complete=True)


@contextmanager
def _named(kind: int, where: Callable[[int], str], offset: int) -> Iterator[None]:
    """What is raised inside gets the captured event's type and place."""
    try:
        yield
    except UnknownEvent as error:
        raise UnknownEvent(f"{type_name(kind)}: {error.what}", where=where(offset), remedy=error.remedy) from None
    except DecodeError as error:
        raise StreamCorrupt(f"{type_name(kind)}: {error.what}", where=where(offset), remedy=_REMEDY) from None


# --- TRANSACTION_PAYLOAD --------------------------------------------------------------------------------


def inner_events(event: Bytes, checksum_bytes: int, piece_bytes: int = EXPANDED_PIECE_BYTES) -> Iterator[Bytes]:
    """The events in a TRANSACTION_PAYLOAD, whole ones, in parts of about piece_bytes; each has checksum_bytes zero
    bytes at its end. Raises DecodeError and UnknownEvent.
    """
    compression, size, at = _payload_fields(event, checksum_bytes)
    packed = event[at : len(event) - checksum_bytes]
    state = np.zeros(C.INNER_WORDS, np.int64)
    left, parts, have, laid = size, list[Bytes](), 0, False
    for part in _unpacked(packed, compression, size, piece_bytes):
        parts.append(part)
        have += len(part)
        if have < state[C.NEEDED]:
            continue
        waiting = np.concatenate(parts) if len(parts) > 1 else part
        target = np.empty(len(waiting) + checksum_bytes * (len(waiting) // HEADER_BYTES), np.uint8)
        state[C.REMAINING] = left
        code = int(
            C.lay_inner(waiting.ctypes.data, len(waiting), target.ctypes.data, checksum_bytes, state.ctypes.data)
        )
        if code == C.BAD_KIND:
            raise DecodeError(f"holds an event that can't be nested, {type_name(int(state[C.KIND]))}")
        if code == C.BAD_SIZE:
            raise DecodeError(f"holds an event with a wrong length, {type_name(int(state[C.KIND]))}")
        left -= int(state[C.CONSUMED])
        parts = [waiting[int(state[C.CONSUMED]) :]]
        have = len(parts[0])
        if state[C.WRITTEN]:
            laid = True
            yield target[: int(state[C.WRITTEN])]
    if left or not laid:
        raise DecodeError("ends inside an event" if laid else "holds no event")


def _payload_fields(event: Bytes, checksum_bytes: int) -> tuple[int, int, int]:
    """(compression, size of what it unpacks to, offset of the payload)."""
    head = event[: HEADER_BYTES + 64].tobytes()
    cursor = Cursor(head, HEADER_BYTES, min(len(head), len(event) - checksum_bytes))
    found: dict[int, int] = {}
    while kind := cursor.packed():
        size = cursor.packed()
        if kind in found or kind > _UNCOMPRESSED_SIZE:
            raise DecodeError(f"has field {kind} twice" if kind in found else f"has an unknown field, {kind}")
        behind = cursor.at + size
        found[kind] = cursor.packed()
        if cursor.at != behind:
            raise DecodeError(f"field {kind} isn't as long as it says")
    packed = len(event) - checksum_bytes - cursor.at
    if found.get(_PAYLOAD_SIZE) != packed:
        raise DecodeError(f"says it holds {found.get(_PAYLOAD_SIZE)} bytes, and holds {packed}")
    compression = found.get(_COMPRESSION)
    if compression not in (_ZSTD, _NONE):
        raise UnknownEvent(
            f"compression type {compression} can't be read", remedy="set binlog_transaction_compression=OFF"
        )
    unpacked = found.get(_UNCOMPRESSED_SIZE, packed if compression == _NONE else None)
    if unpacked is None or (compression == _NONE and unpacked != packed):
        raise DecodeError(f"says it unpacks to {unpacked} bytes")
    return compression, unpacked, cursor.at


def _unpacked(packed: Bytes, compression: int, size: int, piece_bytes: int) -> Iterator[Bytes]:
    """The bytes that were packed, `size` of them, in parts of piece_bytes."""
    try:
        if compression == _NONE:
            for at in range(0, size, piece_bytes):
                yield packed[at : at + piece_bytes]
        elif size <= piece_bytes:
            yield np.frombuffer(_CODEC.decompress(pa.py_buffer(packed), size), np.uint8)
        else:
            yield from _streamed(packed, size, piece_bytes)
    except OSError as error:
        raise DecodeError(f"can't be unpacked to {size} bytes ({error})") from None


def _streamed(packed: Bytes, size: int, piece_bytes: int) -> Iterator[Bytes]:
    stream = pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(packed)), "zstd")
    left = size
    while True:
        part = np.frombuffer(stream.read_buffer(piece_bytes), np.uint8)
        if not len(part):
            break
        left -= len(part)
        if left < 0:
            break
        yield part
    if left:
        raise DecodeError(f"doesn't unpack to {size} bytes")


# --- MariaDB --------------------------------------------------------------------------------------------

_PLAIN_OF: Final = {
    int(EventType.MARIADB_QUERY_COMPRESSED): EventType.QUERY,
    int(EventType.MARIADB_WRITE_ROWS_COMPRESSED_V1): EventType.WRITE_ROWS_V1,
    int(EventType.MARIADB_UPDATE_ROWS_COMPRESSED_V1): EventType.UPDATE_ROWS_V1,
    int(EventType.MARIADB_DELETE_ROWS_COMPRESSED_V1): EventType.DELETE_ROWS_V1,
    int(EventType.MARIADB_WRITE_ROWS_COMPRESSED): EventType.WRITE_ROWS_V2,
    int(EventType.MARIADB_UPDATE_ROWS_COMPRESSED): EventType.UPDATE_ROWS_V2,
    int(EventType.MARIADB_DELETE_ROWS_COMPRESSED): EventType.DELETE_ROWS_V2,
}
_UPDATES: Final = {EventType.UPDATE_ROWS_V1, EventType.UPDATE_ROWS_V2}
_COMPRESSED_TYPES: Final = np.array([EventType.TRANSACTION_PAYLOAD, *_PLAIN_OF], np.int64)


def expand_event(event: Bytes, checksum_bytes: int) -> Bytes:
    """The plain QUERY or rows event that a compressed one of MariaDB stands for. Raises DecodeError, UnknownEvent."""
    raw = event.tobytes()
    kind = _PLAIN_OF[raw[4]]
    cursor = Cursor(raw, HEADER_BYTES, len(raw) - checksum_bytes)
    if kind == EventType.QUERY:
        cursor.take(8)
        database_bytes = cursor.unsigned(1)
        cursor.take(2)
        cursor.take(cursor.unsigned(2) + database_bytes + 1)
    else:
        cursor.take(8)
        if kind in (EventType.WRITE_ROWS_V2, EventType.UPDATE_ROWS_V2, EventType.DELETE_ROWS_V2):
            cursor.take(max(cursor.unsigned(2), 2) - 2)
        cursor.take((cursor.packed() + 7) // 8 * (2 if kind in _UPDATES else 1))
    front = raw[HEADER_BYTES : cursor.at]
    text = _inflated(cursor)
    size = HEADER_BYTES + len(front) + len(text) + checksum_bytes
    if size > _EVENT_BYTES_MAX:
        raise DecodeError("unpacks to more than an event can hold")
    header = raw[:4] + bytes([kind]) + raw[5:9] + size.to_bytes(4, "little") + raw[13:HEADER_BYTES]
    return np.frombuffer(b"".join([header, front, text, bytes(checksum_bytes)]), np.uint8)


def _inflated(cursor: Cursor) -> bytes:
    head = cursor.unsigned(1)
    if head & 0x80 and head >> 4 & 7:
        remedy = "set log_bin_compress=OFF at the source"
        raise UnknownEvent(f"compression algorithm {head >> 4 & 7} can't be read", remedy=remedy)
    if head & 0xF8 != 0x80 or not 1 <= head & 7 <= 4:
        raise DecodeError(f"begins with {head:#x}, which is no compression")
    size = cursor.big_endian(head & 7)
    packed = cursor.rest()
    if size > _ZLIB_GAIN_MAX * len(packed):
        raise DecodeError(f"says that {len(packed)} bytes unpack to {size}")
    inflate = zlib.decompressobj()
    try:
        found = inflate.decompress(packed, size + 1)
    except zlib.error as error:
        raise DecodeError(f"can't be unpacked ({error})") from None
    if len(found) != size or not inflate.eof or inflate.unused_data:
        raise DecodeError(f"doesn't unpack to {size} bytes")
    return found
