"""A shop on a real server: tables, a workload with DDL in its midst, and silver compared by the server's own SELECT.

In:  a server, the lake's address and its options.
Out: Shop: create(), work(seconds), differences(): silver as delta-rs reads it, which shares no code with the writers.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import TableNotFoundError

from tidegate import tables
from tidegate.local.server import Server

DATABASE = "e2e_shop"
LATE_TABLE = "late"
TABLES = ("customers", "orders", "order_lines", "visits", LATE_TABLE)
SCHEMA = (
    "CREATE TABLE customers (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(60) CHARACTER SET utf8mb4, since DATE)",
    "CREATE TABLE orders (id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, buyer INT, paid DECIMAL(9,2), at DATETIME(6))",
    "CREATE TABLE order_lines (order_id BIGINT, line SMALLINT, item VARCHAR(40), n INT, PRIMARY KEY (order_id, line))",
    "CREATE TABLE visits (page VARCHAR(40), seconds INT)",  # no key
)


class Shop:
    """One server's shop: its workload, and what of it should be in silver."""

    def __init__(self, name: str, server: Server, lake: str, file: Path, options: Mapping[str, str] = {}) -> None:
        """file: the pipeline's. options: the store's, by delta-rs' names."""
        self.name = name
        self.server = server
        self.lake = lake
        self.file = file
        self._options = dict(options)
        self._rounds = 0

    def create(self) -> None:
        self.server.query(f"DROP DATABASE IF EXISTS `{DATABASE}`")
        self.server.query(f"CREATE DATABASE `{DATABASE}`")
        with self.server.connect(DATABASE) as connection, connection.cursor() as cursor:
            for statement in SCHEMA:
                cursor.execute(statement)

    def work(self, seconds: float) -> None:
        """Transactions for some seconds, the first time with DDL in between; each round changes every table."""
        with self.server.connect(DATABASE, autocommit=False) as connection, connection.cursor() as cursor:
            end = time.monotonic() + seconds
            while time.monotonic() < end or self._rounds < 12:
                self._rounds += 1
                self._round(cursor, self._rounds)
                connection.commit()
                cursor.execute("INSERT INTO visits VALUES ('rolled back', 0)")
                connection.rollback()
                if self._rounds == 5:
                    cursor.execute("ALTER TABLE orders ADD COLUMN note VARCHAR(30) DEFAULT 'none'")
                if self._rounds == 8:
                    cursor.execute(f"CREATE TABLE {LATE_TABLE} (k VARCHAR(20) PRIMARY KEY, v DOUBLE)")
                time.sleep(0.15)

    def _round(self, cursor: Any, n: int) -> None:
        cursor.execute(
            "INSERT INTO customers (name, since) VALUES (%s, %s)", (f"Zoë {n} 🚲", f"2026-01-{n % 28 + 1:02d}")
        )
        cursor.execute(
            "INSERT INTO orders (buyer, paid, at) VALUES (%s, %s, %s)",
            (n, n * 1.25, f"2026-02-03 04:05:06.{n:06d}"),
        )
        order = cursor.lastrowid
        lines = [(order, line, f"item {line}", n) for line in range(3)]
        cursor.executemany("INSERT INTO order_lines VALUES (%s, %s, %s, %s)", lines)
        cursor.execute("UPDATE order_lines SET n = n + 1 WHERE line = 1")
        cursor.execute("UPDATE order_lines SET line = line + 10 WHERE order_id = %s AND line = 2", (order,))
        cursor.execute("DELETE FROM orders WHERE id = %s", (order - 3,))
        cursor.executemany("INSERT INTO visits VALUES (%s, %s)", [("home", 1), ("home", 1), (f"page {n}", n)])
        cursor.execute("DELETE FROM visits WHERE page = 'home' LIMIT 1")
        if n > 5:
            cursor.execute("UPDATE orders SET note = %s WHERE id = %s", (f"note {n}", order - 1))
        if n > 8:
            cursor.execute(f"INSERT INTO {LATE_TABLE} VALUES (%s, %s)", (f"k{n}", n / 7))

    def differences(self) -> dict[str, str]:
        """Table -> how silver differs from the server right now; {} when all are equal."""
        differences = {}
        for table in TABLES:
            wanted = self._source_rows(table)
            got = self._silver_rows(table, list(wanted[0]) if wanted else [])
            if sorted(map(_text, wanted)) != sorted(map(_text, got)):
                differences[table] = f"{len(wanted)} rows at the source, {len(got)} in silver"
        return differences

    def _table(self, path: str) -> DeltaTable:
        return DeltaTable(f"{self.lake}/{path}", storage_options=self._options)

    def _source_rows(self, table: str) -> list[dict[str, Any]]:
        with self.server.connect(DATABASE) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM `{table}`")
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def _silver_rows(self, table: str, columns: list[str]) -> list[dict[str, Any]]:
        try:
            opened = self._table(tables.silver_path(DATABASE, table))
        except TableNotFoundError:
            return []
        answer = QueryBuilder().register("silver", opened).execute("SELECT * FROM silver").read_all()
        rows: list[dict[str, Any]] = answer.to_struct_array().to_pylist()
        return [{name: row.get(name) for name in columns} for row in rows]

    def silver_count(self, table: str) -> int:
        """Rows of a table in silver; 0 where there is none."""
        try:
            return int(self._table(tables.silver_path(DATABASE, table)).count())
        except TableNotFoundError:
            return 0

    def table_states(self) -> list[dict[str, Any]]:
        """For a failure's message: which tables are held, and why."""
        try:
            opened = self._table(tables.TABLE_STATES.path)
        except TableNotFoundError:
            return []
        answer = QueryBuilder().register("states", opened).execute("SELECT * FROM states").read_all()
        states: list[dict[str, Any]] = answer.to_struct_array().to_pylist()
        return states


def _text(row: dict[str, Any]) -> str:
    """A row in one spelling, whichever client it came from."""

    def spell(value: Any) -> Any:
        if isinstance(value, decimal.Decimal):
            return str(value.normalize())
        if isinstance(value, int) and not isinstance(value, bool):
            return str(decimal.Decimal(value).normalize())
        if isinstance(value, dt.datetime | dt.date):
            return value.isoformat()
        return value

    return json.dumps({name: spell(value) for name, value in row.items()}, sort_keys=True)
