"""A segment's events in an index: the first step of decoding.

In:  a Segment.
Out: EventIndexes: one for an ordinary segment, several if something large in it is compressed.
     StreamCorrupt if the bytes aren't whole events in whole transactions.

A segment without compressed events, the common case, is walked in place. A walk that meets a
compressed event stops. Then the segment is expanded and walked again, piece by piece, with one
state of transactions and TABLE_MAPs.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate.binlog.format.events import (
    CHECKSUM_BYTES,
    HEADER_BYTES,
    EventHeader,
    EventType,
    closed_file,
    read_header,
    type_name,
)
from tidegate.binlog.format.format_description import FormatDescription, parse_format_description
from tidegate.binlog.format.table_map import read_name
from tidegate.binlog.index.expand import EventPiece, captured_events, expand
from tidegate.binlog.index.outcome import settle_outcomes
from tidegate.binlog.kernel import compressed as C  # noqa: N812 - a page of constants
from tidegate.binlog.kernel import index as K  # noqa: N812
from tidegate.binlog.transaction_scan import BEGINS, ENDS, new_state
from tidegate.columnar.kernel import layout as L  # noqa: N812
from tidegate.errors import DecodeError, StreamCorrupt
from tidegate.limits import EXPANDED_PIECE_BYTES, MIB
from tidegate.remedy import REFILL, REPORT
from tidegate.segments.segment import Segment

_SIZE_AT: Final = 9
_STORE_BYTES: Final = 1 << 18
_UNCOUNTED_BYTES: Final = 64 * MIB
_REMEDY: Final = REFILL.after(REPORT)
_WORDS: Final = {
    K.CUT: "ends inside an event",
    K.MALFORMED_EVENT: "is too short for what its type says",
    K.ABORTED_TRANSACTION: "begins a transaction inside another: the server crashed there, or the stream is corrupt",
    K.FULL: "maps more tables than a segment may hold",
    K.COMPRESSED: "is compressed inside another",
}
_OPS: Final = {
    EventType.WRITE_ROWS_V1: L.OP_WRITE,
    EventType.WRITE_ROWS_V2: L.OP_WRITE,
    EventType.UPDATE_ROWS_V1: L.OP_UPDATE,
    EventType.UPDATE_ROWS_V2: L.OP_UPDATE,
    EventType.DELETE_ROWS_V1: L.OP_DELETE,
    EventType.DELETE_ROWS_V2: L.OP_DELETE,
    EventType.PARTIAL_UPDATE_ROWS: L.OP_PARTIAL_UPDATE,
}
_OP_OF_TYPE: Final = np.array([_OPS.get(code, -1) for code in range(256)], np.int64)  # type: ignore[call-overload]
_WHOLE: Final = 1 << 62  # bytes: no piece is larger


@dataclass(frozen=True, slots=True)
class EventIndex:
    """data: events as uint8, of the payload or of its expansion. events: int64[n, INDEX_WORDS], one
    row per event of data (kernel/index.py). bodies: distinct TABLE_MAP bodies, to which
    events[:, CONTENT] points; those of the context and of earlier pieces come first.

    expanded: whether anything was compressed. base: offset of data in the whole expanded payload.
    complete: whether the last captured event ends here; else it goes on in the next piece. opening:
    the QUERY that began the transaction which is open at the start; b"" without one.
    """

    data: npt.NDArray[np.uint8]
    events: npt.NDArray[np.int64]
    bodies: tuple[bytes, ...]
    format: FormatDescription
    segment: Segment
    expanded: bool = False
    base: int = 0
    complete: bool = True
    opening: bytes = b""

    def position(self, event: int) -> int:
        """Start of an event in the binlog file; for an expanded event, the start of its compressed
        event.
        """
        return self.segment.start_pos + int(self.events[event, K.ORIGIN])

    def end_position(self, event: int) -> int:
        """End of an event in the binlog file; for an expanded event, the end of its compressed
        event.
        """
        return self.position(event) + int(self.captured_sizes(self.events[event : event + 1, K.ORIGIN])[0])

    def captured_sizes(self, origins: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Sizes of the captured events at these offsets in the payload."""
        payload = np.frombuffer(self.segment.payload, np.uint8)
        places = origins[:, np.newaxis] + np.arange(_SIZE_AT, _SIZE_AT + 4)
        return payload[places].astype(np.int64) @ (np.int64(1) << np.arange(0, 32, 8))  # type: ignore[no-any-return]

    def header(self, event: int) -> EventHeader:
        return read_header(self.data.data, int(self.events[event, K.OFFSET]))

    def checksum_bytes(self, event: int) -> int:
        """Bytes of the checksum at an event's end."""
        row = self.events[event]
        return int(row[K.OFFSET] + row[K.SIZE] - row[K.END])

    def rows_records(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The kernels' input for these rows events: int64[n, EVENT_WORDS] (kernel/layout.py). The
        operation is -1 for a layout that isn't read.
        """
        rows = self.events[numbers]
        made = np.empty((len(rows), L.EVENT_WORDS), np.int64)
        made[:, L.EVENT_START] = rows[:, K.START]
        made[:, L.EVENT_END] = rows[:, K.END]
        made[:, L.EVENT_OP] = _OP_OF_TYPE[rows[:, K.TYPE]]
        made[:, L.EVENT_COMMIT_TS] = rows[:, K.COMMIT_TS]
        return made

    def event(self, event: int) -> bytes:
        """The whole event, checksum included."""
        offset = int(self.events[event, K.OFFSET])
        return self.data[offset : offset + int(self.events[event, K.SIZE])].tobytes()

    def names(self) -> list[tuple[str, str]]:
        """Database and table of each body. Raises StreamCorrupt if a body has no name."""
        try:
            return [read_name(body) for body in self.bodies]
        except DecodeError as error:
            raise StreamCorrupt(f"TABLE_MAP: {error.what}", where=self.segment.where, remedy=_REMEDY) from None


def index_pieces(
    segment: Segment, *, verify_checksums: bool = False, piece_bytes: int = EXPANDED_PIECE_BYTES
) -> Iterator[EventIndex]:
    """Walk the context, then the payload. Raises StreamCorrupt (with file and position),
    UnknownEvent (format, compression).

    If the segment must be expanded, each index has about piece_bytes at most.
    """
    size = int.from_bytes(segment.context[9:13], "little") if len(segment.context) >= 13 else 0
    described = parse_format_description(segment.context[:size], segment.where)
    data = np.frombuffer(segment.payload, np.uint8)
    if verify_checksums:
        _verify(data, captured_events(data, described.checksum_bytes), segment)
    store_bytes = _STORE_BYTES
    while True:
        walk = _Walk(segment, described, store_bytes)
        try:
            context = np.frombuffer(segment.context, np.uint8)
            walk.opened_by(context, walk.take(context, walk.place_in_context, len(context)))
            events = walk.take(data, walk.place, len(data))
        except _StoreFullError:
            store_bytes *= 8
        except _CompressedError:
            break
        else:
            yield EventIndex(data, events, walk.bodies(), described, segment, opening=walk.opening)
            return
    walk = _Walk(segment, described, store_bytes)
    walk.expanded_context()
    for piece in expand(data, described.checksum_bytes, walk.place, piece_bytes):
        yield walk.piece(piece)


def began_before(index: EventIndex, offset: int) -> int:
    """commit_ts of the last transaction that begins before an offset in the binlog file; 0 if none
    of these does.
    """
    before = index.events[:, K.ORIGIN] < offset - index.segment.start_pos
    return int(index.events[before, K.COMMIT_TS].max(initial=0))


class _StoreFullError(Exception):
    """The store of TABLE_MAP bodies is too small."""


class _CompressedError(Exception):
    """An event must be expanded before it can be walked."""


class _Walk:
    """The state of one walk over a segment: transactions, TABLE_MAPs in force, their bodies."""

    def __init__(self, segment: Segment, described: FormatDescription, store_bytes: int) -> None:
        self.segment = segment
        self.described = described
        self.scan = new_state(segment.prev_commit_ts, described.checksum_bytes, segment.ceiling_ms)
        self.maps = np.zeros(K.MAPS_WORDS, np.int64)
        self.store = np.empty(store_bytes, np.uint8)
        self.opening = b""  # the last QUERY so far

    def opened_by(self, data: npt.NDArray[np.uint8], events: npt.NDArray[np.int64]) -> None:
        """Remember the last QUERY of these events."""
        queries = events[events[:, K.TYPE] == EventType.QUERY]
        if len(queries):
            offset, size = queries[-1, [K.OFFSET, K.SIZE]].tolist()
            self.opening = data[offset : offset + size].tobytes()

    def place(self, offset: int) -> str:
        return f"{self.segment.source} at {self.segment.file}:{self.segment.start_pos + offset}"

    def place_in_context(self, offset: int) -> str:
        return f"{self.segment.source} at context of seq {self.segment.seq} + {offset}"

    def expanded_context(self) -> None:
        """Walk the segment's context. It may have a compressed XA START."""
        context = np.frombuffer(self.segment.context, np.uint8)
        for piece in expand(context, self.described.checksum_bytes, self.place_in_context, _WHOLE):
            self.opened_by(piece.data, self._take_growing(piece, self.place_in_context))

    def piece(self, piece: EventPiece) -> EventIndex:
        """Walk the next piece."""

        def place(offset: int) -> str:
            return self.place(int(piece.origins(np.array([offset]))[0]))

        events = self._take_growing(piece, place)
        events[:, K.ORIGIN] = piece.origins(events[:, K.OFFSET])
        self._check_transactions(piece, events)
        opening = self.opening
        self.opened_by(piece.data, events)
        return EventIndex(
            piece.data,
            events,
            self.bodies(),
            self.described,
            self.segment,
            expanded=True,
            base=piece.base,
            complete=piece.complete,
            opening=opening,
        )

    def take(self, data: npt.NDArray[np.uint8], place: Callable[[int], str], store_max: int) -> npt.NDArray[np.int64]:
        """The index of the next bytes. After _StoreFullError the state can't be used any more."""
        # Unwritten memory costs only address space. To count first would cost as much as the walk itself.
        rows = len(data) // HEADER_BYTES + 1
        if len(data) > _UNCOUNTED_BYTES:
            rows = int(K.count_events(data.ctypes.data, len(data)))
        index = np.empty((rows, K.INDEX_WORDS), np.int64)
        maps, store = self.maps, self.store
        maps[K.INDEX_AT], maps[K.INDEX_ROWS] = index.ctypes.data, len(index)
        maps[K.STORE_AT], maps[K.STORE_BYTES] = store.ctypes.data, len(store)
        outcome = int(K.index_events(data.ctypes.data, len(data), self.scan.ctypes.data, maps.ctypes.data))
        if outcome >= 0:
            settle_outcomes(data, index[:outcome])
            return index[:outcome]
        at = int(maps[K.REACHED])
        if outcome == K.FULL and maps[K.CONTENTS] < K.CONTENTS_MAX and len(store) < max(2 * store_max, 1 << 22):
            raise _StoreFullError
        if outcome == K.COMPRESSED:
            raise _CompressedError
        kind = type_name(int(data[at + 4])) if at + 4 < len(data) else "nothing"
        raise StreamCorrupt(f"event {kind} {_WORDS[outcome]}", where=place(at), remedy=_REMEDY)

    def bodies(self) -> tuple[bytes, ...]:
        count = int(self.maps[K.CONTENTS])
        places = self.maps[K.BODIES : K.BODIES + 3 * count].reshape(count, 3)
        return tuple(self.store[at : at + size].tobytes() for at, size, _ in places.tolist())

    def _take_growing(self, piece: EventPiece, place: Callable[[int], str]) -> npt.NDArray[np.int64]:
        """As `take`, with a larger store if it is needed."""
        scan, maps = self.scan.copy(), self.maps.copy()
        while True:
            try:
                return self.take(piece.data, place, piece.base + len(piece.data))
            except _StoreFullError:
                self.scan, self.maps = scan.copy(), maps.copy()
                grown = np.empty(8 * len(self.store), np.uint8)
                grown[: len(self.store)] = self.store
                self.store = grown

    def _check_transactions(self, piece: EventPiece, events: npt.NDArray[np.int64]) -> None:
        """Check that a transaction payload holds the rest of one transaction: capture counts on it
        without a look.
        """
        nested = piece.spans[piece.span_of(events[:, K.OFFSET]), C.SPAN_KIND] == C.NESTED
        bits, behind = events[:, K.BITS], events[:, K.OFFSET] + events[:, K.SIZE]
        begun = nested & ((bits & BEGINS) != 0)
        wrong = begun | (nested & (((bits & ENDS) != 0) != np.isin(behind, piece.ends)))
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            what = "begins a transaction" if begun[first] else "isn't exactly one transaction's end"
            raise StreamCorrupt(
                f"event {type_name(EventType.TRANSACTION_PAYLOAD)} {what}",
                where=self.place(int(events[first, K.ORIGIN])),
                remedy=_REMEDY,
            )


def _verify(data: npt.NDArray[np.uint8], events: npt.NDArray[np.int64], segment: Segment) -> None:
    """Check the checksums of captured events. Whether they are whole is checked by the walk."""
    for offset, size, kind, checksum_bytes in events[:, : C.FOUND_CHECKSUM + 1].tolist():
        if not checksum_bytes or size < CHECKSUM_BYTES:
            continue
        end = offset + size - CHECKSUM_BYTES
        checked = data[offset:end]
        checksum = zlib.crc32(closed_file(checked) if kind == EventType.FORMAT_DESCRIPTION else checked.data)
        if checksum != int.from_bytes(data[end : end + CHECKSUM_BYTES].tobytes(), "little"):
            raise StreamCorrupt(
                f"checksum of event {type_name(kind)} is wrong",
                where=f"{segment.source} at {segment.file}:{segment.start_pos + offset}",
                remedy=_REMEDY,
            )
