"""Random schemas of foreign keys, and changes of their rows: chains, rings, several ways, keys in any case.

In:  a server, databases, a seed.
Out: statements run; what a server refuses is left out.
"""

from __future__ import annotations

import random
from typing import Final

import pymysql

from tidegate.local.server import Server

_ACTIONS: Final = ("CASCADE", "CASCADE", "SET NULL", "RESTRICT")
_CODES: Final = ("a", "B", "b", "Cc", "cC", "d ", "E", "x-1", "X-1")


class ForeignKeyWorkload:
    """Of one database. done: the statements that the server took. elsewhere: a database whose tables may be parents."""

    def __init__(self, server: Server, database: str, seed: int, elsewhere: str = "") -> None:
        self._server, self._database, self._elsewhere = server, database, elsewhere
        self._draw = random.Random(seed)
        self._tables = [f"t{number}" for number in range(self._draw.randint(3, 5))]
        self.done: list[str] = []

    def create(self) -> None:
        for number, table in enumerate(self._tables):
            self._run(self._created(table, self._tables[: number + 1]))
        self.round(40)

    def round(self, statements: int = 25) -> None:
        """Changes of rows, in transactions of several, some of sessions that don't check foreign keys."""
        with self._server.connect(self._database) as connection, connection.cursor() as cursor:
            for _ in range(statements):
                unchecked = self._draw.random() < 0.08
                if unchecked:
                    cursor.execute("SET foreign_key_checks = 0")
                sql = self._change()
                try:
                    cursor.execute(sql)
                    self.done.append(f"{'/* unchecked */ ' if unchecked else ''}{sql}")
                except pymysql.Error:
                    pass
                if unchecked:
                    cursor.execute("SET foreign_key_checks = 1")
                if self._draw.random() < 0.4:
                    getattr(connection, self._draw.choice(["commit", "commit", "commit", "rollback"]))()
            connection.commit()
        if self._draw.random() < 0.3:
            self._run(self._ddl())

    def _run(self, sql: str) -> None:
        try:
            self._server.query(sql, database=self._database)
            self.done.append(sql)
        except pymysql.Error:
            pass

    def _created(self, table: str, parents: list[str]) -> str:
        draw, collation = self._draw, self._draw.choice(["utf8mb4_general_ci", "utf8mb4_bin"])
        keys = [self._key(parents, columns) for columns in ("a", "b", "code", "a, b") if draw.random() < 0.55]
        return (
            f"CREATE TABLE {table} (id INT PRIMARY KEY, a INT, b INT, code VARCHAR(8) COLLATE {collation},"
            f" v VARCHAR(20), UNIQUE KEY (code), UNIQUE KEY ab (id, b){''.join(keys)})"
        )

    def _key(self, parents: list[str], columns: str) -> str:
        draw = self._draw
        parent, referred = draw.choice(parents), {"code": "code", "a, b": "id, b"}.get(columns, "id")
        if self._elsewhere and draw.random() < 0.3:
            parent = f"{self._elsewhere}.t0"
        on_delete, on_update = draw.choice(_ACTIONS), draw.choice(_ACTIONS)
        return f", FOREIGN KEY ({columns}) REFERENCES {parent} ({referred}) ON DELETE {on_delete} ON UPDATE {on_update}"

    def _ddl(self) -> str:
        table = self._draw.choice(self._tables)
        number = self._draw.randint(1, 99)
        return self._draw.choice(
            [
                f"ALTER TABLE {table} ADD x{number} INT DEFAULT {number}",
                f"ALTER TABLE {table} DROP FOREIGN KEY {table}_ibfk_1",
                f"ALTER TABLE {table} ADD{self._key(self._tables, 'a')[1:]}",
                f"ALTER TABLE {table} CHANGE v v{number} VARCHAR(20)",
            ]
        )

    def _change(self) -> str:
        draw, table = self._draw, self._draw.choice(self._tables)
        value = {
            "id": lambda: str(draw.randint(1, 30)),
            "a": lambda: draw.choice([*map(str, range(1, 31)), "NULL"]),
            "b": lambda: draw.choice(["1", "2", "NULL"]),
            "code": lambda: draw.choice([*(f"'{code}'" for code in _CODES), "NULL"]),
        }
        kind = draw.random()
        if kind < 0.5:
            verb = "REPLACE" if draw.random() < 0.1 else "INSERT IGNORE"
            return f"{verb} INTO {table} (id, a, b, code) VALUES ({', '.join(of() for of in value.values())})"
        if kind < 0.75:
            column = draw.choice(list(value))
            return f"UPDATE {table} SET {column} = {value[column]()} WHERE id = {draw.randint(1, 30)}"
        return f"DELETE FROM {table} WHERE id {draw.choice(['=', '=', '>'])} {draw.randint(1, 30)}"
