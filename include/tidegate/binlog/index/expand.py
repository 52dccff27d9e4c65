"""Compressed events become plain events, before anything looks at them.

In:  the captured bytes: whole events, some of them compressed.
Out: EventPieces: plain events back to back, and from which captured event each comes. StreamCorrupt
     for contradictory bytes, UnknownEvent for an unknown compression. Both name the place of the
     captured event, which is the position of everything in it.

It must hold: no length is trusted. A length in a header bounds the expansion, but allocates
nothing. A huge transaction comes in several pieces. None is larger than about the requested size,
or than its largest event.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from tidegate.binlog.format.events import EventType, type_name
from tidegate.binlog.index.unpack import CODEC, COMPRESSED_TYPES, Bytes, Words, expand_event, inner_events
from tidegate.binlog.kernel import compressed as C  # noqa: N812 - a page of constants
from tidegate.errors import DecodeError, StreamCorrupt, UnknownEvent
from tidegate.limits import EXPANDED_PIECE_BYTES
from tidegate.remedy import REFILL, REPORT

_REMEDY: Final = REFILL.after(REPORT)


@dataclass(frozen=True, slots=True)
class EventPiece:
    """Plain events. base: offset of data in the whole expanded payload.

    spans: int64[n, SPAN_WORDS], ascending. ends: offsets in data after the last event of each transaction payload.
    complete: whether the captured event of the last bytes ends here.
    """

    data: Bytes
    base: int
    spans: Words
    ends: Words
    complete: bool

    def origins(self, offsets: Words) -> Words:
        """For events at these offsets in data: the offsets of their captured events in the payload."""
        spans = self.spans[self.span_of(offsets)]
        along = (offsets - spans[:, C.SPAN_START]) * (spans[:, C.SPAN_KIND] == C.PLAIN)
        return spans[:, C.SPAN_ORIGIN] + along  # type: ignore[no-any-return]

    def span_of(self, offsets: Words) -> Words:
        """Number of the span each offset lies in."""
        return np.searchsorted(self.spans[:, C.SPAN_START], offsets, side="right") - 1


@dataclass(slots=True)
class _Pile:
    """The next piece, while it grows. done: up to here captured bytes are in it, or in earlier
    pieces.
    """

    data: Bytes
    done: int = 0
    base: int = 0
    parts: list[Bytes] = field(default_factory=list)
    spans: list[Words] = field(default_factory=list)
    ends: list[Words] = field(default_factory=list)
    size: int = 0

    def add(self, part: Bytes, spans: Words, ends: Words) -> None:
        """Add a part. Its spans and ends count from its own beginning."""
        if len(part):
            self.ends.append(ends + self.size)
            spans[:, C.SPAN_START] += self.size
            self.spans.append(spans)
            self.parts.append(part)
            self.size += len(part)

    def add_one(self, part: Bytes, origin: int, kind: int) -> None:
        self.add(part, np.array([[0, origin, kind]], np.int64), np.empty(0, np.int64))

    def add_plain(self, upto: int) -> None:
        """Add captured bytes that aren't compressed."""
        self.add_one(self.data[self.done : upto], self.done, C.PLAIN)
        self.done = upto

    def end_transaction(self) -> None:
        self.ends.append(np.array([self.size], np.int64))

    def take(self, going_on: int = -1) -> EventPiece:
        """Finish the piece. going_on: offset of a captured event with more to come."""
        spans = np.concatenate([np.empty((0, C.SPAN_WORDS), np.int64), *self.spans])
        piece = EventPiece(
            np.concatenate(self.parts) if self.parts else np.empty(0, np.uint8),
            self.base,
            spans,
            np.concatenate([np.empty(0, np.int64), *self.ends]),
            len(spans) == 0 or spans[-1, C.SPAN_ORIGIN] != going_on,
        )
        self.base += self.size
        self.parts, self.spans, self.ends, self.size = [], [], [], 0
        return piece


def captured_events(data: Bytes, checksum_bytes: int) -> Words:
    """int64[n, FOUND_WORDS] (kernel/compressed.py) of the whole events in data."""
    count = int(C.list_events(data.ctypes.data, len(data), checksum_bytes, 0))
    events = np.zeros((count, C.FOUND_WORDS), np.int64)
    C.list_events(data.ctypes.data, len(data), checksum_bytes, events.ctypes.data)
    return events


def expand(
    data: Bytes, checksum_bytes: int, where: Callable[[int], str], piece_bytes: int = EXPANDED_PIECE_BYTES
) -> Iterator[EventPiece]:
    """Pieces of about piece_bytes. where: offset of a captured event -> its place, for errors.

    Small, ordinary events, the usual case, are expanded many at a time. Large or unusual ones are
    expanded one by one.
    """
    events = captured_events(data, checksum_bytes)
    events = np.ascontiguousarray(events[np.isin(events[:, C.FOUND_TYPE], COMPRESSED_TYPES)])
    C.read_fronts(data.ctypes.data, events.ctypes.data, len(events))
    how = np.where(events[:, C.FOUND_UNPACKED] <= piece_bytes // 4, events[:, C.FOUND_HOW], C.HOW_ODD)
    weights = np.cumsum(
        np.diff(events[:, C.FOUND_OFFSET] + events[:, C.FOUND_SIZE], prepend=0) + events[:, C.FOUND_UNPACKED]
    )
    changes = np.append(np.flatnonzero(np.diff(how)) + 1, len(how))
    pile, at = _Pile(data), 0
    while at < len(events):
        upto = at + 1
        if how[at] != C.HOW_ODD:
            used = int(weights[at - 1]) if at else 0
            fits = int(np.searchsorted(weights, used + piece_bytes - pile.size, "right"))
            same = int(changes[np.searchsorted(changes, at, "right")])
            upto = max(upto, min(fits, same))
        if how[at] == C.HOW_ODD or not _expand_batch(pile, events[at:upto]):
            for row in events[at:upto].tolist():
                yield from _expand_one(pile, row, where, piece_bytes)
        at = upto
        if pile.size >= piece_bytes:
            yield pile.take()
    pile.add_plain(len(data))
    if pile.size:
        yield pile.take()


def _expand_one(pile: _Pile, row: list[int], where: Callable[[int], str], piece_bytes: int) -> Iterator[EventPiece]:
    """Add one compressed event and the plain bytes before it. Gives the pieces that are full by
    then.
    """
    offset, kind, checksum = row[C.FOUND_OFFSET], row[C.FOUND_TYPE], row[C.FOUND_CHECKSUM]
    pile.add_plain(offset)
    event = pile.data[offset : offset + row[C.FOUND_SIZE]]
    pile.done = offset + row[C.FOUND_SIZE]
    if kind != EventType.TRANSACTION_PAYLOAD:
        with _named(kind, where, offset):
            pile.add_one(expand_event(event, checksum), offset, C.SINGLE)
        return
    parts = inner_events(event, checksum, piece_bytes)
    while True:
        with _named(kind, where, offset):
            part = next(parts, None)
        if part is None:
            break
        if pile.size >= piece_bytes:
            yield pile.take(going_on=offset)
        pile.add_one(part, offset, C.NESTED)
    pile.end_transaction()


def _expand_batch(pile: _Pile, rows: Words) -> bool:
    """Add compressed events of one HOW, and the plain bytes before each. If one is odd: False, and
    nothing is added.
    """
    unpacked = _unpack_batch(pile.data, rows)
    if unpacked is None:
        return False
    laid_max = int(rows[-1, C.FOUND_OFFSET] + rows[-1, C.FOUND_SIZE]) - pile.done + 2 * len(unpacked)
    target = np.empty(laid_max, np.uint8)
    spans = np.empty((2 * len(rows), C.SPAN_WORDS), np.int64)
    ends = np.empty(len(rows), np.int64)
    state = np.array([target.ctypes.data, spans.ctypes.data, ends.ctypes.data, pile.done, 0], np.int64)
    count = int(
        C.lay_batch(pile.data.ctypes.data, rows.ctypes.data, len(rows), unpacked.ctypes.data, state.ctypes.data)
    )
    if count < 0:
        return False
    pile.add(
        target[: int(state[C.BATCH_WRITTEN])], spans[:count], ends if rows[0, C.FOUND_HOW] == C.HOW_ZSTD else ends[:0]
    )
    pile.done = int(state[C.DONE])
    return True


def _unpack_batch(data: Bytes, rows: Words) -> Bytes | None:
    """The unpacked bytes of events of one HOW, back to back; None if one hasn't the length it says."""
    packed = np.empty(int(rows[:, C.FOUND_PACKED].sum()), np.uint8)
    C.gather(data.ctypes.data, rows.ctypes.data, len(rows), packed.ctypes.data)
    if rows[0, C.FOUND_HOW] == C.HOW_ZSTD:
        try:  # compressed frames may be back to back: one call unpacks all
            return np.frombuffer(CODEC.decompress(pa.py_buffer(packed), int(rows[:, C.FOUND_UNPACKED].sum())), np.uint8)
        except OSError:
            return None
    view, at, texts = packed.data, 0, list[bytes]()
    for packed_bytes, size in rows[:, [C.FOUND_PACKED, C.FOUND_UNPACKED]].tolist():
        inflate = zlib.decompressobj()
        try:
            texts.append(inflate.decompress(view[at : at + packed_bytes], size + 1))
        except zlib.error:
            return None
        if len(texts[-1]) != size or not inflate.eof or inflate.unused_data:
            return None
        at += packed_bytes
    return np.frombuffer(b"".join(texts), np.uint8)


@contextmanager
def _named(kind: int, where: Callable[[int], str], offset: int) -> Iterator[None]:
    """An error inside gets the captured event's type and place."""
    try:
        yield
    except UnknownEvent as error:
        raise UnknownEvent(f"{type_name(kind)}: {error.what}", where=where(offset), remedy=error.remedy) from None
    except DecodeError as error:
        raise StreamCorrupt(f"{type_name(kind)}: {error.what}", where=where(offset), remedy=_REMEDY) from None
