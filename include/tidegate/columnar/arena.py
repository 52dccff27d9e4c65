"""The memory into which a batch's kernel writes.

In:  how many bytes each column may need.
Out: one buffer, which the thread's next batch overwrites; rows copied into memory of their own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.columnar.column_plan import OUT_BYTES, VARIABLE
from tidegate.columnar.kernel import layout as L  # noqa: N812 - a page of constants

Words = npt.NDArray[np.int64]

OFFSETS_MAX: Final = (1 << 31) - 1  # Arrow's 32-bit offsets
_ALIGN: Final = 64
# The thread's next batch uses an arena of up to this size again; a larger one is freed.
_KEPT_BYTES: Final = 128 << 20


class Arena:
    """Hands out aligned ranges, then becomes one buffer. It uses the thread's last buffer if this
    is large enough: touching fresh memory costs more than the decoding does.
    """

    _kept: ClassVar[threading.local] = threading.local()

    def __init__(self) -> None:
        self.size = 0

    def take(self, count: int) -> int:
        at = self.size
        self.size += (count + _ALIGN - 1) // _ALIGN * _ALIGN
        return at

    def buffer(self) -> pa.Buffer:
        """Uninitialised. It is valid until this thread decodes its next batch."""
        kept: pa.Buffer | None = getattr(self._kept, "buffer", None)
        if kept is not None and kept.size >= self.size:
            return kept
        fresh = pa.allocate_buffer(self.size)
        if self.size <= _KEPT_BYTES:
            self._kept.buffer = fresh
        return fresh


def lay_out(
    words: Words, state: Words, stamps: tuple[int, int, int], cells: Iterable[tuple[int, int]], rows_max: int
) -> pa.Buffer:
    """Write addresses into words (int64[columns, COLUMN_WORDS]) and state. Returns the arena.

    stamps: the places in state for the addresses of operation, commit_ts and ordinal. cells: per
    column its CELL_*, and the bytes all of its values may need if they have variable length.
    """
    arena = Arena()
    for place, width in zip(stamps, (1, 8, 8), strict=True):
        state[place] = arena.take(width * rows_max)
    variable = []
    for (cell, bytes_max), described in zip(cells, words, strict=True):
        described[L.VALID] = arena.take(rows_max // 8 + 1)
        if cell not in VARIABLE:
            described[L.VALUES] = arena.take(OUT_BYTES[cell] * rows_max)
            continue
        described[L.VALUES] = arena.take(4 * (rows_max + 1))
        described[L.BYTES_MAX] = min(bytes_max, OFFSETS_MAX)
        described[L.BYTES] = arena.take(int(described[L.BYTES_MAX]))
        variable.append(described)
    buffer = arena.buffer()
    state[list(stamps)] += buffer.address
    words[:, [L.VALUES, L.VALID, L.BYTES]] += buffer.address
    out = np.frombuffer(buffer, np.uint8)
    for described in variable:
        at = int(described[L.VALUES]) - buffer.address
        out[at : at + 4] = 0  # Arrow's first offset
    return buffer


def moved_out(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows in memory of their own, exactly as large as they need."""
    return pa.ipc.read_record_batch(rows.serialize(), rows.schema)
