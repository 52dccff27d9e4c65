"""One compressed event at a time: its layout, read byte by byte, and every way in which it can be
wrong.

In:  a TRANSACTION_PAYLOAD of MySQL, or a compressed QUERY or rows event of MariaDB. Its checksum
     may be unchecked.
Out: plain events. DecodeError for contradictory bytes, UnknownEvent for an unknown compression.

A length in a header bounds the unpacking, but allocates nothing.

Layouts: TRANSACTION_PAYLOAD: mysql-server libs/mysql/binlog/event/codecs/binary.cpp: fields of
(type, length, value), all packed integers: 2 compression (0 zstd, 255 none), 3 uncompressed size, 1
payload size; 0 ends them, and the payload follows. MariaDB: sql/log_event.cc (binlog_buf_compress,
query_event_uncompress, row_log_event_uncompress): everything before the statement, or before the
first row, is plain. Then come one byte 0x80 | algorithm << 4 | n, the original length in n bytes,
big-endian, and zlib's stream.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.binlog.format.events import HEADER_BYTES, EventType, type_name
from tidegate.binlog.kernel import compressed as C  # noqa: N812 - a page of constants
from tidegate.columnar.cursor import ByteCursor
from tidegate.errors import DecodeError, UnknownEvent
from tidegate.limits import EXPANDED_PIECE_BYTES

_ZSTD, _NONE = 0, 255
_PAYLOAD_SIZE, _COMPRESSION, _UNCOMPRESSED_SIZE = 1, 2, 3
_ZLIB_GAIN_MAX: Final = 1040  # zlib never packs more than 1032 bytes into one; this leaves room for its header
_EVENT_BYTES_MAX: Final = (1 << 32) - 1
CODEC: Final = pa.Codec("zstd")

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.int64]

# --- TRANSACTION_PAYLOAD --------------------------------------------------------------------------------


def inner_events(event: Bytes, checksum_bytes: int, piece_bytes: int = EXPANDED_PIECE_BYTES) -> Iterator[Bytes]:
    """The whole events in a TRANSACTION_PAYLOAD, in parts of about piece_bytes. Each has
    checksum_bytes zero bytes at its end. Raises DecodeError and UnknownEvent.
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
    cursor = ByteCursor(head, HEADER_BYTES, min(len(head), len(event) - checksum_bytes))
    fields: dict[int, int] = {}
    while kind := cursor.packed():
        size = cursor.packed()
        if kind in fields or kind > _UNCOMPRESSED_SIZE:
            raise DecodeError(f"has field {kind} twice" if kind in fields else f"has an unknown field, {kind}")
        behind = cursor.at + size
        fields[kind] = cursor.packed()
        if cursor.at != behind:
            raise DecodeError(f"field {kind} isn't as long as it says")
    packed = len(event) - checksum_bytes - cursor.at
    if fields.get(_PAYLOAD_SIZE) != packed:
        raise DecodeError(f"says it holds {fields.get(_PAYLOAD_SIZE)} bytes, and holds {packed}")
    compression = fields.get(_COMPRESSION)
    if compression not in (_ZSTD, _NONE):
        raise UnknownEvent(
            f"compression type {compression} can't be read", remedy="set binlog_transaction_compression=OFF"
        )
    unpacked = fields.get(_UNCOMPRESSED_SIZE, packed if compression == _NONE else None)
    if unpacked is None or unpacked >> 62 or (compression == _NONE and unpacked != packed):
        raise DecodeError(f"says it unpacks to {unpacked} bytes")
    return compression, unpacked, cursor.at


def _unpacked(packed: Bytes, compression: int, size: int, piece_bytes: int) -> Iterator[Bytes]:
    """The `size` unpacked bytes, in parts of piece_bytes."""
    try:
        if compression == _NONE:
            for at in range(0, size, piece_bytes):
                yield packed[at : at + piece_bytes]
        elif size <= piece_bytes:
            yield np.frombuffer(CODEC.decompress(pa.py_buffer(packed), size), np.uint8)
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
COMPRESSED_TYPES: Final = np.array([EventType.TRANSACTION_PAYLOAD, *_PLAIN_OF], np.int64)


def expand_event(event: Bytes, checksum_bytes: int) -> Bytes:
    """The plain QUERY or rows event in a compressed one of MariaDB. Raises DecodeError,
    UnknownEvent.
    """
    raw = event.tobytes()
    kind = _PLAIN_OF[raw[4]]
    cursor = ByteCursor(raw, HEADER_BYTES, len(raw) - checksum_bytes)
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


def _inflated(cursor: ByteCursor) -> bytes:
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
        unpacked = inflate.decompress(packed, size + 1)
    except zlib.error as error:
        raise DecodeError(f"can't be unpacked ({error})") from None
    if len(unpacked) != size or not inflate.eof or inflate.unused_data:
        raise DecodeError(f"doesn't unpack to {size} bytes")
    return unpacked
