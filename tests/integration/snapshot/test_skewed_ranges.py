"""Tables whose keys are skewed are divided evenly, without a scan, whatever the key is; a small one isn't divided.

And a statement that reads on from some key looks at the rows that it gives, and at no others.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from tests.support.servers import FreshDatabase
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.schema.model.columns import TableVersion
from tidegate.snapshot.chunks.ranges import divide
from tidegate.snapshot.chunks.spans import WHOLE, Span
from tidegate.snapshot.reading.connection import WorkerConnection
from tidegate.snapshot.reading.result.literals import span_condition
from tidegate.snapshot.reading.result.stream import ResultStream
from tidegate.snapshot.reading.table_reader import ChunkReader

pytestmark = pytest.mark.server

ROWS = 6_000
LIMIT = 200
HOT = ROWS // 10  # rows that aren't where most are

DAY, MOMENT = date(2020, 1, 1), datetime.fromisoformat("2024-01-01")


def drawn(n: int, first: int, last: int, count: int = 5) -> str:
    """Characters that follow from n."""
    r = random.Random(n)
    return "".join(chr(r.randrange(first, last)) for _ in range(count))


def cyrillic(n: int) -> str:
    return drawn(n, 0x410, 0x450)


def han(n: int) -> str:
    return drawn(n, 0x4E00, 0x9FA5, 3)


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
    "dates": ("k DATE, n INT", lambda n: f"'{DAY + timedelta(n % 700) if n >= HOT else f'{1000 + n}-02-01'}', {n}"),
    "moments": ("k DATETIME(6)", lambda n: f"'{MOMENT + timedelta(0, n) if n >= HOT else f'{1000 + n}-02-01'}'"),
    "stamps": ("k TIMESTAMP(3)", lambda n: f"'{MOMENT + timedelta(0, n if n >= HOT else -n * 10**5)}'"),
    "times": ("k TIME(3), n INT", lambda n: f"'{'-' * (n % 3 > 0)}{n % 800:02}:00:00.{n % 1000:03}', {n}"),
    "prices": ("k DECIMAL(30, 10)", lambda n: f"{n if n >= HOT else -n * 10**12}.{n:010}"),
    "floats": ("k FLOAT, n INT", lambda n: f"{(n - 1500) / 7:.3f}e{0 if n >= HOT else 20}, {n}"),
    "doubles": ("k DOUBLE", lambda n: f"{(n - 1500) / 7!r}"),
    "bits": ("k BIT(40)", lambda n: str(n if n >= HOT else n << 25)),
    "years": ("k YEAR, n INT", lambda n: f"{2000 + n % 20 if n >= HOT else (0, 1901, 2155)[n % 3]}, {n}"),
    "chosen": ("k ENUM('z','a','m','q'), n INT", lambda n: f"{4 if n >= HOT else n % 4 + 1}, {n}"),
    "sets": ("k SET('a','b','c','d'), n INT", lambda n: f"{n % 16}, {n}"),
    "uuids": ("k UUID", lambda n: f"'{uuid.UUID(int=random.Random(n).getrandbits(128), version=4)}'"),
    "timed": ("k UUID", lambda n: f"'{uuid.UUID(int=(0x190 << 112) + (n << 80) | 0x7000_8000_0000_0000_0000 | n)}'"),
    "addresses": ("k INET6", lambda n: f"'2001:db8:{n % 9 if n < HOT else 7:x}::{n:x}'"),
    "ids": ("k CHAR(36)", lambda n: f"'{uuid.UUID(int=random.Random(n).getrandbits(128))}'"),
    "names": ("k VARCHAR(40), n INT", lambda n: f"'{cyrillic(n)}', {n}"),
    "places": (
        "k VARCHAR(60) COLLATE utf8mb4_general_ci, n INT",
        lambda n: f"'{f'Заказ/Север-{n * 7919 % 1000003}' if n >= HOT else cyrillic(n)}', {n}",
    ),
    "wide": ("k VARCHAR(40) CHARACTER SET utf16, n INT", lambda n: f"'{cyrillic(n)}', {n}"),
    "han": ("k VARCHAR(40), n INT", lambda n: f"'{han(n)}', {n}"),
    "own": ("k VARCHAR(40) CHARACTER SET gbk, n INT", lambda n: f"'{han(n)}', {n}"),
    "tongues": ("k VARCHAR(40), n INT", lambda n: f"'{(cyrillic, han, str)[n % 3](n)}', {n}"),
    "signs": ("k VARCHAR(40), n INT", lambda n: f"'{drawn(n, 0x1F600, 0x1F640)}', {n}"),
    "deep": ("a INT, b VARCHAR(9), k INT", lambda n: f"1, '{'x' if n >= HOT else n % 100}', {n}"),
}
MARIADB_ALONE = ("uuids", "timed", "addresses")


def _version(server: Server, database: str, table: str) -> TableVersion:
    with WorkerConnection(info_of(server)) as asked:
        asked.see(0)
        return asked.versions("s", [(database, table)])[(database, table)]


def info_of(server: Server) -> ConnectionInfo:
    return ConnectionInfo(server.host, server.port, server.user, server.password)


def filled(server: Server, database: str, table: str, rows: int) -> TableVersion:
    columns, literals = KEYS[table]
    names = [column.split()[0] for column in columns.replace("','", "").split(", ") if not column[0].isdigit()]
    server.query(f"CREATE TABLE {database}.{table} ({columns}, v CHAR(40), PRIMARY KEY ({', '.join(names)}))")
    with server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = '', time_zone = '+00:00'")
        for first in range(0, rows, 3000):
            values = ", ".join(f"({literals(n)}, 'v')" for n in range(first, min(first + 3000, rows)))
            cursor.execute(f"INSERT INTO {database}.{table} VALUES {values}")
    server.query(f"ANALYZE TABLE {database}.{table}")
    return _version(server, database, table)


@pytest.mark.parametrize("table", KEYS)
def test_skewed_keys_are_divided_evenly(any_server: Server, fresh_database: FreshDatabase, table: str) -> None:
    if table in MARIADB_ALONE and any_server.flavour != "mariadb":
        pytest.skip("a type of MariaDB")
    database = fresh_database(any_server)
    version = filled(any_server, database, table, ROWS)
    asked: list[str] = []
    with WorkerConnection(info_of(any_server)) as connection:

        def ask(sql: str) -> Sequence[Sequence[Any]]:
            asked.append(sql)
            return connection.ask(sql)

        spans = divide(version, ask, 4, 500)
        place = f"`{database}`.`{table}`"
        conditions = [span_condition(version.key_names, span) or "1" for span in spans]
        counts = [connection.ask(f"SELECT COUNT(*) FROM {place} WHERE {one}")[0][0] for one in conditions]
        looked_at = [_rows_looked_at(connection, version, span) for span in spans]
    of_one_set = ROWS // 16 if table == "sets" else 0  # of its values in an order a server may find only whole ones
    assert max(looked_at) <= LIMIT + of_one_set + 27, "rows that were read before aren't read again"
    assert sum(counts) == ROWS
    assert [span.upto for span in spans[:-1]] == [span.after for span in spans[1:]]
    assert len(counts) >= 4
    assert max(counts) < ROWS * 0.4, counts
    of_the_table = [sql for sql in asked if place in sql]
    assert all(sql.startswith("EXPLAIN") or sql.endswith("LIMIT 1") for sql in of_the_table), "no scan"
    assert len(asked) < 2500


def test_a_set_of_more_members_than_a_double_has_digits_for_is_divided(
    any_server: Server, fresh_database: FreshDatabase
) -> None:
    database = fresh_database(any_server)
    members = ", ".join(f"'m{n}'" for n in range(64))
    any_server.query(f"CREATE TABLE {database}.s (k SET({members}), n INT, PRIMARY KEY (k, n))")
    rows = ", ".join(f"({1 << n % 64}, {n})" for n in range(900))
    any_server.query(f"INSERT INTO {database}.s VALUES {rows}")
    any_server.query(f"ANALYZE TABLE {database}.s")
    version = _version(any_server, database, "s")
    with WorkerConnection(info_of(any_server)) as connection:
        conditions = [span_condition(version.key_names, one) for one in divide(version, connection.ask, 4, 100)]
        counts = [
            connection.ask(f"SELECT COUNT(*) FROM {database}.s WHERE {condition}")[0][0] for condition in conditions
        ]
    assert sum(counts) == 900
    assert len(counts) >= 4


def _rows_looked_at(connection: WorkerConnection, version: TableVersion, span: Span) -> int:
    """By the statement of a span's first rows, and by the one that goes on from there."""
    reader = ChunkReader(connection.raw, connection.info, version)
    looked_at = 0
    for _ in range(2):
        before = _rows_read(connection)
        stream = ResultStream(connection.raw, connection.info, reader.plan)
        if not sum(batch.num_rows for batch in stream.batches(reader.statement(span, LIMIT))):
            break
        looked_at = max(looked_at, _rows_read(connection) - before)
        span = Span(stream.last_key, span.upto)
    return looked_at


def _rows_read(connection: WorkerConnection) -> int:
    """By this session so far, of tables and their indexes."""
    found = connection.ask("SHOW SESSION STATUS LIKE 'Handler_read%'")
    return sum(int(count) for name, count in found if "rnd" not in name)


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
