"""Row images as they were logged, for kinds of segments whose rows aren't binlog events.

In:  nothing; these are values.
Out: the input of a changelog (changelog/rows.py). A binlog has its own form:
     binlog/rows/row_images.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.schema.model.columns import TableVersion
from tidegate.segments.result import CommitSpan, Known
from tidegate.segments.segment import Segment


@dataclass(frozen=True, slots=True)
class LoggedImages:
    """Images of one table under one version. batch: as TableChanges.batch, with an IMAGE_* in
    tables.OP.

    present: bool[columns, images], whether an image has the column; None if all have. positions:
    per image, its place in the segment's file. transactions: commit_ts -> name of the transaction,
    for those that have a name.
    """

    name: tuple[str, str]
    version: TableVersion
    batch: pa.RecordBatch
    present: npt.NDArray[np.bool_] | None
    positions: npt.NDArray[np.int64]
    transactions: Mapping[int, str]


class ImageFeed(Protocol):
    """A segment's row images, from its own bytes and the table versions alone."""

    def __call__(
        self,
        segment: Segment,
        versions: Mapping[tuple[str, str], Sequence[TableVersion]],
        windows: Mapping[tuple[str, str], CommitSpan],
        *,
        known: Known,
    ) -> Iterator[LoggedImages]:
        """In pieces. Raises StreamCorrupt, UnknownEvent, and the errors of rows that can't be read."""
        ...
