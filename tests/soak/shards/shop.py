"""One busy server of several: shards of `orders`, a table of accounts beside them, and money that moves between all.

In:  a server, its number, a seed; the other servers' shops, to which rows without money may move.
Out: changes all the time, in plain transactions (each with a counter in soak.txns) and in XA branches that another
     session answers later, over restarts. Whatever is committed, the sum of `amount` on this server is MONEY.
"""

from __future__ import annotations

import random
import threading
from decimal import Decimal
from typing import Any, Final

import pymysql

from tests.soak.source import DATABASE, Sessions
from tests.support.sessions import MET
from tidegate.local.server import Server
from tidegate.mysql.facts.branches import prepared_branches

OPTIONS: Final = ("--innodb-lock-wait-timeout=1", "--lock-wait-timeout=2", "--transaction-isolation=READ-COMMITTED")
DEFINED: Final = "id BIGINT PRIMARY KEY, place INT, amount DECIMAL(8, 2) NOT NULL, note VARCHAR(20)"
SHARDS_MAX: Final = 8
MONEY: Final = 6000
_ROWS, _ID_MAX, _SHARDS = 20, 100_000, 3
_BRANCHES_MAX: Final = 3
# An answer that meets a branch which isn't detached yet, or is gone: another one is given later.
_NOT_NOW: Final = (1205, 1397, 1399, 1402, 1614)
Shard = tuple[str, str]
DATABASE_OF_ALL: Final = "shop"  # in silver


class Shop(Sessions):
    """shards: database and table of each. branches: whoever holds it is alone with the server's prepared branches."""

    def __init__(self, server: Server, number: int, source: str, seed: int) -> None:
        super().__init__(server, seed * 10 + number, count=2, per_second=16.0)
        self.source = source
        self.databases = [f"shop_{2 * number}", f"shop_{2 * number + 1}"]
        self.accounts = f"only_{source}.accounts"
        self.shards: list[Shard] = [(self.databases[at % 2], f"orders_{at}") for at in range(_SHARDS)]
        self.added: dict[Shard, list[str]] = {shard: [] for shard in self.shards}
        self.peers: list[Shop] = []
        self.branches = threading.Lock()
        self.answered = 0
        self.frozen = False
        self._named = 0

    def create(self) -> None:
        """Each order has 50 to begin with."""
        for name in (DATABASE, *self.databases, f"only_{self.source}"):
            self.server.query(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        self.server.query("CREATE TABLE soak.txns (session INT NOT NULL, n BIGINT NOT NULL, PRIMARY KEY (session, n))")
        amounts = {_name(shard): 50 for shard in self.shards}
        for name, amount in (amounts | {self.accounts: MONEY // _ROWS - 50 * _SHARDS}).items():
            self.server.query(f"CREATE TABLE {name} ({DEFINED})")
            rows = ", ".join(f"({at * (_ID_MAX // _ROWS)}, 0, {amount}, 'first')" for at in range(_ROWS))
            self.server.query(f"INSERT INTO {name} VALUES {rows}")

    def money(self) -> Decimal:
        """The sum of all amounts, as the server says."""
        names = [self.accounts, *map(_name, self.shards)]
        sums = [self.server.query(f"SELECT COALESCE(SUM(amount), 0) FROM {name}")[0][0] for name in names]
        return sum(sums, Decimal())

    # --- what a person does -------------------------------------------------------------------------------

    def alter(self, shard: Shard, change: str) -> None:
        """Branches lock definitions, so none is open meanwhile."""
        with self.branches:
            self._answer_all()
            for _ in range(20):
                try:
                    self.server.query(f"ALTER TABLE {_name(shard)} {change}")
                except pymysql.err.OperationalError as error:
                    if error.args[0] not in MET:
                        raise
                else:
                    break
            else:
                raise AssertionError(f"{_name(shard)} is locked all the time")
        if change.startswith("ADD COLUMN "):
            self.added[shard].append(change.split()[2])

    def join(self, database: int, *, past: bool) -> None:
        """One more shard, as another one is now. past: it had rows before it got this name."""
        like = self.shards[-1]
        shard = (self.databases[database], f"orders_{len(self.shards)}")
        first = (shard[0], f"elsewhere_{len(self.shards)}") if past else shard
        self.server.query(f"CREATE TABLE {_name(first)} LIKE {_name(like)}")
        rows = ", ".join(f"({at}, 1, 0, 'joined')" for at in range(_ROWS))
        self.server.query(f"INSERT INTO {_name(first)} (id, place, amount, note) VALUES {rows}")
        if past:
            self.server.query(f"RENAME TABLE {_name(first)} TO {_name(shard)}")
        self.added[shard] = list(self.added[like])
        self.shards.append(shard)

    def answer_all(self) -> None:
        """Nobody has prepared anything any more."""
        with self.branches:
            self._answer_all()

    def _answer_all(self) -> None:
        with self.server.connect() as connection, connection.cursor() as cursor:
            for _ in range(200):
                if not (names := prepared_branches(cursor)):
                    return
                self._answer(cursor, names[0], commit=self.answered % 3 > 0)
        raise AssertionError(f"{self.source}: branches can't be answered: {names}")

    def _answer(self, cursor: Any, name: str, *, commit: bool) -> None:
        try:
            cursor.execute(f"XA {'COMMIT' if commit else 'ROLLBACK'} {name}")
            self.answered += 1
        except pymysql.err.MySQLError as error:
            if error.args[0] not in _NOT_NOW:
                raise

    # --- a session ----------------------------------------------------------------------------------------

    def turn(self, cursor: Any, rng: random.Random, session: int, turn: int) -> None:
        if rng.random() < 0.15 and self.branches.acquire(blocking=False):
            try:
                self._branch(rng)
            finally:
                self.branches.release()
        else:
            super().turn(cursor, rng, session, turn)

    def _branch(self, rng: random.Random) -> None:
        """Prepare one, or answer one that another session has prepared."""
        with self.server.connect() as connection, connection.cursor() as cursor:
            names = prepared_branches(cursor)
            if len(names) >= _BRANCHES_MAX or (names and rng.random() < 0.4):
                self._answer(cursor, rng.choice(names), commit=rng.random() < 0.65)
                return
            self._named += 1
            xid = f"'{self.source}{self._named}'"
            cursor.execute(f"XA START {xid}")
            try:
                for _ in range(rng.randint(1, 3)):
                    self.change(cursor, rng)
            except pymysql.err.MySQLError as error:
                if error.args[0] not in MET:
                    raise
                return  # with its session it is rolled back
            cursor.execute(f"XA END {xid}")
            cursor.execute(f"XA PREPARE {xid}")

    def change(self, cursor: Any, rng: random.Random) -> None:
        rng.choice((self._pay, self._pay, self._move, self._emigrate, self._write, self._write))(cursor, rng)

    def _pay(self, cursor: Any, rng: random.Random) -> None:
        """Between two tables of this server, or two rows of one."""
        names = [self.accounts, *map(_name, self.shards)]
        one, other = rng.choice(names), rng.choice(names)
        giver, taker = _locked(cursor, rng, one), _locked(cursor, rng, other)
        if giver is not None and taker is not None:
            paid = Decimal(rng.randrange(1, 2000)) / 100
            cursor.execute(f"UPDATE {one} SET amount = amount - %s, note = 'paid' WHERE id = %s", (paid, giver))
            cursor.execute(f"UPDATE {other} SET amount = amount + %s, note = 'got' WHERE id = %s", (paid, taker))

    def _move(self, cursor: Any, rng: random.Random) -> None:
        """A row with its money, to another shard of this server or to another key of its own."""
        one, other = _name(rng.choice(self.shards)), _name(rng.choice(self.shards))
        if (id_ := _locked(cursor, rng, one)) is None:
            return
        if one == other:
            cursor.execute(f"UPDATE {one} SET id = %s WHERE id = %s", (rng.randrange(_ID_MAX), id_))
            return
        cells = "id, place, amount, note"
        cursor.execute(f"INSERT INTO {other} ({cells}) SELECT {cells} FROM {one} WHERE id = %s", (id_,))
        cursor.execute(f"DELETE FROM {one} WHERE id = %s", (id_,))

    def _emigrate(self, cursor: Any, rng: random.Random) -> None:
        """A row without money, to a shard of another server: for a while it is on both, as migrations do it."""
        peer = rng.choice(self.peers)
        one, other = _name(rng.choice(self.shards)), _name(rng.choice(peer.shards))
        if peer.frozen or peer.server.process is None or (id_ := _locked(cursor, rng, one, "amount = 0")) is None:
            return
        with peer.server.connect() as connection, connection.cursor() as there:
            there.execute(f"INSERT INTO {other} (id, place, amount, note) VALUES (%s, 2, 0, 'moved')", (id_,))
        cursor.execute(f"DELETE FROM {one} WHERE id = %s", (id_,))

    def _write(self, cursor: Any, rng: random.Random) -> None:
        """Rows without money come, change and go; of added columns one now and then."""
        shard, kind = rng.choice(self.shards), rng.random()
        name, extra = _name(shard), rng.choice([None, *self.added[shard]])
        if kind < 0.45:
            more = (f", {extra}", ", 'new'") if extra else ("", "")
            cells = (rng.randrange(_ID_MAX), rng.randrange(99), rng.choice(["ä€😀", "", None, "it's"]))
            cursor.execute(
                f"INSERT INTO {name} (amount, id, place, note{more[0]}) VALUES (0, %s, %s, %s{more[1]})", cells
            )
        elif (id_ := _locked(cursor, rng, name, "amount = 0" if kind > 0.75 else "true")) is None:
            return
        elif kind < 0.75:
            cursor.execute(f"UPDATE {name} SET place = place + 1, {extra or 'note'} = 'set' WHERE id = %s", (id_,))
        else:
            cursor.execute(f"DELETE FROM {name} WHERE id = %s", (id_,))


def _name(shard: Shard) -> str:
    return ".".join(shard)


def _locked(cursor: Any, rng: random.Random, name: str, condition: str = "true") -> int | None:
    """The id of a row that nobody else has locked, an open branch neither."""
    cursor.execute(
        f"SELECT id FROM {name} WHERE id >= %s AND {condition} ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED",
        (rng.randrange(_ID_MAX),),
    )
    row = cursor.fetchone()
    return None if row is None else int(row[0])
