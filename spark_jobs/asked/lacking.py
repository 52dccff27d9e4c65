"""The last images of rows in a window, where they lack values.

In:  a window's segments, one physical table and its versions.
Out: Lacking, by version: rows written last under their keys, without values of generated columns.
     Raises Unanswered where they can't be had.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_jobs.window.application import Application
from spark_jobs.window.named_segments import NamedSegment, read_segments
from tidegate import tables
from tidegate.binlog.rows.row_images import TableImages, row_images
from tidegate.binlog.rows.table_rows import HeldError
from tidegate.columnar.decoded import IMAGE_AFTER, IMAGE_INSERT, SYSTEM_FIELDS, RowsError
from tidegate.errors import StreamCorrupt, Terminal
from tidegate.limits import ASKED_ROWS_MAX
from tidegate.schema.follow.computed import computed_beside_key
from tidegate.schema.model.columns import Column, Generated, TableVersion
from tidegate.segments.result import CommitSpan
from tidegate.segments.segment import Segment
from tidegate.table_names import Physical

Key = tuple[Any, ...]
Order = tuple[int, int, int]  # commit_ts, seq, ordinal


class Unanswered(Exception):  # noqa: N818 - no fault: a table waits for it
    """Why values can't be had. passes: whether a later try may have them."""

    def __init__(self, why: str, *, passes: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.passes = passes


@dataclass(frozen=True, slots=True)
class Lacking:
    """Rows of a version without the values of generated columns: SYSTEM_FIELDS as row_images has
    them, then the version's columns. keys: of each. null_dates: whether impossible dates
    became NULL among the images. computed: the generated columns that silver has.
    """

    version: TableVersion
    computed: Sequence[Column]
    rows: pa.Table
    keys: Sequence[Key]
    null_dates: bool

    def part(self, rows: Sequence[int]) -> Lacking:
        """Some of its rows."""
        taken = self.rows.take(pa.array(rows, pa.int64()))
        return replace(self, rows=taken, keys=[*map(self.keys.__getitem__, rows)])


@dataclass(slots=True)
class _OfVersion:
    """parts: rows without values. last: per key its last image's order, and where the row is:
    None where it is whole, or gone.
    """

    version: TableVersion
    parts: list[pa.Table] = field(default_factory=list)
    last: dict[Key, tuple[Order, int | None]] = field(default_factory=dict)
    rows: int = 0
    null_dates: bool = False


class LastImages:
    """Reads a table's images of a window, segment by segment."""

    def __init__(self, app: Application, table: Physical, span: CommitSpan) -> None:
        self._app, self._table, self._span = app, table, span
        self._versions = app.histories[table.source].versions(*table.pair)
        self._of: dict[int, _OfVersion] = {}
        self._count = 0

    def read(self, parts: Collection[NamedSegment]) -> list[Lacking]:
        """Raises Unanswered."""
        for part, segment in read_segments(self._app.lake, parts):
            if isinstance(segment, StreamCorrupt):
                raise Unanswered(f"a segment with its changes is damaged: {segment}")
            self._take_in(part, segment)
        return [*filter(None, map(self._made, self._of.values()))]

    def _take_in(self, part: NamedSegment, segment: Segment) -> None:
        span = CommitSpan(self._span.after_ts, part.upto(self._span.upto_ts), self._span.zero_dates)
        name = self._table.pair
        try:
            for images in row_images(segment, {name: self._versions}, {name: span}, known=part.known):
                self._note(images, segment.seq)
        except (HeldError, RowsError) as error:
            raise Unanswered(f"its changes can't be read: {error.error.line}") from error
        except Terminal as error:
            raise Unanswered(f"its changes can't be read: {error.line}") from error

    def _note(self, logged: TableImages, seq: int) -> None:
        version, rows = logged.version, logged.images.rows
        self._count += rows.num_rows
        if self._count > ASKED_ROWS_MAX:
            raise Unanswered(f"the window has more than {ASKED_ROWS_MAX:,} changes without these values")
        of = self._of.setdefault(version.version, _OfVersion(version))
        of.null_dates = of.null_dates or logged.images.null_dates > 0
        lacks = self._lacking(logged)
        stamps = rows.column(tables.COMMIT_TS).to_pylist()
        keys = zip(*(rows.column(name).to_pylist() for name in version.silver_key), strict=True)
        places = np.cumsum(lacks) - 1 + of.rows
        images = zip(keys, stamps, logged.ordinals.tolist(), lacks.tolist(), places.tolist(), strict=True)
        for key, stamp, ordinal, is_lacking, place in images:
            order = (stamp, seq, ordinal)
            known = of.last.get(key)
            if known is None or known[0] < order:
                of.last[key] = (order, place if is_lacking else None)
        kept = [*range(len(SYSTEM_FIELDS) + len(version.columns))]
        taken = rows.select(kept).filter(pa.array(lacks))
        at = taken.schema.get_field_index(tables.SEQ)
        ordinals = pa.array(logged.ordinals[lacks], pa.int64())
        taken = taken.set_column(at, taken.schema.field(at), pa.array(np.full(taken.num_rows, seq, np.int64)))
        at = taken.schema.get_field_index(tables.ORDINAL)
        of.parts.append(pa.Table.from_batches([taken.set_column(at, taken.schema.field(at), ordinals)]))
        of.rows += taken.num_rows

    def _lacking(self, logged: TableImages) -> npt.NDArray[np.bool_]:
        """A bool per written image: it lacks the value of a generated column. Raises Unanswered if it also lacks the
        value of another column.
        """
        rows, present, version = logged.images.rows, logged.images.present, logged.version
        if present is None:
            return np.zeros(rows.num_rows, np.bool_)
        computed = self._computed(version)
        asked = np.flatnonzero([column in computed for column in version.columns])
        stored = np.flatnonzero([column.generated is Generated.NO for column in version.columns])
        written = np.isin(rows.column(tables.OP).to_numpy(), (IMAGE_INSERT, IMAGE_AFTER))
        lacks: npt.NDArray[np.bool_] = written & (present[asked] == 0).any(axis=0)
        if not present[stored][:, lacks].all():
            raise Unanswered("its rows aren't logged whole (binlog_row_image is not FULL)")
        return lacks

    def _computed(self, version: TableVersion) -> list[Column]:
        return [column for column in computed_beside_key(version) if column.silver not in self._span.left_out]

    def _made(self, of: _OfVersion) -> Lacking | None:
        """Its last images, where they lack values; None without any."""
        places = {key: place for key, (_, place) in of.last.items() if place is not None}
        if not places:
            return None
        rows = pa.concat_tables(of.parts).take(pa.array(places.values(), pa.int64()))
        return Lacking(of.version, self._computed(of.version), rows, [*places], of.null_dates)
