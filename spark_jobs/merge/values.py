"""Values that silver's rows are given by expression: literals, and the system columns of rows without a key.

In:  DataFrames with a silver table's plain columns, values of added columns.
Out: the same with their hashes and occurrence numbers; Spark SQL text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate import tables
from tidegate.merge.silver_sql import SilverShape
from tidegate.schema.follow.silver_change import AddSilverColumn
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.types import canonical
from tidegate.spark_sql import literal, quote
from tidegate.upsert.row_hash import row_hashes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_row_hash(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """The rows with their hashes. Hashes have one definition, in Python, so they aren't computed in
    SQL.
    """
    from pyspark.sql.types import StringType, StructField, StructType

    given = rows.columns
    places = {name: given.index(name) for name in names}

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            hashes = row_hashes({name: batch.column(at) for name, at in places.items()})
            yield batch.append_column(tables.ROW_HASH, hashes)

    # mapInArrow looks columns up by name, and takes a dot or a backtick in it for syntax.
    plain = rows.toDF(*(f"column_{at}" for at in range(len(given))))
    schema = StructType([*plain.schema.fields, StructField(tables.ROW_HASH, StringType())])
    return plain.mapInArrow(run, schema).toDF(*given, tables.ROW_HASH)


def numbered(rows: DataFrame, shape: SilverShape) -> DataFrame:
    """Rows of a table without a key with their hash and occurrence, live ones first; others as they are."""
    from pyspark.sql import functions as sql_functions

    if shape.key:
        return rows
    order = f"NOT ({shape.past.live}), {tables.COMMIT_TS}" if shape.past.rows_stay else tables.COMMIT_TS
    number = f"row_number() OVER (PARTITION BY {tables.ROW_HASH} ORDER BY {order})"
    hashed = with_row_hash(rows, shape.hashed_names)
    return hashed.withColumn(tables.OCCURRENCE, sql_functions.expr(f"CAST({number} AS BIGINT)"))


def literals(added: Sequence[AddSilverColumn]) -> dict[str, str]:
    """Spark SQL text of each added column's value for existing rows ("NULL" when there is none)."""
    return {a.column.silver: sql_value(a.value, canonical(a.column).delta) for a in added}


def sql_value(value: object, delta: str) -> str:
    """A typed literal. Text goes through a string literal and a CAST, binary through X'...'."""
    if value is None:
        return f"CAST(NULL AS {delta})"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, bool):
        return str(value).lower()
    return f"CAST({literal(str(value))} AS {delta})"


def staged_schema(version: TableVersion, shape: SilverShape) -> str:
    """The schema of a file of staged changes of one version, as Spark reads it."""
    fixed = f"{tables.OP} tinyint, {tables.COMMIT_TS} bigint, {tables.SEQ} bigint, {tables.ORDINAL} bigint"
    columns = ", ".join(f"{quote(c.silver)} {canonical(c).delta}" for c in version.columns)
    if not version.key:
        return f"{fixed}, {columns}, {tables.ROW_HASH} string"
    more = (f"{quote(c.name)} {c.type}" for c in shape.columns if c.computed)
    return ", ".join([fixed, columns, *(f"{c.name} {c.type}" for c in shape.past.staged_columns), *more])
