"""People at the source: sessions with variables of their own, whose transactions interleave.

In:  a server, a seed, a file in which accepted statements are written down.
Out: People.work(): so many statements; end(): no transaction is open any more.

One thread sends all of them in turn, so that a seed gives the same statements again; a session that meets another's
locks doesn't wait, as far as its server lets it.
"""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import Any, Final

import pymysql
from pymysql.connections import Connection

from tests.soak.hostile.ddl import Ddl
from tests.soak.hostile.dml import Dml
from tests.soak.hostile.tables import HOSTILE, Table, tables_at
from tests.soak.hostile.variables import session_variable
from tidegate.local.server import Server

COUNT: Final = 3
_LOST: Final = frozenset({2006, 2013, 2014, 1927, 0})
_ANSWER_SECONDS: Final = 30


class Person:
    """One session. branch: the XA transaction that it has begun."""

    def __init__(self, server: Server, number: int) -> None:
        self.number, self._server = number, server
        self.branch, self.prepared = "", False
        self.connection = self._connected()

    def send(self, statement: str) -> bool:
        """Whether the server took it."""
        try:
            _run(self.connection, statement)
        except (pymysql.err.MySQLError, OSError) as error:
            if isinstance(error, OSError) or not error.args or error.args[0] in _LOST:
                self.begin_again()
            return False
        return True

    def begin_again(self) -> None:
        with contextlib.suppress(Exception):
            self.connection.close()
        self.branch, self.prepared = "", False
        self.connection = self._connected()

    def _connected(self) -> Connection[Any]:
        connection = self._server.connect(HOSTILE[0], read_timeout=_ANSWER_SECONDS, conv={})
        mariadb = self._server.flavour == "mariadb"
        for name, seconds in (("lock_wait_timeout", int(not mariadb)), ("innodb_lock_wait_timeout", int(not mariadb))):
            _run(connection, f"SET SESSION {name} = {seconds}")
        return connection


class People:
    """sent, accepted: statements so far."""

    def __init__(self, server: Server, rng: random.Random, folder: Path) -> None:
        self._server, self._rng = server, rng
        self._mariadb = server.flavour == "mariadb"
        self._book = folder / "statements.sql"
        loads = server.data / "loads"
        loads.mkdir(exist_ok=True)
        self._ddl, self._dml = Ddl(rng, mariadb=self._mariadb), Dml(rng, loads)
        self.sent = self.accepted = self._branches = 0
        if not self._mariadb:
            server.query(f"GRANT XA_RECOVER_ADMIN ON *.* TO '{server.user}'@'%'")
        for database in HOSTILE:
            server.query(f"CREATE DATABASE {database}")
        self._people = [Person(server, number) for number in range(COUNT)]
        self._tables: list[Table] = []
        self._stale = True

    def note(self, line: str) -> None:
        """A line of the book that isn't a statement."""
        with self._book.open("a") as book:
            book.write(f"-- {line}\n")

    def begin(self, tables: int, rows: int) -> None:
        """So many tables with so many rows."""
        for _ in range(tables):
            self._send(self._people[0], self._ddl.another(tables_at(self._server)))
        self.fill(rows)

    def work(self, count: int) -> None:
        """So many turns of some session."""
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
        """The server was killed and is back: what was prepared is there still, and is answered."""
        for person in self._people:
            person.begin_again()
        self._answer_prepared()

    def _answer_prepared(self) -> None:
        """What sessions that are gone have prepared."""
        for _, _, _, branch in self._server.query("XA RECOVER"):
            name = branch.decode() if isinstance(branch, bytes) else branch
            self._send(self._people[0], f"XA {self._rng.choice(['COMMIT', 'ROLLBACK'])} '{name}'")

    # --- a turn -------------------------------------------------------------------------------------------

    def _turn(self, person: Person) -> None:
        rng = self._rng
        if self._stale:
            self._tables, self._stale = tables_at(self._server), False
        if person.branch:
            if person.prepared or rng.random() < 0.4:
                self._answer(person)
            else:
                self._change(person)
            return
        kind = rng.random()
        if kind < 0.13:
            for statement in self._ddl.statements(self._tables):
                self._send(person, statement)
            self._stale = True
        elif kind < 0.23:
            self._send(person, session_variable(rng, mariadb=self._mariadb))
        elif kind < 0.40:
            self._send(person, self._transaction(person))
        else:
            self._change(person)

    def _change(self, person: Person) -> None:
        if self._tables:
            some = [table for table in self._tables if table.columns]
            self._send(person, self._dml.statement(self._rng.choice(some), self._rng.choice(some)))

    def fill(self, rows: int) -> None:
        """Rows for each table that is there."""
        self._tables, self._stale = tables_at(self._server), False
        for table in self._tables:
            if table.written:
                self._send(self._people[0], self._dml.insert(table, rows))

    def _transaction(self, person: Person) -> str:
        rng = self._rng
        if rng.random() < 0.25:
            self._branches += 1
            person.branch = f"b{self._branches}"
            return f"XA START '{person.branch}'"
        return rng.choice(
            ["BEGIN", "BEGIN", "COMMIT", "COMMIT", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO SAVEPOINT s"]
        )

    def _answer(self, person: Person) -> None:
        """On with the XA transaction: to its end, to PREPARE, to the answer."""
        branch = f"'{person.branch}'"
        if not person.prepared:
            self._send(person, f"XA END {branch}")
            how = self._rng.choice(["PREPARE", "PREPARE", "COMMIT", "ROLLBACK"])
            if how != "PREPARE":
                self._send(person, f"XA {how} {branch}{' ONE PHASE' if how == 'COMMIT' else ''}")
                person.branch = ""
            elif self._send(person, f"XA PREPARE {branch}"):
                person.prepared = True
            else:
                self._send(person, f"XA ROLLBACK {branch}")
                person.branch = ""
            return
        self._send(person, f"XA {self._rng.choice(['COMMIT', 'COMMIT', 'ROLLBACK'])} {branch}")
        person.branch, person.prepared = "", False

    def _send(self, person: Person, statement: str) -> bool:
        self.sent += 1
        taken = person.send(statement)
        self.accepted += taken
        with self._book.open("a") as book:
            book.write(f"/* {person.number}{'' if taken else ' refused'} */ {statement};\n")
        return taken


def _run(connection: Connection[Any], statement: str) -> None:
    """Its bytes go through as they are, whatever the session says that they are."""
    connection.query(statement.encode())
