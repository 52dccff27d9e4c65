"""The form of decoded rows, whichever decoder makes them.

In:  nothing; these are values.
Out: the system columns in front of a table's own, row images as they were logged, and the error of one event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate import tables
from tidegate.errors import Terminal

# Kinds of row images. Kernels compile these numbers in.
IMAGE_INSERT: Final = 0
IMAGE_BEFORE: Final = 1  # the image after it is IMAGE_AFTER: an update
IMAGE_AFTER: Final = 2
IMAGE_DELETE: Final = 3

SYSTEM_FIELDS: Final = (
    pa.field(tables.OP, pa.int8(), nullable=False),
    pa.field(tables.COMMIT_TS, pa.int64(), nullable=False),
    pa.field(tables.SEQ, pa.int64(), nullable=False),
    pa.field(tables.ORDINAL, pa.int64(), nullable=False),
)


class RowsError(Exception):
    """A rows event that couldn't be decoded, and why. event: its index in the batch. The caller
    adds the place.
    """

    def __init__(self, event: int, error: Terminal) -> None:
        super().__init__(str(error))
        self.event = event
        self.error = error


@dataclass(frozen=True, slots=True)
class Images:
    """Row images as they were logged: tables.OP is an IMAGE_*, tables.ORDINAL the image's offset in
    the data.

    present: bool[columns, rows], whether an image has the column; None if all have. null_dates:
    zero or impossible dates that became NULL.
    """

    rows: pa.RecordBatch
    present: npt.NDArray[np.bool_] | None
    null_dates: int
