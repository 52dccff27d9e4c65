"""A segment's events, laid out in an index: the first step of decoding.

In:  a Segment.
Out: an EventIndex; StreamCorrupt when the bytes are not whole events in whole transactions.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate.binlog.events import CHECKSUM_BYTES, EventFlag, EventType, type_name
from tidegate.binlog.format_description import FormatDescription, parse_format_description
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.binlog.segment import Segment
from tidegate.binlog.table_map import read_name
from tidegate.binlog.transaction_scan import CHECKSUM, new_state
from tidegate.errors import DecodeError, StreamCorrupt

_FLAGS_AT: Final = 17  # of the flags in an event's header
_STORE_BYTES: Final = 1 << 18
_REMEDY: Final = "capture the segment again from the source"
_WORDS: Final = {
    K.CUT: "ends inside an event",
    K.MALFORMED_EVENT: "is too short for what its type says",
    K.ABORTED_TRANSACTION: "begins a transaction inside another: the server crashed there, or the stream is corrupt",
    K.FULL: "maps more tables than a segment may hold",
}


@dataclass(frozen=True, slots=True)
class EventIndex:
    """data: the payload as uint8. events: int64[n, INDEX_WORDS], one row per event of the payload (kernel/index.py).
    bodies: distinct TABLE_MAP bodies, to which events[:, CONTENT] points; those of the context come first.
    """

    data: npt.NDArray[np.uint8]
    events: npt.NDArray[np.int64]
    bodies: tuple[bytes, ...]
    format: FormatDescription
    segment: Segment

    def position(self, event: int) -> int:
        """Start position in the binlog file of an event of the payload."""
        return self.segment.start_pos + int(self.events[event, K.OFFSET])

    def end_position(self, event: int) -> int:
        return self.position(event) + int(self.events[event, K.SIZE])

    def event(self, event: int) -> bytes:
        """The whole event, checksum included."""
        offset = int(self.events[event, K.OFFSET])
        return self.data[offset : offset + int(self.events[event, K.SIZE])].tobytes()

    def names(self) -> list[tuple[str, str]]:
        """Database and table of each body. StreamCorrupt when one has none."""
        try:
            return [read_name(body) for body in self.bodies]
        except DecodeError as error:
            raise StreamCorrupt(f"TABLE_MAP: {error.what}", where=self.segment.where, remedy=_REMEDY) from None


def index_segment(segment: Segment, *, verify_checksums: bool = False) -> EventIndex:
    """Walk context, then payload. Raises StreamCorrupt (with file and position) or UnknownEvent (format)."""
    context = np.frombuffer(segment.context, np.uint8)
    data = np.frombuffer(segment.payload, np.uint8)
    size = int.from_bytes(segment.context[9:13], "little") if len(segment.context) >= 13 else 0
    described = parse_format_description(segment.context[:size], segment.where)
    store_bytes = _STORE_BYTES
    while True:
        scan = new_state(segment.prev_commit_ts, described.checksum_bytes)
        maps = np.zeros(K.MAPS_WORDS, np.int64)
        store = np.empty(store_bytes, np.uint8)
        _walk(context, scan, maps, store, segment, "context")
        events = _walk(data, scan, maps, store, segment, "payload")
        if events is not None:
            break
        store_bytes *= 8
    if verify_checksums and scan[CHECKSUM]:
        _verify(data, events, segment)
    return EventIndex(data, events, _bodies(maps, store), described, segment)


def _walk(
    data: npt.NDArray[np.uint8],
    scan: npt.NDArray[np.int64],
    maps: npt.NDArray[np.int64],
    store: npt.NDArray[np.uint8],
    segment: Segment,
    part: str,
) -> npt.NDArray[np.int64] | None:
    """The index of data; None when store was too small."""
    index = np.empty((int(K.count_events(data.ctypes.data, len(data))), K.INDEX_WORDS), np.int64)
    maps[K.INDEX_AT], maps[K.INDEX_ROWS] = index.ctypes.data, len(index)
    maps[K.STORE_AT], maps[K.STORE_BYTES] = store.ctypes.data, len(store)
    found = int(K.index_events(data.ctypes.data, len(data), scan.ctypes.data, maps.ctypes.data))
    if found >= 0:
        return index[:found]
    at = int(maps[K.REACHED])
    if found == K.FULL and maps[K.CONTENTS] < K.CONTENTS_MAX and len(store) < max(2 * len(data), 1 << 22):
        return None
    kind = type_name(int(data[at + 4])) if at + 4 < len(data) else "nothing"
    place = f"{segment.file}:{segment.start_pos + at}" if part == "payload" else f"context of seq {segment.seq} + {at}"
    raise StreamCorrupt(f"event {kind} {_WORDS[found]}", where=f"{segment.source} at {place}", remedy=_REMEDY)


def _bodies(maps: npt.NDArray[np.int64], store: npt.NDArray[np.uint8]) -> tuple[bytes, ...]:
    count = int(maps[K.CONTENTS])
    places = maps[K.BODIES : K.BODIES + 3 * count].reshape(count, 3)
    return tuple(store[at : at + size].tobytes() for at, size, _ in places.tolist())


def _verify(data: npt.NDArray[np.uint8], events: npt.NDArray[np.int64], segment: Segment) -> None:
    for offset, size, kind in events[:, [K.OFFSET, K.SIZE, K.TYPE]].tolist():
        end = offset + size - CHECKSUM_BYTES
        checked = data[offset:end]
        if kind == EventType.FORMAT_DESCRIPTION:  # its checksum is of the event before the file was marked as in use
            checked = checked.copy()
            checked[_FLAGS_AT] &= 0xFF ^ EventFlag.IN_USE
        if zlib.crc32(checked.data) != int.from_bytes(data[end : end + CHECKSUM_BYTES].tobytes(), "little"):
            raise StreamCorrupt(
                f"checksum of event {type_name(kind)} is wrong",
                where=f"{segment.source} at {segment.file}:{segment.start_pos + offset}",
                remedy=_REMEDY,
            )
