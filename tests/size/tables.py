"""Tables that a database holds before anybody follows its log: a large one, a large one without a key, many small ones.

In:  a server, how many rows and tables.
Out: the tables, made on the server's side and logged nowhere.

The large table's key is skewed: 95% of its rows lie in a small part of what its numbers span.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from tidegate.local.server import Server

DATABASE: Final = "size"
BIG, BAG = "big", "bag"
# Rows whose number ends so are nobody's but the planter's: no session writes to them.
RESERVED: Final = 7
_EVERY: Final = 100
_HELPER: Final = "size_numbers"
_AT_ONCE: Final = 100_000
_DENSE: Final = 0.95
_GAP: Final = 100_000
_BIG: Final = """CREATE TABLE big (
  id BIGINT NOT NULL PRIMARY KEY, n INT UNSIGNED NOT NULL, price DECIMAL(12,2), ratio DOUBLE, name VARCHAR(60),
  at DATETIME(6), day DATE, seen TIMESTAMP(3) NULL, kind ENUM('new', 'open', 'done'), raw VARBINARY(24), doc JSON,
  took TIME)"""
_BIG_ROW: Final = (
    "{id}, CRC32({n}), IF({n} % 17 = 0, NULL, ({n} % 1000003) / 100), {n} / 8,"
    " CONCAT(IF({n} % 11 = 0, 'ä€😀', 'row '), {n}, ' ', LEFT(SHA2({n}, 224), 20)),"
    " TIMESTAMPADD(MICROSECOND, {n} * 1000003, '2001-01-01'), DATE_ADD('1990-01-01', INTERVAL {n} % 12000 DAY),"
    " TIMESTAMPADD(MICROSECOND, {n} * 1000, '2011-01-01'), ELT(1 + {n} % 3, 'new', 'open', 'done'),"
    " UNHEX(LEFT(SHA2({n}, 224), 24)), CONCAT('{{\"n\": ', {n}, ', \"s\": \"', LEFT(SHA2({n}, 224), 6), '\"}}'),"
    " SEC_TO_TIME({n} % 80000)"
)
_BAG: Final = "CREATE TABLE bag (a INT, b VARCHAR(40), v DECIMAL(18,4), at DATETIME, KEY (a))"
_BAG_ROW: Final = "{n} DIV 3, CONCAT('same ', {n} DIV 3), ({n} DIV 3) / 7, '2020-02-02 02:02:02'"
_SMALL: Final = "(id INT PRIMARY KEY AUTO_INCREMENT, a VARCHAR(80), b INT, at DATETIME(6))"
_SMALL_ROWS: Final = 400
_BIG_ROW_BYTES: Final = 200
_BAG_ROW_BYTES: Final = 60


@dataclass(frozen=True, slots=True)
class Size:
    """Rows of the large table, rows of the one without a key, how many small tables."""

    rows: int
    bag: int
    small: int

    @property
    def dense(self) -> int:
        """So many rows lie one beside the other; the others far apart."""
        return int(self.rows * _DENSE)

    @property
    def read_bytes(self) -> int:
        """About what a snapshot of the two large tables reads."""
        return self.rows * _BIG_ROW_BYTES + self.bag * _BAG_ROW_BYTES

    def id_of(self, n: int) -> int:
        """The key of the large table's row number n."""
        return n if n <= self.dense else self.dense + (n - self.dense) * _GAP

    def drawn(self, rng: random.Random) -> int:
        """A key that a session may write to; it may be gone."""
        n = rng.randint(1, self.rows)
        return self.id_of(n if n % _EVERY != RESERVED else n - 1)

    def between(self, rng: random.Random) -> int:
        """A key that no row had in the beginning."""
        return self.id_of(rng.randint(self.dense + 1, self.rows)) + rng.randint(1, _GAP - 1)

    def reserved(self, rng: random.Random, count: int) -> list[int]:
        """So many keys that no session writes to."""
        return [self.id_of(at * _EVERY + RESERVED) for at in rng.sample(range(self.rows // _EVERY), count)]


def small_names(count: int) -> list[str]:
    return [f"small_{number:03d}" for number in range(1, count + 1)]


def fill(server: Server, size: Size) -> None:
    """Make all of it."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0, time_zone = '+00:00'")
        for statement in _statements(size):
            cursor.execute(statement)


def _statements(size: Size) -> Iterator[str]:
    yield f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4"
    yield f"CREATE DATABASE {_HELPER}"
    yield f"CREATE TABLE {_HELPER}.n (i INT PRIMARY KEY)"
    yield f"INSERT INTO {_HELPER}.n VALUES (1)"
    have = 1
    while have < _AT_ONCE:
        yield f"INSERT INTO {_HELPER}.n SELECT i + {have} FROM {_HELPER}.n WHERE i + {have} <= {_AT_ONCE}"
        have *= 2
    yield f"USE {DATABASE}"
    yield _BIG
    for where, n in _parts(size.rows):
        key = f"IF({n} <= {size.dense}, {n}, {size.dense} + ({n} - {size.dense}) * {_GAP})"
        yield f"INSERT INTO big SELECT {_BIG_ROW.format(id=key, n=n)} FROM {_HELPER}.n {where}"
    yield _BAG
    for where, n in _parts(size.bag):
        yield f"INSERT INTO bag SELECT {_BAG_ROW.format(n=n)} FROM {_HELPER}.n {where}"
    for number, name in enumerate(small_names(size.small)):
        yield f"CREATE TABLE {name} {_SMALL}"
        yield (
            f"INSERT INTO {name} (a, b, at) SELECT CONCAT('text ', i, ' of {name}'), i * 7,"
            f" '2021-03-04 05:06:07.000089' FROM {_HELPER}.n WHERE i <= {number * 37 % _SMALL_ROWS} ORDER BY i"
        )
    yield f"DROP DATABASE {_HELPER}"


def _parts(count: int) -> Iterator[tuple[str, str]]:
    """What is inserted at once: a condition on the helper's numbers, and the row's own number in SQL."""
    for first in range(0, count, _AT_ONCE):
        yield f"WHERE i <= {min(_AT_ONCE, count - first)} ORDER BY i", f"({first} + i)"


def names_at(server: Server) -> list[str]:
    """The tables that the source has now."""
    return [str(name) for (name,) in server.query("SHOW TABLES", database=DATABASE)]


def columns_of(server: Server, table: str) -> list[tuple[str, str]]:
    """(name, data type) of each column."""
    rows: list[tuple[Any, ...]] = server.query(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = %s AND table_name = %s"
        " ORDER BY ordinal_position",
        (DATABASE, table),
    )
    return [(str(name), str(kind).lower()) for name, kind in rows]
