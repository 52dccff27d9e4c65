"""Row images of TiDB's committed prewrites, as they were logged.

In:  a Segment of a Pump, as decode.py takes it; start_ts -> commit_ts of the prewrites that are wanted.
Out: LoggedImages: both sides of an update, whole. Their transaction is named by its start_ts.

The same functions as there exclude rows here (other windows, repeated ones). Undecodable bytes
raise an error: the caller has decoded the same rows for silver before, and the table was held.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np

from tidegate import tables
from tidegate.columnar.decoded import IMAGE_AFTER, IMAGE_BEFORE, IMAGE_DELETE, IMAGE_INSERT
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.types import ZeroDates
from tidegate.segments.images import LoggedImages
from tidegate.segments.result import CommitSpan, Known, Ledger
from tidegate.segments.segment import Segment
from tidegate.tidb.codec.datum import Cells
from tidegate.tidb.kernel import layout as T  # noqa: N812 - a page of constants
from tidegate.tidb.records.payload import Binlog
from tidegate.tidb.rows.by_row import Decoding, Name, Reading
from tidegate.tidb.rows.decode import Pieces
from tidegate.tidb.rows.walk import walk_of


def row_images(
    segment: Segment,
    versions: Mapping[Name, Sequence[TableVersion]],
    windows: Mapping[Name, CommitSpan],
    *,
    known: Known,
) -> Iterator[LoggedImages]:
    """An ImageFeed (segments/images.py)."""
    windows = {name: replace(window, zero_dates=ZeroDates.NULL) for name, window in windows.items()}
    # Nothing is merged by these keys: in one, too, a date that no calendar has is shown as NULL.
    keyless = {name: [replace(version, key=()) for version in versions_of] for name, versions_of in versions.items()}
    slow = _Imaging(segment, keyless, windows, known.answers or {})
    walk = walk_of(segment.payload)
    pieces = Pieces(slow, walk, logged=True) if walk is not None else None
    if walk is None or pieces is None or not pieces.whole:
        for ledger in slow.read():
            yield from slow.images(ledger, versions)
        return
    started = {slow.answers[start_ts]: str(start_ts) for start_ts in walk.payloads[pieces.wanted, T.START_TS].tolist()}
    at = segment.start_pos + walk.payloads[:, T.AT]
    for piece in pieces.read():
        places = at[piece.rows[:, T.ROW_PAYLOAD]]
        for reading, batch in piece.batches:
            numbers = batch.column(tables.ORDINAL).to_numpy() // 2 - 1 - piece.first
            version = _version(reading, versions)
            yield LoggedImages(reading.name, version, batch, None, places[numbers], started)


def _version(reading: Reading, versions: Mapping[Name, Sequence[TableVersion]]) -> TableVersion:
    """As it was asked for, with its key."""
    return next(version for version in versions[reading.name] if version.version == reading.version.version)


class _Imaging(Decoding):
    """places: ordinal of an image -> where its transaction stands. started: commit_ts -> start_ts."""

    def __init__(
        self,
        segment: Segment,
        versions: Mapping[Name, Sequence[TableVersion]],
        windows: Mapping[Name, CommitSpan],
        answers: Mapping[int, int],
    ) -> None:
        super().__init__(segment, versions, windows, answers)
        self._at = 0
        self._places: dict[int, int] = {}
        self._started: dict[int, str] = {}

    def take(self, binlog: Binlog, at: int) -> bool:
        self._at = at
        self._started[self.answers[binlog.start_ts]] = str(binlog.start_ts)
        return super().take(binlog, at)

    def changes(self, reading: Reading, commit_ts: int, before: Cells | None, after: Cells | None) -> None:
        first = IMAGE_DELETE if after is None else IMAGE_BEFORE
        last = IMAGE_INSERT if before is None else IMAGE_AFTER
        for op, cells, ordinal in ((first, before, self.ordinal), (last, after, self.ordinal + 1)):
            if cells is not None:
                reading.add(op, commit_ts, ordinal, reading.cells(cells))
                self._places[ordinal] = self._at
                self.waiting += 1

    def fail(self, name: Name, error: Exception, commit_ts: int, at: int) -> NoReturn:
        del name, commit_ts, at
        raise error

    def images(self, ledger: Ledger, versions: Mapping[Name, Sequence[TableVersion]]) -> Iterator[LoggedImages]:
        for reading in self.filled():
            batch = self.batch(reading, ledger)
            positions = np.array([self._places[ordinal] for _, _, ordinal in reading.system], np.int64)
            version = _version(reading, versions)
            reading.rows, reading.system = [], []
            yield LoggedImages(reading.name, version, batch, None, positions, dict(self._started))
        self.waiting = 0
        self._places.clear()
        self._started.clear()
