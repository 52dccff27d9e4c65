"""Tables whose keys are skewed are divided evenly, without a scan; a small one isn't divided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.support.servers import FreshDatabase
from tidegate.local.server import Server
from tidegate.mysql.connection import ConnectionInfo
from tidegate.schema.model.columns import TableVersion
from tidegate.snapshot.chunks.ranges import divide
from tidegate.snapshot.chunks.spans import WHOLE
from tidegate.snapshot.reading.connection import WorkerConnection
from tidegate.snapshot.reading.literals import span_condition

pytestmark = pytest.mark.server

ROWS = 20_000
HOT = ROWS // 10  # rows that aren't where most are

# A table's key, and row n's literals of it.
KEYS: dict[str, tuple[str, Callable[[int], str]]] = {
    "outlier": ("k BIGINT", lambda n: str(n or 1 << 60)),
    "below": ("k BIGINT", lambda n: str(n or -(1 << 60))),
    "unsigned": ("k BIGINT UNSIGNED", lambda n: str(n or (1 << 64) - 1)),
    "crowds": ("k BIGINT", lambda n: str(n + (1 << 50) * (n % 2))),
    "prefix": (
        "k VARCHAR(60) CHARACTER SET latin1",
        lambda n: f"'{'customer/europe/north' if n >= HOT else 'Aa zz'[n % 5]}-{n * 7919 % 1000003:07}'",
    ),
    "cased": (
        "k VARCHAR(60) COLLATE utf8mb4_general_ci",
        lambda n: f"'{'Order/North' if n >= HOT else 'az'[n % 2]}-{n * 7919 % 1000003:07}'",
    ),
    "bytes": ("k VARBINARY(30)", lambda n: f"x'{'00' * 14 if n >= HOT else f'{n % 256:02x}'}{n:08x}'"),
    "tenants": ("a INT, k INT", lambda n: f"{7 if n >= HOT else n % 100}, {n}"),
    "named": ("a VARCHAR(20), k BIGINT", lambda n: f"'{'main' if n >= HOT else chr(97 + n % 26)}', {n * 1000}"),
    "alike": (
        "a VARCHAR(9) COLLATE utf8mb4_general_ci, k INT",
        lambda n: f"'{('Ab', 'aB', 'ab')[n % 3] if n >= HOT else n % 10}', {n}",
    ),
    "deep": ("a INT, b VARCHAR(9), k INT", lambda n: f"1, '{'x' if n >= HOT else n % 100}', {n}"),
}


def _version(server: Server, database: str, table: str) -> TableVersion:
    with WorkerConnection(info_of(server)) as asked:
        asked.see(0)
        return asked.versions("s", [(database, table)])[(database, table)]


def info_of(server: Server) -> ConnectionInfo:
    return ConnectionInfo(server.host, server.port, server.user, server.password)


def filled(server: Server, database: str, table: str, rows: int) -> TableVersion:
    columns, literals = KEYS[table]
    names = [column.split()[0] for column in columns.split(", ")]
    server.query(f"CREATE TABLE {database}.{table} ({columns}, v CHAR(40), PRIMARY KEY ({', '.join(names)}))")
    for first in range(0, rows, 5000):
        values = ", ".join(f"({literals(n)}, 'v')" for n in range(first, min(first + 5000, rows)))
        server.query(f"INSERT INTO {database}.{table} VALUES {values}")
    server.query(f"ANALYZE TABLE {database}.{table}")
    return _version(server, database, table)


@pytest.mark.parametrize("table", KEYS)
def test_skewed_keys_are_divided_evenly(any_server: Server, fresh_database: FreshDatabase, table: str) -> None:
    database = fresh_database(any_server)
    version = filled(any_server, database, table, ROWS)
    asked: list[str] = []
    with WorkerConnection(info_of(any_server)) as connection:

        def ask(sql: str) -> Sequence[Sequence[Any]]:
            asked.append(sql)
            return connection.ask(sql)

        spans = divide(version, ask, 4, 1000)
        place = f"`{database}`.`{table}`"
        conditions = [span_condition(version.key_names, span) or "1" for span in spans]
        counts = [connection.ask(f"SELECT COUNT(*) FROM {place} WHERE {one}")[0][0] for one in conditions]
    assert sum(counts) == ROWS
    assert [span.upto for span in spans[:-1]] == [span.after for span in spans[1:]]
    assert len(counts) >= 4
    assert max(counts) < ROWS * 0.4, counts
    assert all(sql.startswith("EXPLAIN") or sql.endswith("LIMIT 1") for sql in asked), "no scan"
    assert len(asked) < 2500


def test_a_small_table_is_not_divided(any_server: Server, fresh_database: FreshDatabase) -> None:
    version = filled(any_server, fresh_database(any_server), "outlier", 300)
    with WorkerConnection(info_of(any_server)) as connection:
        asked: list[str] = []

        def ask(sql: str) -> Sequence[Sequence[Any]]:
            asked.append(sql)
            return connection.ask(sql)

        assert divide(version, ask, 4, 1000) == (WHOLE,)
        assert len(asked) == 1
        assert len(divide(version, ask, 4, 100)) >= 4
