"""The engines that read silver, each by the same SQL: DuckDB, Polars, delta-rs and Spark.

In:  a Delta table's folder; a query of `t`.
Out: the query's rows. Each query opens the table anew, as somebody does who comes now.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import duckdb
import polars as pl
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from benchmarks.peers import spark_merge
from tidegate.local import jars
from tidegate.query import duck

Rows = list[tuple[Any, ...]]
Engine = Callable[[Path, str], Rows]

_MEMORY_BYTES: Final = 2 << 30
# As tidegate's own applications write: OPTIMIZE then gives files of one codec, and only their shape differs.
_WRITES: Final = {
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.hadoop.parquet.compression.codec.zstd.level": "1",
}


def by_polars(table: Path, sql: str) -> Rows:
    return pl.SQLContext(t=pl.scan_delta(str(table))).execute(sql).collect().rows()


def by_delta_rs(table: Path, sql: str) -> Rows:
    found = pa.table(QueryBuilder().register("t", DeltaTable(str(table))).execute(sql))
    return [tuple(row.values()) for row in found.to_pylist()]


class Duck:
    """DuckDB, with the extension loaded."""

    def __init__(self) -> None:
        self._connection: duckdb.DuckDBPyConnection = duck.connect(_MEMORY_BYTES)

    def __call__(self, table: Path, sql: str) -> Rows:
        scan = f"WITH t AS (SELECT * FROM delta_scan({duck.literal(str(table))})) {sql}"
        rows: Rows = self._connection.execute(scan).fetchall()
        return rows


class Spark:
    """A plain session on two cores."""

    def __init__(self, root: Path) -> None:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        self.session = spark_merge.session(f"{jars.ensure(root)}/*", _WRITES)

    def __call__(self, table: Path, sql: str) -> Rows:
        return [tuple(row) for row in self.session.sql(f"WITH t AS (SELECT * FROM delta.`{table}`) {sql}").collect()]

    def optimize(self, table: Path) -> None:
        """Delta's own OPTIMIZE."""
        self.session.sql(f"OPTIMIZE delta.`{table}`").collect()


@contextmanager
def engines(root: Path) -> Iterator[dict[str, Engine]]:
    """By name; Spark's JVM ends with the context."""
    spark = Spark(root)
    try:
        yield {"DuckDB": Duck(), "Polars": by_polars, "delta-rs": by_delta_rs, "Spark": spark}
    finally:
        spark.session.stop()
