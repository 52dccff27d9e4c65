"""People at the source of tables in several modes: rows, transactions, and DDL that the reader of the log knows.

In:  a server, a seeded random.Random, the tables, a file in which accepted statements are written down.
Out: People: begin(), work(), end(), as those of a hostile run. One thread sends all statements in turn.

What is added is a number under an odd name, and a text under an even one, so that a name has one kind of values.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pymysql

from tests.soak.modes.pasts import PARTITION_ROWS, PARTITIONS
from tests.soak.modes.tables import COLUMNS, SCHEMAS, Table
from tests.soak.source import CHANGES, DATABASE
from tidegate.local.server import Server

_ADDED: Final = ("c1", "c2", "c3", "c4", "m1", "m2", "p1", "p2")
_TYPES: Final = (("VARCHAR(20)", "VARCHAR(60)", "TEXT"), ("INT", "BIGINT", "VARCHAR(30)"))
_DEFAULTS: Final = ("'x'", "7")
_OWN: Final = {
    "keyed": {"a": ("VARCHAR(300)", "VARCHAR(400)"), "b": ("INT", "BIGINT"), "id": ("INT NOT NULL", "BIGINT NOT NULL")},
    "pairs": {"v": ("DECIMAL(18,4)", "DECIMAL(22,4)"), "n": ("INT NOT NULL", "BIGINT NOT NULL")},
    "notes": {"t": ("MEDIUMTEXT", "LONGTEXT")},
    "bag": {"a": ("INT", "BIGINT"), "b": ("VARCHAR(40)", "VARCHAR(80)")},
}
_UNLIKE: Final = 0.05
# Without unique_checks and foreign_key_checks MariaDB logs an INSERT IGNORE into an empty table that it then undoes.
_VARIABLES: Final = (
    *("time_zone = '+13:00'", "time_zone = '-11:30'", "sql_mode = ''", "sql_mode = 'NO_BACKSLASH_ESCAPES'"),
    *("sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE'", "lc_time_names = 'de_DE'"),
)


class Person:
    """One session. branch: the XA transaction that it has begun."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.begin_again()

    def begin_again(self) -> None:
        self.branch, self.prepared = "", False
        self.connection = self._server.connect(DATABASE)
        self.connection.autocommit(True)
        seconds = int(self._server.flavour == "mysql")
        with self.connection.cursor() as cursor:
            for name in ("lock_wait_timeout", "innodb_lock_wait_timeout"):
                cursor.execute(f"SET SESSION {name} = {seconds}")


class People:
    """accepted: statements so far."""

    def __init__(
        self,
        server: Server,
        rng: random.Random,
        folder: Path,
        tables: Sequence[Table],
        are_alike: Callable[[str, str], bool],
    ) -> None:
        """are_alike: whether two tables may mostly change names: where their rules differ, both wait."""
        self._server, self._rng, self._tables, self._are_alike = server, rng, tables, are_alike
        self._book = folder / "statements.sql"
        self.accepted = self._branches = 0
        if server.flavour == "mysql":
            server.query(f"GRANT XA_RECOVER_ADMIN ON *.* TO '{server.user}'@'%'")
        server.query(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
        self._people = [Person(server) for _ in range(3)]
        self._columns: dict[str, list[str]] = {}
        self._types: dict[tuple[str, str], str] = {}  # also of tables that are gone

    def note(self, line: str) -> None:
        with self._book.open("a") as book:
            book.write(f"-- {line}\n")

    def begin(self, names: Sequence[str], turns: int) -> None:
        """So many turns over new tables."""
        for table in self._tables:
            if table.name in names:
                self._send(self._people[0], f"CREATE TABLE {table.name} {SCHEMAS[table.kind]}")
        self._look()
        for _ in range(turns):
            self._change(self._people[0])

    def work(self, count: int) -> None:
        for _ in range(count):
            self._turn(self._rng.choice(self._people))

    def end(self) -> None:
        """Every transaction is answered."""
        for person in self._people:
            while person.branch:
                self._answer(person)
            self._send(person, "COMMIT")
        self._answer_prepared()

    def crashed(self) -> None:
        for person in self._people:
            with contextlib.suppress(pymysql.err.Error):
                person.connection.close()
            person.begin_again()
        self._answer_prepared()

    def _answer_prepared(self) -> None:
        for _, _, _, branch in self._server.query("XA RECOVER"):
            name = branch.decode() if isinstance(branch, bytes) else branch
            self._send(self._people[0], f"XA {self._rng.choice(['COMMIT', 'ROLLBACK'])} '{name}'")

    # --- a turn -------------------------------------------------------------------------------------------

    def _turn(self, person: Person) -> None:
        rng = self._rng
        kind = rng.random()
        if person.branch:
            if person.prepared or kind < 0.4:
                self._answer(person)
            else:
                self._change(person)
        elif kind < 0.07:
            for statement in self._ddl():
                self._send(person, statement)
            self._look()
        elif kind < 0.1:
            self._send(person, f"SET SESSION {rng.choice(_VARIABLES)}")
        elif kind < 0.25:
            self._send(person, self._transaction(person))
        else:
            self._change(person)

    def _transaction(self, person: Person) -> str:
        if self._rng.random() < 0.2:
            self._branches += 1
            person.branch = f"b{self._branches}"
            return f"XA START '{person.branch}'"
        words = ["BEGIN", "BEGIN", "COMMIT", "COMMIT", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO SAVEPOINT s"]
        return self._rng.choice(words)

    def _answer(self, person: Person) -> None:
        branch = f"'{person.branch}'"
        if not person.prepared:
            self._send(person, f"XA END {branch}")
            person.prepared = self._rng.random() < 0.7 and self._send(person, f"XA PREPARE {branch}")
            if not person.prepared:
                how = self._rng.choice(["ROLLBACK {}", "COMMIT {} ONE PHASE"]).format(branch)
                if not self._send(person, f"XA {how}"):
                    self._send(person, f"XA ROLLBACK {branch}")
                person.branch = ""
            return
        self._send(person, f"XA {self._rng.choice(['COMMIT', 'COMMIT', 'ROLLBACK'])} {branch}")
        person.branch, person.prepared = "", False

    def _change(self, person: Person) -> None:
        here = [table for table in self._tables if table.name in self._columns]
        if here:
            table = self._rng.choice(here)
            self._try(person, lambda cursor: CHANGES[table.kind](cursor, self._rng, table.name, self._added(table)))

    def _added(self, table: Table) -> list[str]:
        return [name for name in self._columns[table.name] if name not in COLUMNS[table.kind]]

    def _look(self) -> None:
        names = "table_name, column_name, column_type FROM information_schema.columns"
        self._columns.clear()
        with self._server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT {names} WHERE table_schema = %s ORDER BY 1, ordinal_position", (DATABASE,))
            for table, column, kind in cursor.fetchall():
                self._columns.setdefault(str(table), []).append(str(column))
                self._types[table, column] = kind if isinstance(kind, str) else kind.decode()

    def _send(self, person: Person, statement: str) -> bool:
        return self._try(person, lambda cursor: cursor.execute(statement))

    def _try(self, person: Person, do: Callable[[Any], Any]) -> bool:
        with person.connection.cursor() as cursor:
            try:
                do(cursor)
                said = ""
            except pymysql.err.MySQLError as error:
                said = f" refused: {error.args[0]}"
            self.accepted += not said
            with self._book.open("a") as book:
                book.write(f"/* {self._people.index(person)}{said} */ {_text(cursor._executed)[:500]};\n")
        return not said

    # --- DDL ----------------------------------------------------------------------------------------------

    def _ddl(self) -> list[str]:
        """Some that belong together, in order."""
        rng, table = self._rng, self._rng.choice(self._tables)
        if table.name not in self._columns:
            return [self._create(table)]
        if rng.random() < 0.55:
            actions = [self._action(table) for _ in range(rng.choice([1, 1, 1, 2]))]
            return [f"ALTER TABLE {table.name} {', '.join(actions)}"]
        kinds: dict[Callable[[Table], list[str]], int] = {
            self._empties: 3,
            self._made_again: 2,
            self._renames: 5,
            self._partitions: 3 if table.kind == "keyed" else 0,
        }
        return rng.choices(list(kinds), list(kinds.values()))[0](table)

    def _create(self, table: Table) -> str:
        """Mostly with the types that its columns had last: a past of other types makes it wait."""
        schema = SCHEMAS[table.kind]
        if self._rng.random() < 0.9:
            for column, (first, *_) in _OWN[table.kind].items():
                plain = first.removesuffix(" NOT NULL")
                schema = schema.replace(f"{column} {plain}", f"{column} {self._types.get((table.name, column), plain)}")
        return f"CREATE TABLE {table.name} {schema}"

    def _empties(self, table: Table) -> list[str]:
        return [self._rng.choice(["TRUNCATE TABLE ", "DELETE FROM ", "DROP TABLE "]) + table.name]

    def _made_again(self, table: Table) -> list[str]:
        return [f"DROP TABLE {table.name}", self._create(table)]

    def _renames(self, table: Table) -> list[str]:
        """To a name that is free, there and back, or in a swap of names."""
        alike = [other.name for other in self._tables if other.kind == table.kind and other is not table]
        if self._rng.random() > _UNLIKE:
            alike = [name for name in alike if self._are_alike(table.name, name)]
        free = [name for name in alike if name not in self._columns]
        taken = [name for name in alike if name in self._columns]
        name, kind = table.name, self._rng.random()
        if free and kind < 0.6:
            to = self._rng.choice(free)
            return [f"RENAME TABLE {name} TO {to}", *([f"RENAME TABLE {to} TO {name}"] if kind < 0.2 else [])]
        if taken:
            other = self._rng.choice(taken)
            return [f"RENAME TABLE {name} TO swapped, {other} TO {name}, swapped TO {other}"]
        return []

    def _partitions(self, table: Table) -> list[str]:
        name, last = table.name, PARTITIONS - 1
        ranges = [f"PARTITION p{n} VALUES LESS THAN ({(n + 1) * PARTITION_ROWS})" for n in range(last)]
        whole = f"PARTITION p{last} VALUES LESS THAN MAXVALUE"
        return self._rng.choice(
            [
                [f"ALTER TABLE {name} PARTITION BY RANGE (id) ({', '.join([*ranges, whole])})".replace(", ", ",")],
                [f"ALTER TABLE {name} TRUNCATE PARTITION p{self._rng.randrange(PARTITIONS)}"],
                [
                    f"ALTER TABLE {name} DROP PARTITION p{last}",
                    f"ALTER TABLE {name} ADD PARTITION ({whole})",
                ],
            ]
        )

    def _action(self, table: Table) -> str:
        rng, added = self._rng, self._added(table)
        fresh = rng.choice([name for name in _ADDED if name not in added] or ["c1"])
        kind = rng.random()
        if not added or kind < 0.35:
            odd = int(fresh[1]) % 2
            place = rng.choice(["", "", " FIRST", f" AFTER {rng.choice(self._columns[table.name])}"])
            null = rng.choice(["", "", " NULL", " NOT NULL"])
            return f"ADD COLUMN {fresh} {_TYPES[odd][0]}{null} DEFAULT {_DEFAULTS[odd]}{place}"
        column = rng.choice(added)
        if kind < 0.5:
            return f"DROP COLUMN {column}"
        if kind < 0.65:
            alike = [name for name in _ADDED if name not in added and name[0] == column[0]]
            alike = [name for name in alike if int(name[1]) % 2 == int(column[1]) % 2]
            return f"RENAME COLUMN {column} TO {rng.choice(alike)}" if alike else f"DROP COLUMN {column}"
        own = _OWN[table.kind]
        if kind < 0.8:
            column = rng.choice(list(own))
            return f"MODIFY COLUMN {column} {own[column][-1 if rng.random() < 0.85 else 0]}"
        return f"MODIFY COLUMN {column} {rng.choices(_TYPES[int(column[1]) % 2], [1, 4, 2])[0]}"


def _text(sent: str | bytes | None) -> str:
    return sent.decode() if isinstance(sent, bytes | bytearray) else str(sent)
