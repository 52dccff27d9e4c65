"""Row images as logged, before and after: full images only, until batch.py gives them all.

In:  what batch.decode_batch takes.
Out: Images.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate import tables
from tidegate.binlog.batch import decode_batch
from tidegate.binlog.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.binlog.plan import Plan

IMAGE_INSERT: Final = 0
IMAGE_BEFORE: Final = 1
IMAGE_AFTER: Final = 2
IMAGE_DELETE: Final = 3


@dataclass(frozen=True, slots=True)
class Images:
    """rows: tables.OP (IMAGE_*), COMMIT_TS, SEQ, ORDINAL, then columns. present: [column, row], None when all are."""

    rows: pa.RecordBatch
    present: npt.NDArray[np.bool_] | None
    null_dates: int


def decode_images(data: npt.NDArray[np.uint8], events: npt.NDArray[np.int64], plan: Plan, seq: int) -> Images:
    """Without a key every update gives its before image too."""
    batch = decode_batch(data, events, replace(plan, keyed=0), seq)
    ordinals = batch.rows.column(tables.ORDINAL).to_numpy()
    ops = events[np.searchsorted(events[:, L.EVENT_START], ordinals, side="right") - 1, L.EVENT_OP]
    codes = np.where(ops == L.OP_DELETE, IMAGE_DELETE, IMAGE_INSERT).astype(np.int8)
    updates = np.flatnonzero(ops == L.OP_UPDATE)
    codes[updates[0::2]] = IMAGE_BEFORE
    codes[updates[1::2]] = IMAGE_AFTER
    return Images(batch.rows.set_column(0, tables.OP, pa.array(codes)), None, batch.null_dates)
