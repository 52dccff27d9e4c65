"""What a Delta table holds, by each of the readers that people use.

In:  a table's local path.
Out: its rows as Python values; None of the readers shares code with the writers.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

Row = dict[str, Any]


def by_duckdb(path: str) -> list[Row]:
    package = find_spec("duckdb_extension_delta")
    assert package is not None
    assert package.origin is not None
    extension = Path(package.origin).parent / "extensions" / f"v{duckdb.__version__}" / "delta.duckdb_extension"
    with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as connection:
        connection.execute(f"LOAD '{extension}'")
        rows: list[Row] = connection.execute(f"SELECT * FROM delta_scan('{path}')").to_arrow_table().to_pylist()
    return rows


def by_polars(path: str) -> list[Row]:
    rows: list[Row] = pl.read_delta(path).to_arrow().to_pylist()
    return rows


def by_delta_rs(path: str) -> list[Row]:
    batches = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT * FROM t")
    rows: list[Row] = pa.table(batches).to_pylist()
    return rows


READERS: dict[str, Callable[[str], list[Row]]] = {
    "DuckDB": by_duckdb,
    "Polars": by_polars,
    "delta-rs": by_delta_rs,
}
