"""Values of silver's columns beside the source's.

In:  computed columns; rows as Arrow.
Out: the rows with these columns, of silver's types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.errors import UnsupportedValue
from tidegate.row_expressions import ComputedColumn, database, needs_of

_FROM_YEAR, _UPTO_YEAR = 1, 9999  # of Delta's dates
_TYPES: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def arrow_type(kind: str) -> pa.DataType:
    """The Arrow type of a computed column's type."""
    known = _TYPES.get(kind)
    if known is not None:
        return known
    precision, scale = kind.removeprefix("decimal(").removesuffix(")").split(",")
    return pa.decimal128(int(precision), int(scale))


def computed(columns: Sequence[ComputedColumn], rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with these columns after their own. Raises UnsupportedValue where a value can't be had.

    The rows have all their input columns, under names with more than case between them.
    """
    import duckdb

    needed = needs_of(columns)
    given = pa.Table.from_batches([rows.select([name for name in rows.schema.names if name.lower() in needed])])
    listed = ", ".join(f"{column.sql} AS c{at}" for at, column in enumerate(columns))
    try:
        with database().cursor() as cursor:
            cursor.register("changed", given)
            values = cursor.execute(f"SELECT {listed} FROM changed").to_arrow_table().combine_chunks()
    except duckdb.Error as error:
        what = str(error).split(":")[0]  # the rest may quote a row's value
        raise UnsupportedValue(
            f"tables.computed: {what} in a value of {', '.join(map(attrgetter('name'), columns))}",
            remedy="correct the expression, e.g. by TRY(...), and run `tidegate rebuild --swap` for the table",
        ) from None
    for at, column in enumerate(columns):
        rows = rows.append_column(column.name, _fitted(column, values.column(at)))
    return rows


def _fitted(column: ComputedColumn, values: pa.ChunkedArray) -> pa.Array:
    whole = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    kind = arrow_type(column.type)
    whole = whole.cast(kind)
    if pa.types.is_temporal(kind):
        # Infinity, and years that Delta's readers don't have.
        years = pc.year(whole)
        if pc.any(pc.or_(pc.less(years, _FROM_YEAR), pc.greater(years, _UPTO_YEAR))).as_py():
            raise UnsupportedValue(
                f"tables.computed: a value of {column.name} lies outside the years 1 to 9999",
                remedy="correct the expression, and run `tidegate rebuild --swap` for the table",
            )
    return whole
