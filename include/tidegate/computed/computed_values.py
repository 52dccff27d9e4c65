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

from tidegate import tables
from tidegate.computed.row_expressions import ComputedColumn, database, needs_of
from tidegate.computed.row_functions import WrongValuesError, installed
from tidegate.errors import UnsupportedValue

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
    plain = [column for column in columns if not column.function]
    by_sql = dict(zip(map(attrgetter("name"), plain), _by_sql(plain, rows), strict=True)) if plain else {}
    given = rows
    for column in columns:
        values = by_sql[column.name] if column.name in by_sql else _by_function(column, given)
        rows = rows.append_column(column.name, _fitted(column, values))
    return rows


def _by_sql(columns: Sequence[ComputedColumn], rows: pa.RecordBatch) -> list[pa.Array]:
    import duckdb

    needed = needs_of(columns)
    given = pa.Table.from_batches([rows.select([name for name in rows.schema.names if name.lower() in needed])])
    listed = ", ".join(f"{column.sql} AS c{at}" for at, column in enumerate(columns))
    try:
        with database().cursor() as cursor:
            cursor.register("changed", given)
            values = cursor.execute(f"SELECT {listed} FROM changed").to_arrow_table()
    except duckdb.Error as error:
        what = str(error).split(":")[0]  # the rest may quote a row's value
        raise UnsupportedValue(
            f"tables.computed: {what} in a value of {', '.join(map(attrgetter('name'), columns))}",
            remedy="correct the expression, e.g. by TRY(...), and run `tidegate rebuild --swap` for the table",
        ) from None
    return [_whole(values.column(at)) for at in range(len(columns))]


def _by_function(column: ComputedColumn, rows: pa.RecordBatch) -> pa.Array:
    try:
        return values_of(column, rows)
    except WrongValuesError as error:
        where = _place(_first_wrong(column, rows) if error.raised else rows)
        raise UnsupportedValue(
            f"tables.computed: column {column.name}, for {where}: {error}",
            remedy="correct the function, give its distribution another version, and run `tidegate rebuild --swap` for"
            " the table",
        ) from None


def values_of(column: ComputedColumn, rows: pa.RecordBatch | pa.Table) -> pa.Array:
    """The values by a column's function. Raises WrongValuesError; ValueError without the function."""
    names = {name.lower(): name for name in rows.schema.names}
    arguments = [_plain(_whole(rows.column(names[name.lower()]))) for name in column.columns]
    return installed(column.function).values(arguments, arrow_type(column.type))


def _first_wrong(column: ComputedColumn, rows: pa.RecordBatch) -> pa.RecordBatch:
    """The first row without a value; more rows if each half of them has values."""
    while len(rows) > 1:
        half = len(rows) // 2
        part = next((part for part in (rows.slice(0, half), rows.slice(half)) if _raises(column, part)), None)
        if part is None:
            return rows
        rows = part
    return rows


def _raises(column: ComputedColumn, rows: pa.RecordBatch) -> bool:
    try:
        values_of(column, rows)
    except WrongValuesError:
        return True
    return False


def _place(rows: pa.RecordBatch) -> str:
    """The first row's in the log."""
    place = (rows.column(name)[0].as_py() for name in (tables.COMMIT_TS, tables.SEQ, tables.ORDINAL))
    first = "the row at commit_ts {} (segment {}, change {})".format(*place)
    return first if len(rows) == 1 else f"{len(rows)} rows from {first} on"


def _plain(values: pa.Array) -> pa.Array:
    """The same for the writer's rows and for silver's as DuckDB reads them."""
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us", tz="UTC" if values.type.tz else None))
    if pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type):
        return values.cast(pa.string())
    if pa.types.is_large_binary(values.type) or pa.types.is_binary_view(values.type):
        return values.cast(pa.binary())
    return values


def _whole(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    return pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)


def _fitted(column: ComputedColumn, values: pa.Array) -> pa.Array:
    kind = arrow_type(column.type)
    whole = values.cast(kind)
    if pa.types.is_temporal(kind):
        # Infinity, and years that Delta's readers don't have.
        years = pc.year(whole)
        if pc.any(pc.or_(pc.less(years, _FROM_YEAR), pc.greater(years, _UPTO_YEAR))).as_py():
            raise UnsupportedValue(
                f"tables.computed: a value of {column.name} lies outside the years 1 to 9999",
                remedy="correct the rule, and run `tidegate rebuild --swap` for the table",
            )
    return whole
