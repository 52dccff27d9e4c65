"""Tables whose log has more than SELECT shows: hidden columns, and the history of system-versioned
tables (MariaDB).

In:  a TABLE_MAP and a table version; later a batch of decoded changes.
Out: the hidden columns as Columns, so a plan can skip them; then the batch without them and without
     history.

MariaDB logs columns every SELECT and information_schema hide, after all others: the two of an
implicit system period, and a hash for each unique key that is too long for an index. A row of a
system-versioned table is current while its row end is the largest moment. A DELETE is logged as an
UPDATE that sets the row end. An UPDATE is logged as an UPDATE, and a WRITE of the old row. Silver
has what a plain SELECT shows: the current rows.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate import tables
from tidegate.binlog.format.table_map import TableMap
from tidegate.columnar.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.errors import UnsupportedValue
from tidegate.remedy import REFILL
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.type_table import Wire

ROW_END: Final = "ROW END"  # generation_expression of that column
_ROW_START: Final = "ROW START"
_HASH: Final = re.compile(r"DB_ROW_HASH_\d+")
# The largest TIMESTAMP(6): 32 bits with a sign; since MariaDB 11.5 without one.
_NEVER: Final = tuple(seconds * 1_000_000 + 999_999 for seconds in ((1 << 31) - 1, (1 << 32) - 1))


def hidden_columns(table_map: TableMap, version: TableVersion) -> tuple[Column, ...]:
    """The event's columns after those of the version, if the server hides exactly such columns;
    else ().
    """
    made = []
    for wire in table_map.columns[len(version.columns) :]:
        if wire.name is not None and _HASH.fullmatch(wire.name) and wire.type == Wire.LONGLONG:
            made.append(Column(0, wire.name, "bigint(20) unsigned"))
        elif wire.name in ("row_start", "row_end") and wire.type == Wire.TIMESTAMP2:
            expression = ROW_END if wire.name == "row_end" else _ROW_START
            made.append(Column(0, wire.name, "timestamp(6)", nullable=False, generation_expression=expression))
        else:
            return ()
    return tuple(made)


def is_hash(column: Column) -> bool:
    """Whether it is a hidden hash. MariaDB (11.8.9) leaves it out of updates and deletes, even with
    full images.
    """
    return not column.id and _HASH.fullmatch(column.name) is not None


def row_end_of(columns: tuple[Column, ...]) -> int:
    """Number of the column that says until when a row was current; -1 if the table has no history."""
    for number, column in enumerate(columns):
        if column.generation_expression.upper() != ROW_END:
            continue
        if not column.type.startswith("timestamp"):
            raise UnsupportedValue(
                f"the table's history is by transaction (column {column.name} is {column.type})",
                remedy="give it TIMESTAMP(6) row start and end columns, or leave the table out",
            )
        return number
    return -1


def row_start_of(columns: tuple[Column, ...]) -> int:
    """Number of the column that says since when a row was current; -1 if the table has no history."""
    return next((n for n, column in enumerate(columns) if column.generation_expression.upper() == _ROW_START), -1)


def current_rows(
    rows: pa.RecordBatch, events: npt.NDArray[np.int64], period: tuple[int, int], *, moves: bool
) -> pa.RecordBatch:
    """Changes of a system-versioned table as changes of its current rows.

    rows: the system columns, then the table's. period: numbers of row start and row end. events:
    the rows' events, as the kernel had them. moves: whether an update of the row end is two rows
    already, first the delete of the current row: the row end is part of the key, or there is no
    key.
    """
    starts, ends = (rows.column(rows.schema.get_field_index(tables.ORDINAL) + 1 + n).cast(pa.int64()) for n in period)
    if ends.null_count:
        raise UnsupportedValue(
            "a row image of a system-versioned table doesn't tell whether its row is current",
            remedy=REFILL.after("set binlog_row_image=FULL at the source"),
        )
    current = pc.is_in(ends, value_set=pa.array(_NEVER, pa.int64())).to_numpy(zero_copy_only=False)
    order = np.argsort(events[:, L.EVENT_START], kind="stable")
    ordinals = rows.column(rows.schema.get_field_index(tables.ORDINAL)).to_numpy()
    which = np.searchsorted(events[order, L.EVENT_START], ordinals, side="right") - 1
    of_event = events[order, L.EVENT_OP][which]
    _check_deletes(of_event, current, starts, ends)
    updated = of_event == L.OP_UPDATE
    ops = rows.column(rows.schema.get_field_index(tables.OP)).to_numpy()
    # The after image of an update that ends a row: its key is that of the current row, which is deleted.
    closing = ~current & updated & (ops == tables.OP_UPSERT) & (not moves)
    ops = np.where(closing, np.int8(tables.OP_DELETE), ops)
    settled = rows.set_column(
        rows.schema.get_field_index(tables.OP), rows.schema.field(tables.OP), pa.array(ops, pa.int8())
    )
    return settled.filter(pa.array(current | closing))


def _check_deletes(
    of_event: npt.NDArray[np.int64], current: npt.NDArray[np.bool_], starts: pa.Array, ends: pa.Array
) -> None:
    """Refuse a row a foreign key changed, and that its own statement then deletes: the log has it
    as it was in between. The change itself isn't in the log, so silver's row isn't the one in
    the event.
    """
    moment = pc.fill_null(pc.equal(starts, ends), fill_value=False).to_numpy(zero_copy_only=False)
    if bool(np.any((of_event == L.OP_DELETE) & ~current & moment)):
        raise UnsupportedValue(
            "a row of a system-versioned table was deleted after a foreign key changed it, which isn't in the log",
            remedy="take the cascade out of its foreign keys, or leave the table out",
        )
