"""A shop at work: several sessions at once, each in its own thread and connection, and DDL in between.

In:  how to connect (as a user who may create and write), a seed, a bound in seconds, a rate.
Out: a database `shop` that changes until the bound or stop(), and counters to watch.

A deadlock or a lock wait that timed out is the server's right: the session rolls back and goes on.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pymysql
from pymysql.constants import ER

from tidegate.demo import shop, shop_schema

Connect = Callable[[str | None], Any]

# Met when sessions and DDL get into each other's way: the transaction is rolled back, and life goes on.
_PASSING: Final = {
    ER.LOCK_DEADLOCK,
    ER.LOCK_WAIT_TIMEOUT,
    ER.TABLE_DEF_CHANGED,
    ER.CHECKREAD,  # MariaDB: record has changed since last read (snapshot isolation)
    159,  # MariaDB: InnoDB's own HA_ERR_TABLE_DEF_CHANGED, when an index is younger than the transaction
}


@dataclass(slots=True)
class Counters:
    """The sessions' counts so far."""

    committed: int = 0
    rolled_back: int = 0
    ddl: int = 0


class Workload:
    """create(), start(), then stop(); or run() for all of it."""

    def __init__(
        self, connect: Connect, *, seed: int = 7, seconds: float = 60.0, sessions: int = 4, rate: float = 80.0
    ) -> None:
        """rate: transactions per second, all sessions together."""
        self.counters = Counters()
        self.seconds = seconds
        self._connect = connect
        self._seed = seed
        self._pause = sessions / rate
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._there: frozenset[str] = frozenset()
        self._errors: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._guard, args=(self._session, number), name=f"shop-{number}")
            for number in range(sessions)
        ]
        self._threads.append(threading.Thread(target=self._guard, args=(self._change_schema,), name="shop-ddl"))

    def create(self, *, orders: int = 0) -> None:
        """The schema and its first rows. Drops an older one. orders: so many were placed long ago."""
        with self._connect(None) as connection, connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS `{shop_schema.DATABASE}`")
            cursor.execute(f"CREATE DATABASE `{shop_schema.DATABASE}` CHARACTER SET utf8mb4")
            cursor.execute(f"USE `{shop_schema.DATABASE}`")
            for statement in shop_schema.TABLES:
                cursor.execute(statement)
            connection.begin()
            if orders:
                shop.stock(cursor, orders)
            shop.seed(cursor, random.Random(self._seed), shop_schema.CATEGORIES)  # noqa: S311 - goods, not secrets
            connection.commit()

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> Counters:
        """End the sessions after their transaction, run what is left of the DDL, and give the counters.

        Raises the first error that a session met.
        """
        self._ended.set()
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]
        return self.counters

    def run(self) -> Counters:
        """start(), wait for the bound, stop()."""
        self.start()
        self._ended.wait(self.seconds)
        return self.stop()

    @property
    def failed(self) -> bool:
        """Whether a session has ended with an error; stop() raises it."""
        return bool(self._errors)

    def _guard(self, work: Callable[..., None], *args: Any) -> None:
        try:
            work(*args)
        except BaseException as error:  # noqa: BLE001 - it is raised again by stop(), in the caller's thread
            self._errors.append(error)
            self._ended.set()

    def _session(self, number: int) -> None:
        dice = random.Random(f"{self._seed}-{number}")  # noqa: S311
        with self._connect(shop_schema.DATABASE) as connection, connection.cursor() as cursor:
            while not self._ended.wait(dice.uniform(0, 2 * self._pause)):
                self._transaction(connection, cursor, self._choose(dice), dice)

    def _choose(self, dice: random.Random) -> shop.Step:
        steps = [*shop.STEPS, *((step, weight) for needs, step, weight in shop.STEPS_AFTER_DDL if needs in self._there)]
        return dice.choices([step for step, _ in steps], [weight for _, weight in steps])[0]

    def _transaction(self, connection: Any, cursor: Any, step: shop.Step, dice: random.Random) -> None:
        connection.begin()
        try:
            keep = step(cursor, dice)
        except pymysql.err.MySQLError as error:
            connection.rollback()
            if error.args[0] not in _PASSING:
                raise
            keep = False
        else:
            connection.commit() if keep else connection.rollback()
        with self._lock:
            if keep:
                self.counters.committed += 1
            else:
                self.counters.rolled_back += 1

    def _change_schema(self) -> None:
        started = time.monotonic()
        with self._connect(shop_schema.DATABASE) as connection, connection.cursor() as cursor:
            for fraction, statement in shop_schema.DDL_OF_THE_DAY:
                self._ended.wait(max(0.0, started + fraction * self.seconds - time.monotonic()))
                cursor.execute(statement)
                self.counters.ddl += 1
                self._there |= frozenset(name for name in ("reviews", "channel") if name in statement)
