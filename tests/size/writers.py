"""Sessions that write to all tables of tables.py: inserts, updates, deletes, key changes.

In:  a server, a Size, how many row changes a second.
Out: Writers.changes: how many were committed, about.
"""

from __future__ import annotations

import random
import threading
import time
from typing import Any, Final, Self

import pymysql

from tests.size.tables import DATABASE, Size, small_names
from tests.soak.source import MET
from tidegate.local.server import Server

_SESSIONS: Final = 3
_PER_TRANSACTION: Final = 8


class Writers:
    """A context manager: writes inside it, unless paused. small: tables that are written to."""

    def __init__(self, server: Server, size: Size, seed: int, per_second: float) -> None:
        self.server, self.size = server, size
        self.small = small_names(size.small)
        self.changes = 0
        self._over, self._run = threading.Event(), threading.Event()
        self._idle = [threading.Event() for _ in range(_SESSIONS)]
        self._period_seconds = _SESSIONS * _PER_TRANSACTION / per_second if per_second else 0.0
        self._threads = [
            threading.Thread(target=self._work, args=(number, random.Random(f"{seed} writer {number}")))
            for number in range(_SESSIONS if per_second else 0)
        ]

    def __enter__(self) -> Self:
        self._run.set()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._run.set()
        for thread in self._threads:
            thread.join(60)

    def pause(self) -> None:
        """Wait until no session is inside a transaction."""
        for idle in self._idle:
            idle.clear()
        self._run.clear()
        for idle in self._idle[: len(self._threads)]:
            assert idle.wait(120), "a session hangs"

    def resume(self) -> None:
        self._run.set()

    def _work(self, number: int, rng: random.Random) -> None:
        while not self._over.is_set():
            try:
                with self.server.connect(DATABASE) as connection, connection.cursor() as cursor:
                    self._session(number, cursor, rng)
            except (pymysql.err.MySQLError, OSError, AssertionError):  # its server is down
                if not self._run.is_set():
                    self._idle[number].set()
                self._over.wait(0.2)
        self._idle[number].set()

    def _session(self, number: int, cursor: Any, rng: random.Random) -> None:
        while not self._over.is_set():
            if not self._run.is_set():
                self._idle[number].set()
                self._run.wait()
                continue
            began = time.monotonic()
            try:
                cursor.execute("BEGIN")
                done = 0
                while done < _PER_TRANSACTION:
                    done += max(1, self._change(cursor, rng))
                cursor.execute("ROLLBACK" if rng.random() < 0.02 else "COMMIT")
                self.changes += done
            except pymysql.err.MySQLError as error:
                if error.args[0] not in MET:
                    raise
                cursor.execute("ROLLBACK")
            self._over.wait(max(0.0, self._period_seconds - (time.monotonic() - began)))

    def _change(self, cursor: Any, rng: random.Random) -> int:
        """Some rows of one table; how many."""
        kind = rng.random()
        if kind < 0.5:
            return self._big(cursor, rng)
        if kind < 0.65:
            return _bag(cursor, rng, self.size.bag // 3)
        return _small(cursor, rng, rng.choice(self.small)) if self.small else 0

    def _big(self, cursor: Any, rng: random.Random) -> int:
        key, kind = self.size.drawn(rng), rng.random()
        if kind < 0.35:
            return int(
                cursor.execute(
                    "REPLACE INTO big (id, n, price, ratio, name, at, day, seen, kind, raw, doc, took) VALUES (%s, %s,"
                    " %s, %s, %s, NOW(6), CURDATE(), NOW(3), 'open', %s, %s, '-01:02:03')",
                    (
                        *(self.size.between(rng), rng.randrange(1 << 32), f"{rng.uniform(-1e6, 1e6):.2f}"),
                        *(rng.randrange(1 << 20) / 8, rng.choice(["ä€😀", "", "it's"]), b"\x00\xff\x0a"),
                        '{"n": [1, "x"]}',
                    ),
                )
            )
        if kind < 0.75:
            return int(cursor.execute("UPDATE big SET n = n ^ 1, kind = 'done', price = -price WHERE id = %s", (key,)))
        if kind < 0.85:
            return int(cursor.execute("UPDATE big SET id = %s WHERE id = %s", (self.size.between(rng), key)))
        return int(cursor.execute("DELETE FROM big WHERE id = %s", (key,)))


def _bag(cursor: Any, rng: random.Random, values: int) -> int:
    value, kind = rng.randint(0, values), rng.random()
    if kind < 0.4:
        return int(cursor.execute("INSERT INTO bag (a, b, v) VALUES (%s, 'new', 1), (%s, 'new', 1)", (value, value)))
    if kind < 0.7:
        return int(cursor.execute("UPDATE bag SET v = v + 1 WHERE a = %s LIMIT 2", (value,)))
    return int(cursor.execute("DELETE FROM bag WHERE a = %s LIMIT 2", (value,)))


def _small(cursor: Any, rng: random.Random, table: str) -> int:
    key, kind = rng.randint(1, 400), rng.random()
    if kind < 0.4:
        return int(cursor.execute(f"INSERT INTO {table} (a, b, at) VALUES ('new', %s, NOW(6))", (key,)))
    if kind < 0.8:
        return int(cursor.execute(f"UPDATE {table} SET b = b + 1 WHERE id = %s", (key,)))
    return int(cursor.execute(f"DELETE FROM {table} WHERE id = %s", (key,)))
