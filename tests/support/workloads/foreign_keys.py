"""Random schemas of foreign keys, and changes of their rows: chains, rings, several ways, keys in any case.

In:  a server, databases, a seed.
Out: statements run, in sessions that overlap, some of them prepared and answered later; what a server refuses is left
     out. What a table's name begins with says how a pipeline file should treat it (KINDS).
"""

from __future__ import annotations

import random
from typing import Any, Final

import pymysql

from tests.support.workloads.foreign_key_tables import KINDS, Drawn, TableDrawn
from tidegate.local.server import Server

_CODES: Final = ("a", "B", "b", "Cc", "cC", "d ", "E", "x-1", "X-1", "")
_IDS: Final = 30
# MySQL waits a second at least where MariaDB needn't wait: fewer of its sessions overlap.
_SETTINGS: Final = {
    "mariadb": "SET SESSION innodb_lock_wait_timeout = 0, lock_wait_timeout = 0",
    "mysql": "SET SESSION innodb_lock_wait_timeout = 1, lock_wait_timeout = 1",
}


class ForeignKeyWorkload:
    """Of one database. done: the statements that the server took. elsewhere: a database whose tables may be parents."""

    def __init__(self, server: Server, database: str, seed: int, elsewhere: str = "") -> None:
        self._server, self._database = server, database
        self._draw = random.Random(seed)
        self._schema = Drawn(self._draw, server.flavour, elsewhere)
        self._codes = (*_CODES, "é") if self._draw.random() < 0.05 else _CODES
        self._overlaps = self._draw.random() < (0.5 if server.flavour == "mariadb" else 0.08)
        self._prepared: list[str] = []
        self._xids = 0
        self.done: list[str] = []

    def create(self) -> None:
        with self._session() as cursor:
            for sql in self._schema.creates():
                self._run(cursor, sql)
        self.round(50)

    def round(self, statements: int = 25, *, ddl: bool = True) -> None:
        """Changes of rows, in transactions of several, some of sessions that don't check foreign keys."""
        self.answer()
        with self._session() as one, self._session() as other:
            for cursor in (one, other):
                cursor.connection.autocommit(False)
            for number in range(statements):
                cursor = other if self._overlaps and self._draw.random() < 0.3 else one
                self._in_session(cursor)
                if self._draw.random() < 0.4:
                    self._end(cursor)
                if self._draw.random() < 0.03:
                    self._end(one), self._end(other)
                    self._branch(lingers=self._server.flavour == "mariadb" or number == statements - 1)
            for cursor in (one, other):
                cursor.connection.commit()
        if ddl and self._draw.random() < 0.35:
            with self._session() as cursor:
                self._ddl(cursor)
        if self._draw.random() < 0.1:
            self._branch(lingers=True)

    def answer(self) -> None:
        """What was prepared is committed, or rolled back."""
        with self._session() as cursor:
            for xid in self._prepared:
                self._run(cursor, f"XA {self._draw.choice(['COMMIT', 'COMMIT', 'ROLLBACK'])} '{xid}'")
        self._prepared = []

    def _session(self) -> Any:
        connection = self._server.connect(self._database)
        cursor = connection.cursor()
        cursor.execute(_SETTINGS[self._server.flavour])
        if self._server.flavour == "mysql":
            cursor.execute("SET SESSION restrict_fk_on_non_standard_key = OFF")
        return _Session(connection, cursor)

    def _run(self, cursor: Any, sql: str, note: str = "") -> bool:
        try:
            cursor.execute(sql)
        except pymysql.Error:
            return False
        self.done.append(f"{note}{sql}")
        return True

    def _in_session(self, cursor: Any) -> None:
        unchecked = self._draw.random() < 0.06
        if unchecked:
            cursor.execute("SET foreign_key_checks = 0")
        self._run(cursor, self._change(), "/* unchecked */ " if unchecked else "")
        if unchecked:
            cursor.execute("SET foreign_key_checks = 1")

    def _end(self, cursor: Any) -> None:
        word = self._draw.choice(["commit", "commit", "commit", "rollback"])
        getattr(cursor.connection, word)()
        self.done.append(word)

    def _branch(self, *, lingers: bool) -> None:
        """An XA transaction, which may be answered in a later round."""
        statements = [self._change() for _ in range(self._draw.randint(1, 3))]
        answer = self._draw.choice(["COMMIT", "COMMIT", "ROLLBACK", "", ""]) if lingers else "COMMIT"
        self._xids += 1
        xid = f"{self._database}-{self._xids}"
        with self._session() as cursor:
            self._run(cursor, f"XA START '{xid}'")
            for sql in statements:
                self._run(cursor, sql)
            if not (self._run(cursor, f"XA END '{xid}'") and self._run(cursor, f"XA PREPARE '{xid}'")):
                return
            if answer:
                self._run(cursor, f"XA {answer} '{xid}'")
            else:
                self._prepared.append(xid)

    def _ddl(self, cursor: Any) -> None:
        unchecked, statements, took = self._schema.ddl()
        if unchecked:
            cursor.execute("SET foreign_key_checks = 0")
        if all(self._run(cursor, sql, "/* unchecked */ " if unchecked else "") for sql in statements):
            took()

    def _number(self) -> str:
        return str(self._draw.randint(1, _IDS))

    def _values(self, table: TableDrawn) -> dict[str, str]:
        draw = self._draw
        code = draw.choice([*(f"'{code}'" for code in self._codes), *([] if table.code_needed else ["NULL"])])
        return {
            table.id: self._number(),
            table.a: draw.choice([self._number(), self._number(), "1" if table.a_needed else "NULL"]),
            "b": draw.choice(["1", "2", "NULL"]),
            table.code: code,
        }

    def _change(self) -> str:
        draw, table = self._draw, self._draw.choice(self._schema.tables)
        values, number = self._values(table), self._number()
        kind = draw.random()
        names = ", ".join(values)
        if kind < 0.42:
            rows = ", ".join(f"({', '.join(self._values(table).values())})" for _ in range(draw.randint(1, 3)))
            return f"INSERT IGNORE INTO {table.name} ({names}) VALUES {rows}"
        if kind < 0.48:
            return f"REPLACE INTO {table.name} ({names}) VALUES ({', '.join(values.values())})"
        column = draw.choice(list(values))
        if kind < 0.53:
            return (
                f"INSERT INTO {table.name} ({names}) VALUES ({', '.join(values.values())})"
                f" ON DUPLICATE KEY UPDATE {column} = {self._values(table)[column]}"
            )
        if kind < 0.70:
            return f"UPDATE {table.name} SET {column} = {values[column]} WHERE {table.id} = {number}"
        if kind < 0.74:
            away = draw.choice([1, 40, 100])
            return (
                f"UPDATE {table.name} SET {table.id} = {table.id} + {away} WHERE {table.id} > {number}"
                f" ORDER BY {table.id} DESC LIMIT {draw.randint(1, 5)}"
            )
        if kind < 0.78:
            word = draw.choice(["UPPER", "LOWER", "CONCAT"])
            return f"UPDATE IGNORE {table.name} SET {table.code} = {word}({table.code}) WHERE {table.id} < {number}"
        if kind < 0.81:
            other = draw.choice(self._schema.tables)
            return (
                f"DELETE x, y FROM {table.name} x JOIN {other.name} y ON y.{other.a} = x.{table.id}"
                f" WHERE x.{table.id} < {number}"
            )
        return f"DELETE FROM {table.name} WHERE {table.id} {draw.choice(['=', '=', '=', '>'])} {number}"


class _Session:
    """A connection for a while; leaving rolls back what it has open."""

    def __init__(self, connection: Any, cursor: Any) -> None:
        self._connection, self._cursor = connection, cursor

    def __enter__(self) -> Any:
        return self._cursor

    def __exit__(self, *_: object) -> None:
        self._connection.close()


__all__ = ["KINDS", "ForeignKeyWorkload"]
