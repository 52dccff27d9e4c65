"""One table's rows in a segment: its rows events under each version of its columns, decoded and in log order.

In:  an EventIndex, the table's rows events (TableRows), its versions.
Out: TableChanges per version; HeldError at the first undecodable event, which becomes the table's Problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate import tables
from tidegate.binlog.format.events import UNREAD_ROWS_TYPES
from tidegate.binlog.index.event_index import EventIndex
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.binlog.rows.batch import RowsBatch
from tidegate.binlog.rows.decode_plan import Plan, make_plan
from tidegate.binlog.rows.prewritten import changed_meanwhile, check_same_table
from tidegate.binlog.rows.refusals import refusal, unlogged
from tidegate.binlog.rows.session_modes import written_otherwise
from tidegate.binlog.rows.versioned import current_rows
from tidegate.columnar.decoded import RowsError
from tidegate.columnar.kernel import layout as L  # noqa: N812
from tidegate.errors import SchemaMismatch, Terminal, UnsupportedValue
from tidegate.remedy import RECREATE, REFILL
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.segments.result import CommitSpan, TableChanges

Name = tuple[str, str]
# (data, events int64[n, EVENT_WORDS], plan, seq) -> RowsBatch; raises RowsError
BatchDecoder = Callable[[npt.NDArray[np.uint8], npt.NDArray[np.int64], Plan, int], RowsBatch]
_UNREAD: Final = np.isin(np.arange(256), list(UNREAD_ROWS_TYPES))  # by an event's type, which is a byte


class HeldError(Exception):
    """A table's trouble at an event: it becomes its Problem. table_map: the body that
    schema_history contradicts.
    """

    def __init__(self, event: int, error: Terminal, table_map: bytes = b"") -> None:
        super().__init__(str(error))
        self.event = event
        self.error = error
        self.table_map = table_map


@dataclass(frozen=True, slots=True)
class TableRows:
    """Rows events of one table in its window: numbers of events, ascending. started: for rows read
    because of their answers, the commit_ts at which each was prepared.
    """

    name: Name
    events: npt.NDArray[np.int64]
    window: CommitSpan
    started: npt.NDArray[np.int64] | None = None


def decode_table(
    index: EventIndex, rows: TableRows, versions: Sequence[TableVersion], decode: BatchDecoder
) -> tuple[list[TableChanges], int]:
    """All changes of one table. Raises HeldError."""
    changes, null_dates = list[TableChanges](), 0
    for version, events in rows_by_version(index, rows, versions):
        if (wrong := written_otherwise(index, version, events, rows.window.left_out)) is not None:
            raise HeldError(*wrong)
        batches, lacks = list[pa.RecordBatch](), False
        contents = index.events[events, K.CONTENT]
        for content in np.unique(contents).tolist():
            of_content = events[contents == content]
            try:
                plan = make_plan(
                    index.bodies[content],
                    version,
                    rows.window.zero_dates,
                    mariadb=index.format.is_mariadb,
                    left_out=rows.window.left_out,
                    asks=rows.window.asks,
                )
                numbered = index.rows_records(of_content)
                batch = decode(index.data, numbered, plan, index.segment.seq)
                if rows.window.whole_deletes:
                    _check_deletes(batch, rows.window.whole_deletes)
                lacks = lacks or batch.lacks
                batches.append(_placed(_shown(batch.rows, numbered, plan), index.base))
            except RowsError as error:
                raise HeldError(int(of_content[error.event]), error.error) from None
            except Terminal as error:
                corrects = isinstance(error, SchemaMismatch) and rows.started is None  # only for rows of its own time
                contradicted = index.bodies[content] if corrects else b""
                raise HeldError(int(of_content[0]), error, contradicted) from None
            null_dates += batch.null_dates
        changes.append(TableChanges(*rows.name, version.version, _in_order(batches), lacks))
    return changes, null_dates


def _check_deletes(batch: RowsBatch, word: str) -> None:
    """Raises RowsError for a delete without the whole row. word: the pipeline file's key that needs
    the row.
    """
    if bare := batch.bare_delete:
        what = f"a deleted row lacks column {bare.column} (binlog_row_image is not FULL), and {word} keeps its image"
        remedy = REFILL.after(f"set binlog_row_image=FULL at the source, or leave it out of {word}")
        raise RowsError(bare.event, UnsupportedValue(what, remedy=remedy))


def _shown(rows: pa.RecordBatch, events: npt.NDArray[np.int64], plan: Plan) -> pa.RecordBatch:
    """The rows a plain SELECT shows: no history of a system-versioned table, no hidden columns."""
    if plan.row_end >= 0:
        moves = plan.keyed == 0 or bool(plan.words.reshape(-1, L.COLUMN_WORDS)[plan.row_end, L.KEY])
        rows = current_rows(rows, events, (plan.row_start, plan.row_end), moves=moves)
    return rows.select(range(rows.num_columns - plan.hidden)) if plan.hidden else rows


def rows_by_version(
    index: EventIndex, rows: TableRows, versions: Sequence[TableVersion]
) -> Iterator[tuple[TableVersion, npt.NDArray[np.int64]]]:
    """The table's rows events under each version in force. Raises HeldError for rows no version can
    decode.
    """
    events = index.events[rows.events]
    refused = np.flatnonzero(_UNREAD[events[:, K.TYPE]])
    if len(refused):
        raise HeldError(int(rows.events[refused[0]]), refusal(events[refused[0]]))
    in_order = sorted(versions, key=lambda version: version.commit_ts)
    if rows.started is not None and (at := check_same_table(in_order, rows.started, events[:, K.COMMIT_TS])) >= 0:
        raise HeldError(int(rows.events[at]), changed_meanwhile())
    starts = np.array([version.commit_ts for version in in_order], np.int64)
    which = np.searchsorted(starts, events[:, K.COMMIT_TS], side="right") - 1
    for at in np.unique(which).tolist():
        of_version = rows.events[which == at]
        if at < 0:
            first = in_order[0].commit_ts if in_order else None
            known = "no version" if first is None else f"its first version at commit_ts {first}"
            at_ts = int(index.events[of_version[0], K.COMMIT_TS])
            what = f"rows at commit_ts {at_ts}, but schema_history has {known}"
            error = SchemaMismatch(what, remedy=REFILL if in_order else RECREATE)
            raise HeldError(int(of_version[0]), error)
        if in_order[at].status is VersionStatus.DROPPED:
            error = SchemaMismatch(
                f"rows of a table that schema_history version {in_order[at].version} says was dropped",
                remedy=RECREATE.after("a CREATE TABLE was missed"),
            )
            raise HeldError(int(of_version[0]), error)
        if (wrong := unlogged(index, in_order[at])) is not None:
            raise HeldError(int(of_version[0]), wrong)
        yield in_order[at], of_version


def _in_order(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch in log order. There are several only if a table was mapped in two ways under one
    version.
    """
    if len(batches) == 1:
        return batches[0]
    whole = pa.Table.from_batches(batches).combine_chunks().sort_by(tables.ORDINAL)
    return whole.to_batches()[0]


def _placed(rows: pa.RecordBatch, base: int) -> pa.RecordBatch:
    """Rows whose ordinals count from the segment's beginning, and no longer from their piece's."""
    if base == 0:
        return rows
    at = rows.schema.get_field_index(tables.ORDINAL)
    return rows.set_column(at, rows.schema.field(at), pc.add(rows.column(at), base))
