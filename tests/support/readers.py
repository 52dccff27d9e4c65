"""What a Delta table holds, by each of the readers that people use.

In:  a table's local path, a version of it (None: the newest).
Out: its rows, an Arrow table. None of the readers shares code with the writers.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import duckdb
import polars as pl
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder


class Reader(Protocol):
    """One of them."""

    def __call__(self, path: str, version: int | None = None) -> pa.Table:
        """All rows of the table."""


def by_duckdb(path: str, version: int | None = None) -> pa.Table:
    package = find_spec("duckdb_extension_delta")
    assert package is not None
    assert package.origin is not None
    extension = Path(package.origin).parent / "extensions" / f"v{duckdb.__version__}" / "delta.duckdb_extension"
    at = "" if version is None else f", version = {version}"
    place = path.replace("'", "''")
    with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as connection:
        connection.execute(f"LOAD '{extension}'")
        return connection.execute(f"SELECT * FROM delta_scan('{place}'{at})").to_arrow_table()


def by_polars(path: str, version: int | None = None) -> pa.Table:
    return pl.scan_delta(path, version=version).collect().to_arrow()


def by_delta_rs(path: str, version: int | None = None) -> pa.Table:
    return pa.table(QueryBuilder().register("t", DeltaTable(path, version=version)).execute("SELECT * FROM t"))


READERS: dict[str, Reader] = {
    "DuckDB": by_duckdb,
    "Polars": by_polars,
    "delta-rs": by_delta_rs,
}
