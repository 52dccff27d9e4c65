"""Sessions that write to a server for as long as the block lasts, survive its faults, and can be paused.

In:  a server, a seed, how many sessions, how long one of their turns lasts; what a turn does.
Out: Writing. A turn that meets others, or another definition of its tables, is rolled back; one whose server is down
     is tried again with another connection. wait_for_end(): a session's branch is anybody's to answer.
"""

from __future__ import annotations

import random
import threading
import time
from typing import Any, Final, Self

import pymysql

from tidegate.local.server import Server

# What may happen to a transaction that meets others, or another definition of its tables: it is rolled back.
MET: Final = (1062, 1205, 1213, 1020, 1412, 1146, 1054)
_IDLE_SECONDS_MAX: Final = 300.0


def wait_for_end(server: Server, session: int) -> None:
    """Wait until a server has noticed that a session was closed. Until then the branch that it prepared is unknown to
    others, or MariaDB logs another session's answer and InnoDB keeps the branch's locks. session: its connection's
    thread_id().
    """
    end = time.monotonic() + _IDLE_SECONDS_MAX
    while session in {row[0] for row in server.query("SHOW PROCESSLIST")}:
        assert time.monotonic() < end, "a session doesn't end"
        time.sleep(0.01)


class Writing:
    """A context manager: sessions take turns inside it, unless paused."""

    def __init__(self, server: Server, database: str, seed: int, count: int, period_seconds: float) -> None:
        self.server = server
        self._database = database
        self._period_seconds = period_seconds  # of each session's turns
        self._over = threading.Event()
        self._run = threading.Event()
        self._idle = [threading.Event() for _ in range(count)]
        self._threads = [
            threading.Thread(target=self._work, args=(number, random.Random(f"{seed} session {number}")))
            for number in range(count)
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
        for idle in self._idle:
            assert idle.wait(_IDLE_SECONDS_MAX), "a session hangs"

    def resume(self) -> None:
        self._run.set()

    @property
    def is_paused(self) -> bool:
        return not self._run.is_set()

    def _work(self, session: int, rng: random.Random) -> None:
        turn = 0
        while not self._over.is_set():
            try:
                with self.server.connect(self._database) as connection, connection.cursor() as cursor:
                    while not self._over.is_set():
                        if not self._run.is_set():
                            self._idle[session].set()
                            self._run.wait()
                            continue
                        turn += 1
                        began = time.monotonic()
                        self.turn(cursor, rng, session, turn)
                        self._over.wait(max(0.0, self._period_seconds - (time.monotonic() - began)))
            except (pymysql.err.MySQLError, OSError, AssertionError):  # its server is down
                if not self._run.is_set():
                    self._idle[session].set()
                self._over.wait(0.1)
        self._idle[session].set()

    def turn(self, cursor: Any, rng: random.Random, session: int, turn: int) -> None:
        """One transaction, or what meets others of it."""
        try:
            cursor.execute("BEGIN")
            self.transaction(cursor, rng, session, turn)
        except pymysql.err.MySQLError as error:
            if error.args[0] not in MET:
                raise
            cursor.execute("ROLLBACK")

    def transaction(self, cursor: Any, rng: random.Random, session: int, turn: int) -> None:
        """Write, and COMMIT or ROLLBACK."""
        raise NotImplementedError
