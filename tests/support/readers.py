"""What a Delta table holds, by each of the readers that people use.

In:  a table's local path, a version of it (None: the newest).
Out: its rows, an Arrow table; rows_of(): some columns, as tuples. None of the readers shares code with the writers.

A small table costs DuckDB a hundredth of what it costs Spark. What Spark reads is equal: tests/readers.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol

import duckdb
import polars as pl
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from tidegate.query import duck


class Reader(Protocol):
    """One of them."""

    def __call__(self, path: str, version: int | None = None) -> pa.Table:
        """All rows of the table."""


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    """One for all tables of a process: to load the extension takes ten times as long as to read a small table."""
    return duck.connect(1 << 30)


def by_duckdb(path: str, version: int | None = None, columns: str = "*") -> pa.Table:
    with _duckdb().cursor() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = f"delta_scan({duck.literal(path)})" if version is None else duck.scan(path, version)
        return connection.execute(f"SELECT {columns} FROM {found}").to_arrow_table()


def rows_of(path: str, columns: str = "*", *, version: int | None = None) -> list[tuple[Any, ...]]:
    """Rows by DuckDB, in an order of their own. columns: as SQL names them."""
    rows = by_duckdb(path, version, columns)
    return sorted(zip(*(column.to_pylist() for column in rows.columns), strict=True), key=repr)


def by_polars(path: str, version: int | None = None) -> pa.Table:
    return pl.scan_delta(path, version=version).collect().to_arrow()


def by_delta_rs(path: str, version: int | None = None) -> pa.Table:
    return pa.table(QueryBuilder().register("t", DeltaTable(path, version=version)).execute("SELECT * FROM t"))


READERS: dict[str, Reader] = {
    "DuckDB": by_duckdb,
    "Polars": by_polars,
    "delta-rs": by_delta_rs,
}
