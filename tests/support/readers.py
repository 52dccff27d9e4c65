"""What a Delta table holds, by each of the readers that people use.

In:  a table's local path, a version of it (None: the newest).
Out: its rows, an Arrow table. None of the readers shares code with the writers.
"""

from __future__ import annotations

from functools import cache
from typing import Protocol

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


def by_duckdb(path: str, version: int | None = None) -> pa.Table:
    with _duckdb().cursor() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = f"delta_scan({duck.literal(path)})" if version is None else duck.scan(path, version)
        return connection.execute(f"SELECT * FROM {found}").to_arrow_table()


def by_polars(path: str, version: int | None = None) -> pa.Table:
    return pl.scan_delta(path, version=version).collect().to_arrow()


def by_delta_rs(path: str, version: int | None = None) -> pa.Table:
    return pa.table(QueryBuilder().register("t", DeltaTable(path, version=version)).execute("SELECT * FROM t"))


READERS: dict[str, Reader] = {
    "DuckDB": by_duckdb,
    "Polars": by_polars,
    "delta-rs": by_delta_rs,
}
