"""A mutation's row as cells by column id.

In:  the bytes of one row of a TableMutation, and which columns its handle is made of.
Out: the cells before and after, None for a side that isn't there. DecodeError for bytes that fit no row.

A missing cell is not NULL: it is the column's origin default, NULL for most. The id -1 is
_tidb_rowid. Source: AddRecord, UpdateRecord and RemoveRecord in pkg/table/tables/tables.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tidegate.errors import DecodeError
from tidegate.remedy import REPORT
from tidegate.tidb.codec.datum import Cells, Value, datums
from tidegate.tidb.jobs import ROWID, TableInfo
from tidegate.tidb.records.payload import Mutation


class RowChange(NamedTuple):
    """before: None for an insert. after: None for a delete."""

    before: Cells | None
    after: Cells | None


def row_change(kind: Mutation, data: bytes, table: TableInfo) -> RowChange:
    if kind is Mutation.INSERT:
        return RowChange(None, inserted(data, table))
    listed = datums(data)
    if kind is Mutation.DELETE:
        return RowChange(_pairs(listed), None)
    if len(listed) % 4:
        raise _broken(f"an update of {len(listed)} datums")
    half = len(listed) // 2
    before, after = _pairs(listed[:half]), _pairs(listed[half:])
    if before.keys() != after.keys():
        raise _broken("an update's two sides name different columns")
    return RowChange(before, after)


def inserted(data: bytes, table: TableInfo) -> Cells:
    """The cells of an inserted row. The handle's datums come first; for most kinds of keys they
    aren't repeated.
    """
    listed = datums(data)
    count = len(table.handle) or 1
    if len(listed) < count:
        raise _broken(f"{len(listed)} datums, of which the handle has {count}")
    cells = _pairs(listed[count:])
    columns = table.by_id()
    for id_, value in zip(table.handle or (ROWID,), listed[:count], strict=True):
        column = columns.get(id_)
        if isinstance(value, int) and value < 0 and column is not None and column.unsigned:
            cells.setdefault(id_, value + (1 << 64))  # the handle of an unsigned key is written as a signed number
        cells.setdefault(id_, value)
    return cells


def _pairs(listed: Sequence[Value]) -> Cells:
    """(column id, value) ..., or one NULL for a row in which nothing is to be said."""
    if len(listed) == 1 and listed[0] is None:
        return {}
    if len(listed) % 2:
        raise _broken(f"{len(listed)} datums aren't pairs")
    cells: Cells = {}
    for at in range(0, len(listed), 2):
        id_ = listed[at]
        if not isinstance(id_, int):
            raise _broken("a column's id isn't a number")
        cells[id_] = listed[at + 1]
    return cells


def _broken(what: str) -> DecodeError:
    return DecodeError(f"a row doesn't fit its table: {what}", remedy=REPORT)
