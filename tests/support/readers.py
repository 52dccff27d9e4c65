"""What a Delta table holds, by each of the readers that people use.

In:  a table's local path.
Out: its rows, an Arrow table. None of the readers shares code with the writers.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder


def by_duckdb(path: str) -> pa.Table:
    package = find_spec("duckdb_extension_delta")
    assert package is not None
    assert package.origin is not None
    extension = Path(package.origin).parent / "extensions" / f"v{duckdb.__version__}" / "delta.duckdb_extension"
    with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as connection:
        connection.execute(f"LOAD '{extension}'")
        return connection.execute(f"SELECT * FROM delta_scan('{path}')").to_arrow_table()


def by_polars(path: str) -> pa.Table:
    return pl.read_delta(path).to_arrow()


def by_delta_rs(path: str) -> pa.Table:
    return pa.table(QueryBuilder().register("t", DeltaTable(path)).execute("SELECT * FROM t"))


READERS: dict[str, Callable[[str], pa.Table]] = {
    "DuckDB": by_duckdb,
    "Polars": by_polars,
    "delta-rs": by_delta_rs,
}
