"""The memory that a batch's kernel writes into.

In:  how many bytes each column may take.
Out: one buffer, which the thread's next batch writes over; rows in memory of their own.
"""

from __future__ import annotations

import threading
from typing import ClassVar, Final

import pyarrow as pa

_ALIGN: Final = 64
# An arena up to this size is used again by the thread's next batch; a larger one is given back.
_KEPT_BYTES: Final = 128 << 20


class Arena:
    """Hands out aligned ranges, then becomes one buffer: the thread's last one, when that is large enough.

    Touching fresh memory costs more than the decode does.
    """

    _kept: ClassVar[threading.local] = threading.local()

    def __init__(self) -> None:
        self.size = 0

    def take(self, count: int) -> int:
        at = self.size
        self.size += (count + _ALIGN - 1) // _ALIGN * _ALIGN
        return at

    def buffer(self) -> pa.Buffer:
        """Uninitialised; good until this thread decodes its next batch."""
        kept: pa.Buffer | None = getattr(self._kept, "buffer", None)
        if kept is not None and kept.size >= self.size:
            return kept
        fresh = pa.allocate_buffer(self.size)
        if self.size <= _KEPT_BYTES:
            self._kept.buffer = fresh
        return fresh


def moved_out(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows in memory of their own, of just their size."""
    return pa.ipc.read_record_batch(rows.serialize(), rows.schema)
