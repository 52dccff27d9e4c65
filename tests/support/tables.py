"""Compare a server's tables with silver, row by row, sharing nothing with the road that filled it.

In:  a server, a lake folder.
Out: assert_silver_equals_source: every value of every row, the server's own SELECT against DuckDB's delta_scan.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_delta  # noqa: F401  its files are found by path below

from tidegate.demo.server import Server
from tidegate.tables import SYSTEM_PREFIX, silver_path


def connect_duckdb() -> duckdb.DuckDBPyConnection:
    """DuckDB with its delta extension from site-packages, offline."""
    folder = Path(duckdb_extension_delta.__file__).parent
    found = next(folder.rglob("*.duckdb_extension"))
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    connection.execute(f"LOAD '{found}'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def source_rows(server: Server, database: str, table: str, columns: list[str]) -> Counter[tuple[Any, ...]]:
    names = ", ".join(f"`{name}`" for name in columns)
    with server.connect(database, init_command="SET time_zone = '+00:00'") as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {names} FROM `{table}`")
        return Counter(tuple(_plain(cell) for cell in row) for row in cursor.fetchall())


def silver_rows(lake: Path, database: str, table: str) -> tuple[list[str], Counter[tuple[Any, ...]]]:
    connection = connect_duckdb()
    relation = connection.sql(f"SELECT * FROM delta_scan('{lake / silver_path(database, table)}')")
    columns = [name for name in relation.columns if not name.startswith(SYSTEM_PREFIX)]
    keep = [relation.columns.index(name) for name in columns]
    return columns, Counter(tuple(_plain(row[i]) for i in keep) for row in relation.fetchall())


def assert_silver_equals_source(server: Server, lake: Path, database: str) -> dict[str, int]:
    """Every base table of the database; returns row counts."""
    found: dict[str, int] = {}
    rows = server.query(
        f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{database}' AND table_type = 'BASE TABLE'"
    )
    for (table,) in rows:
        columns, silver = silver_rows(lake, database, str(table))
        source = source_rows(server, database, str(table), columns)
        missing, extra = source - silver, silver - source
        assert not missing and not extra, f"{table}: missing {list(missing)[:2]}, extra {list(extra)[:2]}"
        found[str(table)] = sum(source.values())
    return found


def _plain(cell: Any) -> Any:
    """One Python value for what both sides mean."""
    if isinstance(cell, dt.timedelta):
        seconds, micros = divmod(abs(cell) // dt.timedelta(microseconds=1), 1_000_000)
        text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        return ("-" if cell < dt.timedelta(0) else "") + text + (f".{micros:06d}" if micros else "")
    if isinstance(cell, dt.datetime):
        return cell.astimezone(dt.UTC).replace(tzinfo=None) if cell.tzinfo else cell
    if isinstance(cell, bool | int | Decimal):
        return Decimal(cell).normalize()
    if isinstance(cell, float):
        return float(f"{cell:.6g}")
    if isinstance(cell, bytearray | memoryview):
        return bytes(cell)
    if isinstance(cell, bytes) and cell in (b"\0", b"\1"):
        return Decimal(cell[0])  # bit(1) is a boolean in silver
    return cell
