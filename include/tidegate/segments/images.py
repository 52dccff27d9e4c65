"""Row images as they were logged, of kinds of segments whose rows are no binlog events.

In:  nothing; these are values.
Out: the input of a changelog (changelog/rows.py); a binlog's own form is binlog/rows/row_images.py.
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
    """Images of one table under one version. batch: as TableChanges', its tables.OP an IMAGE_*.

    present: bool[columns, images], whether an image has the column; None when each has all. positions: per image, where
    it stands in the segment's file. transactions: commit_ts -> name of the transaction, of those that have one.
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
        """In pieces. Raises StreamCorrupt, UnknownEvent, and what a table's rows can't be read for."""
        ...
