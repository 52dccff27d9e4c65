"""The next lines of all folders, in order of commit_ts.

In:  streams, the commit_ts up to which all is captured, and the changefeed's checkpoint above it.
Out: a Wave: all lines of a range of commit_ts, no more than a segment holds.

A range ends at or below the checkpoint, and below the last line read of each stream that has more
lines. Then all lines of the range have been read. Lines of one commit_ts stay together, however many
there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.changefeed.stream import LINE_ENDS, Stream
from tidegate.errors import SourceUnavailable, StreamCorrupt
from tidegate.limits import (
    TICDC_CHUNK_BYTES,
    TICDC_CHUNK_BYTES_MIN,
    TICDC_CHUNKS_BYTES_MAX,
    TICDC_COMMIT_BYTES_MAX,
)
from tidegate.ticdc.pieces import Piece


@dataclass(frozen=True, slots=True)
class Wave:
    """Everything in (the last wave's upto_ts, upto_ts]. stamps: the smallest and largest commit_ts; (0, 0) of none."""

    upto_ts: int
    pieces: list[tuple[Piece, bytes]]
    stamps: tuple[int, int]


def next_wave(streams: Sequence[Stream], after_ts: int, ceiling_ts: int, segment_bytes: int) -> Wave:
    """Raises SourceUnavailable, SourceRefused, StreamCorrupt."""
    share = TICDC_CHUNKS_BYTES_MAX // max(len(streams), 1)
    chunk_bytes = max(min(TICDC_CHUNK_BYTES, share), TICDC_CHUNK_BYTES_MIN)
    upto_ts = _known_upto(streams, after_ts, ceiling_ts, chunk_bytes)
    waiting = [stream.waiting(after_ts, upto_ts) for stream in streams]
    stamps = np.concatenate([stamps_of for stamps_of, _ in waiting]) if waiting else np.empty(0, np.int64)
    if not len(stamps):
        for stream in streams:
            stream.take(after_ts, upto_ts)
        return Wave(upto_ts, [], (0, 0))
    sizes = np.concatenate([sizes_of for _, sizes_of in waiting])
    order = np.argsort(stamps, kind="stable")
    taken = np.searchsorted(np.cumsum(sizes[order]), segment_bytes)
    if taken < len(order) - 1:
        upto_ts = int(stamps[order[taken]])
    inside = stamps <= upto_ts
    if int(sizes[inside].sum()) > TICDC_COMMIT_BYTES_MAX:
        raise StreamCorrupt(
            f"a transaction at commit_ts {upto_ts} has more than {TICDC_COMMIT_BYTES_MAX >> 20} MiB of lines",
            remedy="leave its tables out of the changefeed, and begin anew with smaller transactions",
        )
    pieces = [piece for stream in streams for piece in stream.take(after_ts, upto_ts)]
    return Wave(upto_ts, pieces, (int(stamps[inside].min()), int(stamps[inside].max())))


def _known_upto(streams: Sequence[Stream], after_ts: int, ceiling_ts: int, chunk_bytes: int) -> int:
    """Up to which commit_ts every stream's lines are read; above after_ts."""
    upto_ts = ceiling_ts
    for stream in streams:
        size = chunk_bytes
        while stream.more and stream.last_ts <= after_ts + 1:
            before = stream.held_bytes
            stream.fill(size)
            stream.take(after_ts, after_ts)  # what is captured needn't be held
            size = size * 2 if stream.held_bytes > before else size
        if after_ts < stream.unended_ts <= ceiling_ts:
            raise SourceUnavailable(
                f"a line of commit_ts {stream.unended_ts} has no end, and the checkpoint covers it",
                where=stream.where,
                remedy=f"it is read again; {LINE_ENDS}",
            )
        if stream.more:
            upto_ts = min(upto_ts, stream.last_ts - 1)
    return upto_ts
