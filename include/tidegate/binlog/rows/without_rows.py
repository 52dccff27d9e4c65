"""A segment without some of its rows; everything else is as it was captured.

In:  a segment; per piece of it the rows to remove.
Out: a segment with the same length and CRC-32C (same_crc.py), with events at the same places, in the same transactions.

A place in the log is `start_pos` plus an offset in the payload, and schema_history, changelogs and ledgers have such
places. Therefore a captured event that gets shorter is filled up to its old length:
- an event of type IGNORABLE follows it, if there is enough room;
- else a rows event gets extra data before its rows, as version 2 allows (version 1 becomes 2);
- a TRANSACTION_PAYLOAD gets wider integers in its header.
An event that lost all its rows stays, without any: it may end its statement.

In a segment that loses rows, or may have lost some before, texts of statements whose rows follow (ROWS_QUERY,
ANNOTATE_ROWS) become blanks: nothing reads them. An event that is compressed less well than before, and has no room
left, is refused.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from tidegate.binlog.format.events import CHECKSUM_BYTES, HEADER_BYTES, EventFlag, EventType, type_name
from tidegate.binlog.format.format_description import parse_format_description
from tidegate.binlog.index.event_index import EventIndex, index_pieces
from tidegate.binlog.index.expand import captured_events
from tidegate.binlog.index.same_crc import FREE_BYTES, FreeBytes, keep_crc
from tidegate.binlog.index.unpack import Words
from tidegate.binlog.kernel import compressed as C  # noqa: N812 - a page of constants
from tidegate.binlog.kernel import index as K  # noqa: N812
from tidegate.binlog.rows.logged_rows import Span
from tidegate.columnar.cursor import ByteCursor
from tidegate.errors import UnsupportedValue
from tidegate.segments.segment import Segment

# Index -> number of an event -> places of the rows to remove.
Chooser = Callable[[EventIndex], Mapping[int, Sequence[Span]]]
_ANNOTATIONS: Final = (EventType.ROWS_QUERY, EventType.MARIADB_ANNOTATE_ROWS)
_TO_V2: Final = {
    EventType.WRITE_ROWS_V1: EventType.WRITE_ROWS_V2,
    EventType.UPDATE_ROWS_V1: EventType.UPDATE_ROWS_V2,
    EventType.DELETE_ROWS_V1: EventType.DELETE_ROWS_V2,
    EventType.MARIADB_WRITE_ROWS_COMPRESSED_V1: EventType.MARIADB_WRITE_ROWS_COMPRESSED,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED_V1: EventType.MARIADB_UPDATE_ROWS_COMPRESSED,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED_V1: EventType.MARIADB_DELETE_ROWS_COMPRESSED,
}
_V2: Final = frozenset({*_TO_V2.values(), EventType.PARTIAL_UPDATE_ROWS})
_UPDATES: Final = (EventType.MARIADB_UPDATE_ROWS_COMPRESSED_V1, EventType.MARIADB_UPDATE_ROWS_COMPRESSED)
_EXTRA_AT: Final = HEADER_BYTES + 8  # of the extra data's length, after table id and flags
_TAG_BYTES: Final = 3  # of a tag in the extra data: its type, its length, a format
_U16: Final = 0xFFFF
_ZSTD_LEVELS: Final = (1, 3, 9, 19)
_ZLIB_LEVELS: Final = (9, 6, 4)
_WIDENINGS: Final = (0, 2, 3, 8)  # by how many bytes a packed integer below 251 may be longer than needed


def without_rows(segment: Segment, choose: Chooser) -> Segment:
    """The same object if nothing changes. Raises StreamCorrupt, UnknownEvent, UnsupportedValue, and
    what choose raises.
    """
    sizes = _CapturedSizes(segment)
    made = dict(_rewritten(segment, choose, sizes))
    if not made:
        return segment
    payload = bytearray(segment.payload)
    for origin, events in made.items():
        assert len(events) == sizes[origin][0], "a rewritten event keeps its length"
        payload[origin : origin + len(events)] = events
    free = [place for origin, events in made.items() for place in _free(segment, origin, events, sizes[origin][1])]
    if not keep_crc(payload, free, segment.payload_crc32c):
        raise UnsupportedValue(
            "it would get another CRC-32C, as its rows leave too few bytes free, and capture compares it with the"
            " server's and with its value log's",
            where=segment.where,
        )
    return replace(segment, payload=bytes(payload))


class _CapturedSizes:
    """Bytes of a captured event and of its checksum, by its offset in the payload. Listed at the
    first question.
    """

    def __init__(self, segment: Segment) -> None:
        self._segment = segment

    @cached_property
    def _events(self) -> Words:
        context = self._segment.context
        described = parse_format_description(context[: int.from_bytes(context[9:13], "little")], self._segment.where)
        return captured_events(np.frombuffer(self._segment.payload, np.uint8), described.checksum_bytes)

    def __getitem__(self, origin: int) -> tuple[int, int]:
        row = self._events[np.searchsorted(self._events[:, C.FOUND_OFFSET], origin)]
        return int(row[C.FOUND_SIZE]), int(row[C.FOUND_CHECKSUM])


def _free(segment: Segment, origin: int, events: bytes, checksum_bytes: int) -> Iterator[FreeBytes]:
    """Bytes without a meaning in the events that replace the one at an offset of the payload."""
    at = 0
    while at < len(events):
        size, kind = int.from_bytes(events[at + 9 : at + 13], "little"), events[at + 4]
        begin, end = at + HEADER_BYTES, at + size - checksum_bytes
        if kind in _V2:
            extra = _extra(events[at:])
            added = extra - (_extra(bytes(segment.payload[origin : origin + _EXTRA_AT + 2])) or 2)
            end = at + _EXTRA_AT + extra
            begin = min(end, end - added + _TAG_BYTES)
        elif kind in _ANNOTATIONS:
            begin += kind == EventType.ROWS_QUERY
        elif kind != EventType.IGNORABLE:
            begin = end
        yield FreeBytes(origin + at, origin + at + size, origin + begin, origin + end, checksum_bytes)
        at += size


def _extra(event: bytes) -> int:
    """Bytes of a rows event's extra data, with its length; 0 if its version has none."""
    return int.from_bytes(event[_EXTRA_AT : _EXTRA_AT + 2], "little") if event[4] in _V2 else 0


def _rewritten(segment: Segment, choose: Chooser, sizes: _CapturedSizes) -> Iterator[tuple[int, bytes]]:
    """(offset in the payload, the changed event there, filled up to its length)."""
    payloads = set[int]()
    for index in index_pieces(segment):
        for number, short in _changed(index, choose(index)).items():
            origin = int(index.events[number, K.ORIGIN])
            size, checksum_bytes = sizes[origin]
            kind = segment.payload[origin + 4]
            if kind == EventType.TRANSACTION_PAYLOAD:
                payloads.add(origin)
            elif kind != short[4]:
                yield origin, _packed_event(segment, origin, size, short, checksum_bytes)
            else:
                yield origin, _filled(segment, short, size, checksum_bytes)
    if payloads:
        for origin, events in _inner_events(segment, choose, payloads).items():
            yield origin, _payload(segment, origin, sizes[origin], events)


def _inner_events(segment: Segment, choose: Chooser, origins: set[int]) -> dict[int, list[bytes]]:
    """Offset of a TRANSACTION_PAYLOAD -> its inner events without the rows to remove."""
    events: dict[int, list[bytes]] = {origin: [] for origin in origins}
    for index in index_pieces(segment):
        numbers = np.flatnonzero(np.isin(index.events[:, K.ORIGIN], list(origins))).tolist()
        changed = _changed(index, choose(index)) if numbers else {}
        for number in numbers:
            event = changed.get(number) or index.event(number)
            bare = _resized(event[: len(event) - index.checksum_bytes(number)])
            events[int(index.events[number, K.ORIGIN])].append(bare)
    return events


def _changed(index: EventIndex, gone: Mapping[int, Sequence[Span]]) -> dict[int, bytes]:
    """The events of an index that change, by number, as short as possible."""
    made: dict[int, bytes] = {}
    for number, spans in gone.items():
        offset = int(index.events[number, K.OFFSET])
        event, left, at = index.event(number), bytearray(), 0
        for begin, end in sorted(spans):
            left += event[at : begin - offset]
            at = end - offset
        made[number] = _resized(bytes(left + event[at:]))
    for number in np.flatnonzero(np.isin(index.events[:, K.TYPE], _ANNOTATIONS)).tolist():
        event, end = index.event(number), index.checksum_bytes(number)
        first = HEADER_BYTES + (event[4] == EventType.ROWS_QUERY)  # after the byte of its length
        blank = event[:first] + b" " * (len(event) - end - first) + event[len(event) - end :]
        if blank[first + FREE_BYTES :] != event[first + FREE_BYTES :]:  # an earlier erasure may have set the free bytes
            made[number] = blank
    return made


def _resized(event: bytes) -> bytes:
    """An event with its new length in its header."""
    return event[:9] + len(event).to_bytes(4, "little") + event[13:]


def _ended(event: bytes, next_pos: int, checksum_bytes: int) -> bytes:
    """An event whose last checksum_bytes are still to come, with its length, its end position and
    its checksum.
    """
    head = event[:9] + len(event).to_bytes(4, "little") + next_pos.to_bytes(4, "little") + event[17:HEADER_BYTES]
    whole = head + event[HEADER_BYTES : len(event) - checksum_bytes]
    return whole + (zlib.crc32(whole).to_bytes(CHECKSUM_BYTES, "little") if checksum_bytes else b"")


def _filled(segment: Segment, short: bytes, size: int, checksum_bytes: int) -> bytes:
    """An event that got shorter, with a filler up to its old length. Raises UnsupportedValue."""
    left = size - len(short)
    ends = int.from_bytes(short[13:17], "little")
    if 0 < left < HEADER_BYTES + checksum_bytes + FREE_BYTES:
        short, left = _with_extra(segment, short, left), 0
    if left < 0:
        raise _no_room(segment, short[4])
    first = _ended(short, (ends - left) % (1 << 32) if ends else 0, checksum_bytes)
    return first + _filler(short, left, ends, checksum_bytes)


def _filler(beside: bytes, size: int, next_pos: int, checksum_bytes: int) -> bytes:
    """An event of this size that readers ignore, with the time and server of the one beside it."""
    if not size:
        return b""
    flags = int(EventFlag.IGNORABLE).to_bytes(2, "little")
    head = beside[:4] + bytes([EventType.IGNORABLE]) + beside[5:9] + bytes(8) + flags
    return _ended(head + bytes(size - HEADER_BYTES), next_pos, checksum_bytes)


def _with_extra(segment: Segment, event: bytes, more: int) -> bytes:
    """A rows event with `more` bytes before its rows."""
    kind = event[4]
    if kind in _TO_V2 and more >= 2:
        event = event[:4] + bytes([_TO_V2[EventType(kind)]]) + event[5:_EXTRA_AT] + b"\x02\x00" + event[_EXTRA_AT:]
        kind, more = event[4], more - 2
    if not more:
        return event
    extra = _extra(event) + more if kind in _V2 else _U16 + 1
    if extra > _U16:
        raise _no_room(segment, kind)
    behind = _EXTRA_AT + extra - more
    # Tagged like the server's own: type 0, its length, a format. The rest means nothing.
    tag = bytes([0, more - 1, 0]) + bytes(more - _TAG_BYTES) if more >= _TAG_BYTES else bytes(more)
    return event[:_EXTRA_AT] + extra.to_bytes(2, "little") + event[_EXTRA_AT + 2 : behind] + tag + event[behind:]


def _packed_event(segment: Segment, origin: int, size: int, plain: bytes, checksum_bytes: int) -> bytes:
    """A plain rows event in MariaDB's compressed form, filled up. Raises UnsupportedValue."""
    kind = EventType(segment.payload[origin + 4])
    body = plain[: len(plain) - checksum_bytes]
    cursor = ByteCursor(body, HEADER_BYTES, len(body))
    cursor.take(8)
    if kind in _V2:
        cursor.take(max(cursor.unsigned(2), 2) - 2)
    cursor.take((cursor.packed() + 7) // 8 * (2 if kind in _UPDATES else 1))
    front, rows = body[: cursor.at], body[cursor.at :]
    width = max(1, (len(rows).bit_length() + 7) // 8)
    head = bytes([0x80 | width]) + len(rows).to_bytes(width, "big")
    rooms: dict[int, bytes] = {}
    for level in _ZLIB_LEVELS:
        short = _resized(
            front[:4] + bytes([kind]) + front[5:] + head + zlib.compress(rows, level) + bytes(checksum_bytes)
        )
        left = size - len(short)
        if left == 0 or left >= 2:
            rooms.setdefault(left, short)
    if not rooms:
        raise _no_room(segment, kind)
    return _filled(segment, rooms[max(rooms)], size, checksum_bytes)


def _payload(segment: Segment, origin: int, whole: tuple[int, int], events: Sequence[bytes]) -> bytes:
    """A TRANSACTION_PAYLOAD with these events, filled up. Raises UnsupportedValue."""
    size, checksum_bytes = whole
    header = bytes(segment.payload[origin : origin + HEADER_BYTES])
    ends = int.from_bytes(header[13:17], "little")
    inner = b"".join(events)
    texts = [pa.Codec("zstd", compression_level=level).compress(inner, asbytes=True) for level in _ZSTD_LEVELS]
    for packed in sorted(texts, key=len):  # the more room, the more bytes are free
        bare = HEADER_BYTES + len(_fields(len(inner), len(packed), ())) + len(packed) + checksum_bytes
        left = size - bare
        widths: tuple[int, ...] | None = ()
        if 0 < left < HEADER_BYTES + checksum_bytes:
            widths, left = _widths(left), 0
        if left < 0 or widths is None:
            continue
        event = header + _fields(len(inner), len(packed), widths) + packed + bytes(checksum_bytes)
        first = _ended(event, (ends - left) % (1 << 32) if ends else 0, checksum_bytes)
        return first + _filler(header, left, ends, checksum_bytes)
    raise _no_room(segment, EventType.TRANSACTION_PAYLOAD)


def _fields(unpacked: int, packed: int, widths: Sequence[int]) -> bytes:
    """The fields of a TRANSACTION_PAYLOAD's header. widths: additional bytes of its first small
    integers.
    """
    wider, made = iter(widths), b""
    for kind, value in ((2, 0), (3, unpacked), (1, packed)):
        text = _integer(value, 0)
        made += _integer(kind, next(wider, 0)) + _integer(len(text), next(wider, 0)) + text
    return made + b"\x00"


def _widths(more: int) -> tuple[int, ...] | None:
    """How much wider each of six small integers must be for so many bytes in all; None if this
    can't be made.
    """
    if more == 0:
        return ()
    for step in _WIDENINGS[:0:-1]:
        rest = more - step
        if rest >= 0 and (others := _widths(rest)) is not None and len(others) < 6:
            return (step, *others)
    return None


def _integer(value: int, more: int) -> bytes:
    """A packed integer. more: 0, 2, 3 or 8 bytes beyond its shortest form."""
    width = {0: 0, 2: 2, 3: 3, 8: 8}[more]
    if not width:
        if value < 251:
            return bytes([value])
        width = 2 if value < 1 << 16 else 3 if value < 1 << 24 else 8
    return bytes([{2: 0xFC, 3: 0xFD, 8: 0xFE}[width]]) + value.to_bytes(width, "little")


def _no_room(segment: Segment, kind: int) -> UnsupportedValue:
    return UnsupportedValue(
        f"event {type_name(kind)} can't be written without these rows in its own length", where=segment.where
    )
