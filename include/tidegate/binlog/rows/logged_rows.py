"""All rows of a table in a segment, also rows that were rolled back, or that wait for an answer.

In:  a segment, a table, its versions.
Out: its row images, with the rows events that have them. If one can't be decoded, that is an error:
     the caller must not miss any row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate import tables
from tidegate.binlog.index.event_index import EventIndex
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.binlog.rows.batch import decode_images
from tidegate.binlog.rows.decode_plan import Plan, make_plan
from tidegate.binlog.rows.table_rows import HeldError, Name, TableRows, rows_by_version
from tidegate.binlog.transaction_scan import ROWS
from tidegate.columnar.decoded import IMAGE_AFTER, Images, RowsError
from tidegate.columnar.kernel import layout as L  # noqa: N812
from tidegate.commit_ts import FOREVER
from tidegate.errors import StreamCorrupt, UnsupportedValue
from tidegate.schema.model.columns import TableVersion
from tidegate.segments.result import CommitSpan

_EVER: Final = CommitSpan(-1, FOREVER)
# A row in an event: offsets in the data, of its beginning and of the next row's.
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class LoggedRows:
    """Rows events of one version and plan. events: per image, the number of its event in the index."""

    index: EventIndex
    version: TableVersion
    plan: Plan
    images: Images
    events: npt.NDArray[np.int64]

    def spans(self, goes: npt.NDArray[np.bool_]) -> dict[int, list[Span]]:
        """Event -> the places of rows whose images are marked in `goes`. Both images of an update
        go together.
        """
        begins = self.images.rows.column(tables.ORDINAL).to_numpy()
        kinds = self.images.rows.column(tables.OP).to_numpy()
        firsts = np.flatnonzero(kinds != IMAGE_AFTER)  # each begins a row
        row_of = np.cumsum(kinds != IMAGE_AFTER) - 1
        rows = np.unique(row_of[goes])
        spans: dict[int, list[Span]] = {}
        for row in rows.tolist():
            event = int(self.events[firsts[row]])
            upto = int(self.index.events[event, K.END])
            if row + 1 < len(firsts) and self.events[firsts[row + 1]] == event:
                upto = int(begins[firsts[row + 1]])
            spans.setdefault(event, []).append((int(begins[firsts[row]]), upto))
        return spans


def logged_rows(index: EventIndex, name: Name, versions: Sequence[TableVersion]) -> Iterator[LoggedRows]:
    """In no order. Raises StreamCorrupt, HeldError, and plans' Terminal errors."""
    events = index.events
    wanted = [content for content, named in enumerate(index.names()) if named == name]
    rows = np.flatnonzero((events[:, K.BITS] & ROWS) != 0)
    if len(rows) and int(events[rows, K.CONTENT].min()) < 0:
        raise StreamCorrupt("a rows event follows no TABLE_MAP of its table", where=index.segment.where)
    numbers = rows[np.isin(events[rows, K.CONTENT], wanted)]
    if not len(numbers):
        return
    for version, of_version in rows_by_version(index, TableRows(name, numbers, _EVER), versions):
        contents = events[of_version, K.CONTENT]
        for content in np.unique(contents).tolist():
            yield _decoded(index, version, of_version[contents == content], content)


def _decoded(index: EventIndex, version: TableVersion, events: npt.NDArray[np.int64], content: int) -> LoggedRows:
    plan = make_plan(index.bodies[content], version, _EVER.zero_dates, mariadb=index.format.is_mariadb)
    if plan.row_end >= 0:
        what = "a system-versioned table logs its history's rows with its own"
        raise HeldError(int(events[0]), UnsupportedValue(what))
    records = index.rows_records(events)
    try:
        images = decode_images(index.data, records, plan, index.segment.seq)
    except RowsError as error:
        raise HeldError(int(events[error.event]), error.error) from None
    begins = images.rows.column(tables.ORDINAL).to_numpy()
    of_image = events[np.searchsorted(records[:, L.EVENT_START], begins, side="right") - 1]
    return LoggedRows(index, version, plan, images, of_image)
