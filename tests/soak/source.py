"""The busy source: sessions that commit transactions, each with a counter of its own in the same transaction.

In:  a server, a seed.
Out: changes of every kind to four tables, and `soak.txns`: one row (session, n) per committed transaction. What is in
     that table is what was committed, whatever a session heard of its COMMIT when its server died.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any, Final

import pymysql

from tests.soak.plan import TABLES
from tests.support.sessions import MET, Writing
from tidegate.local.server import Server

DATABASE: Final = "soak"
BURST_SESSION: Final = 99
_ROWS_KEPT: Final = 400
_SCHEMA: Final = {
    "txns": "CREATE TABLE txns (session INT NOT NULL, n BIGINT NOT NULL, PRIMARY KEY (session, n))",
    "keyed": "CREATE TABLE keyed (id INT PRIMARY KEY, a VARCHAR(300), b INT, at DATETIME(6))",
    "pairs": "CREATE TABLE pairs (k VARCHAR(20) NOT NULL, n INT NOT NULL, v DECIMAL(18,4), PRIMARY KEY (k, n))",
    "bag": "CREATE TABLE bag (a INT, b VARCHAR(40))",
    "notes": "CREATE TABLE notes (id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, t MEDIUMTEXT)",
}


class Sessions(Writing):
    """About per_second transactions in all."""

    def __init__(self, server: Server, seed: int, *, count: int = 3, per_second: float = 120.0) -> None:
        super().__init__(server, DATABASE, seed, count, count / per_second)
        self.columns: dict[str, list[str]] = {table: [] for table in TABLES}  # added since the start
        self.told: set[tuple[int, int]] = set()  # what a session was told is committed
        self._burst = 0

    def create(self) -> None:
        self.server.query(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
        for statement in _SCHEMA.values():
            self.server.query(statement, database=DATABASE)

    def burst(self, mebibytes: int) -> None:
        """Large transactions, one per half MiB, so that capture's queue fills while the lake stands still."""
        with self.server.connect(DATABASE) as connection, connection.cursor() as cursor:
            for _ in range(2 * mebibytes):
                self._burst += 1
                self._large(cursor)

    def _large(self, cursor: Any) -> None:
        try:
            cursor.execute("BEGIN")
            cursor.execute("INSERT INTO notes (t) VALUES (REPEAT(%s, 16384))", (f"{self._burst:032d}",))
            cursor.execute("DELETE FROM notes WHERE LENGTH(t) > 100000 AND id + 4 < LAST_INSERT_ID()")
            cursor.execute("INSERT INTO txns VALUES (%s, %s)", (BURST_SESSION, self._burst))
            cursor.execute("COMMIT")
        except pymysql.err.MySQLError as error:
            if error.args[0] not in MET:
                raise
            cursor.execute("ROLLBACK")

    def add_column(self, table: str) -> None:
        name = next(f"c{n}" for n in itertools.count(1) if f"c{n}" not in self.columns[table])
        self.server.query(f"ALTER TABLE {table} ADD COLUMN {name} INT NULL DEFAULT 7", database=DATABASE)
        self.columns[table].append(name)

    def drop_column(self, table: str) -> bool:
        """The oldest that was added; False when there is none."""
        if not self.columns[table]:
            return False
        self.server.query(f"ALTER TABLE {table} DROP COLUMN {self.columns[table].pop(0)}", database=DATABASE)
        return True

    def recreate(self, table: str) -> None:
        """Another table of that name."""
        self.server.query(f"DROP TABLE {table}", database=DATABASE)
        self.server.query(_SCHEMA[table], database=DATABASE)
        self.columns[table].clear()

    # --- a session ----------------------------------------------------------------------------------------

    def transaction(self, cursor: Any, rng: random.Random, session: int, turn: int) -> None:
        for _ in range(rng.randint(1, 3)):
            self.change(cursor, rng)
        cursor.execute("INSERT INTO txns VALUES (%s, %s)", (session, turn))
        if rng.random() < 0.03:
            cursor.execute("ROLLBACK")
            return
        cursor.execute("COMMIT")
        self.told.add((session, turn))

    def change(self, cursor: Any, rng: random.Random) -> None:
        """One of those of which a transaction has some."""
        kind = rng.choice(("keyed", "keyed", "pairs", "bag", "notes"))
        CHANGES[kind](cursor, rng, kind, self.columns[kind])


def _added(rng: random.Random, columns: list[str]) -> str:
    columns = list(columns)  # others add and drop them
    return "" if not columns or rng.random() < 0.5 else f", {rng.choice(columns)} = {rng.randint(0, 99)}"


def _keyed(cursor: Any, rng: random.Random, table: str, columns: list[str]) -> None:
    """Inserts, updates, deletes and changes of an integer key."""
    id_, kind = rng.randrange(_ROWS_KEPT), rng.random()
    if kind < 0.45:
        text = rng.choice(["ä€😀", "x" * 200, "", "it's"])
        cursor.execute(
            f"REPLACE INTO {table} (id, a, b, at) VALUES (%s, %s, %s, NOW(6))", (id_, text, rng.randrange(1000))
        )
    elif kind < 0.75:
        cursor.execute(f"UPDATE {table} SET b = b + 1{_added(rng, columns)} WHERE id = %s", (id_,))
    elif kind < 0.9:
        cursor.execute(f"UPDATE {table} SET id = %s WHERE id = %s", (rng.randrange(_ROWS_KEPT), id_))
    else:
        cursor.execute(f"DELETE FROM {table} WHERE id = %s", (id_,))


def _pairs(cursor: Any, rng: random.Random, table: str, columns: list[str]) -> None:
    """The same on a key of two columns, several rows at a time."""
    name, kind = f"k{rng.randrange(30)}", rng.random()
    if kind < 0.5:
        rows = [(name, rng.randrange(20), f"{rng.uniform(-1e9, 1e9):.4f}") for _ in range(4)]
        cursor.executemany(f"INSERT IGNORE INTO {table} (k, n, v) VALUES (%s, %s, %s)", rows)
    elif kind < 0.8:
        cursor.execute(f"UPDATE {table} SET v = v * -1{_added(rng, columns)} WHERE k = %s", (name,))
    elif kind < 0.9:
        cursor.execute(f"UPDATE {table} SET n = n + 20 WHERE k = %s ORDER BY n DESC LIMIT 2", (name,))
    else:
        cursor.execute(f"DELETE FROM {table} WHERE k = %s AND (n > 60 OR n < %s)", (name, rng.randrange(10)))


def _bag(cursor: Any, rng: random.Random, table: str, columns: list[str]) -> None:
    """A table without a key, with rows that are equal."""
    value, kind = rng.randrange(20), rng.random()
    if kind < 0.5:
        cursor.execute(f"INSERT INTO {table} (a, b) VALUES (%s, 'same'), (%s, 'same')", (value, value))
    elif kind < 0.6:
        cursor.execute(f"UPDATE {table} SET b = 'other'{_added(rng, columns)} WHERE a = %s LIMIT 2", (value,))
    else:
        cursor.execute(f"DELETE FROM {table} WHERE a = %s LIMIT 3", (value,))


def _notes(cursor: Any, rng: random.Random, table: str, columns: list[str]) -> None:
    """Texts of some kB, of which the oldest go."""
    if rng.random() < 0.6:
        cursor.execute(
            f"INSERT INTO {table} (t) VALUES (REPEAT(%s, %s))", (rng.choice(["text ", "Ж"]), rng.randrange(800))
        )
    else:
        cursor.execute(f"DELETE FROM {table} ORDER BY id LIMIT 2")


# By the kind of a table's rows: a cursor, chance, the table, the columns that were added to it.
CHANGES: Final[dict[str, Callable[[Any, random.Random, str, list[str]], None]]] = {
    "keyed": _keyed,
    "pairs": _pairs,
    "bag": _bag,
    "notes": _notes,
}
