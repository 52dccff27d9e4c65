"""Silver's columns by functions in Python, computed again from silver's other columns.

In:  a rule, live rows of silver as DuckDB reads them.
Out: otherwise(): how many have another value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.computed.computed_values import arrow_type, values_of
from tidegate.computed.row_expressions import ComputedColumn
from tidegate.computed.row_functions import WrongValuesError
from tidegate.errors import SilverReadError
from tidegate.query import duck

READ_ROWS: Final = 65_536  # at once


def check_installed(columns: Sequence[ComputedColumn], address: str) -> None:
    """Raise SilverReadError for a missing function: other tables are compared all the same."""
    for column in columns:
        if missing := column.lacks:
            raise SilverReadError(
                f"tables.computed: {column.name}: {missing}",
                where=address,
                remedy="install its distribution where verify runs, or correct the rule",
            )


def names_of(column: ComputedColumn) -> str:
    """The function's columns, and its own, for a SELECT."""
    names = {name.lower(): name for name in (*column.columns, column.name)}
    return ", ".join(map(duck.identifier, names.values()))


def otherwise(column: ComputedColumn, rows: pa.RecordBatch) -> int:
    """A row without a value counts: another writer changed its other columns."""
    try:
        wanted = values_of(column, rows)
    except WrongValuesError:
        if len(rows) <= 1:
            return len(rows)
        half = len(rows) // 2
        return otherwise(column, rows.slice(0, half)) + otherwise(column, rows.slice(half))
    names = [name.lower() for name in rows.schema.names]
    held = rows.column(names.index(column.name.lower())).cast(arrow_type(column.type))
    same = pc.fill_null(pc.equal(wanted, held), False)
    empty = pc.and_(pc.is_null(wanted), pc.is_null(held))
    if pa.types.is_floating(wanted.type):  # NaN isn't equal to itself, and isn't NULL
        same = pc.or_(same, pc.fill_null(pc.and_(pc.is_nan(wanted), pc.is_nan(held)), False))
    return len(rows) - int(pc.sum(pc.or_(same, empty)).as_py() or 0)
