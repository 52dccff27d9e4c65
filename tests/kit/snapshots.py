"""Snapshots beside capture and apply, in one process; and a source whose rows change meanwhile.

In:  a Road and Spark; statements.
Out: Reading.run(): nothing is open any more; patiently(): turns until then; changing(): a writer in the background.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from spark_jobs.window.application import Application
from tests.kit.road import Road
from tidegate.local.server import Server
from tidegate.snapshot.progress.requests import told
from tidegate.snapshot.work import SnapshotWork
from tidegate.tables import State

_PATIENCE_SECONDS = 300.0
_CAPTURE_SECONDS = 5.0  # beside a writer none is ever idle
_BEFORE_SECONDS = 1.5
_TURNS_MIN = 60


def patiently() -> Iterator[int]:
    """Turns for some minutes. A number of turns alone is a matter of luck: while a reader waits for its next try, or
    for a busy machine, many short ones pass.
    """
    turn, end = 0, time.monotonic() + _PATIENCE_SECONDS
    while turn < _TURNS_MIN or time.monotonic() < end:
        turn += 1
        yield turn


def rows(first: int, last: int) -> str:
    """VALUES of a table with a number and a text."""
    return ", ".join(f"({i}, 'old {i}')" for i in range(first, last + 1))


def states(app: Application) -> dict[str, str]:
    """By the tables' names without their database."""
    return {name.split(".")[1]: str(state.state) for name, state in app.states.items()}


class Reader:
    """A thread that asks for what waits, and reads it."""

    def __init__(self, work: SnapshotWork, *names: str) -> None:
        """names: tables that are asked for, too."""
        self._work, self._names = work, names
        self._failed: list[BaseException] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            if self._names:
                self._work.request(self._names)
            self._work.ask()
            self._work.read()
        except BaseException as error:  # noqa: BLE001 - told by is_over
            self._failed.append(error)

    def is_over(self, seconds: float = 0) -> bool:
        """Whether it has read all, waited for so long. Fails as it did."""
        self._thread.join(seconds)
        assert not self._failed, self._failed
        return not self._thread.is_alive()


class Reading:
    """`tidegate snapshot run` beside capture and apply, in this process."""

    def __init__(self, road: Road, spark: SparkSession) -> None:
        self.road, self.spark = road, spark
        self.lines: list[str] = []

    def run(self, *names: str, at_once: bool = False) -> Application:
        """What waits, and these, is asked for and read while capture and apply go on; until nothing is open.

        at_once: right behind the last transaction. Else a heartbeat lies between, unless somebody goes on writing: what
        is read without marks in the log then begins above that transaction, which comes no second time.
        """
        if not at_once:
            self.road.capture(seconds=_BEFORE_SECONDS, heartbeat=True)
        reader = Reader(
            SnapshotWork(self.road.pipeline, self.road.lake, lambda _: self.road.info, self.lines.append), *names
        )
        for turn in patiently():
            reader.is_over(0.3)
            # The reader's words may stand behind what was applied: a quiet source's next cut is a heartbeat's.
            self.road.capture(seconds=_CAPTURE_SECONDS, heartbeat=turn > 2 or reader.is_over())
            app = self.road.apply(self.spark)
            if reader.is_over() and not any(state.state is State.SNAPSHOT for state in app.states.values()):
                return app
        raise AssertionError(f"not read: {told(self.road.lake, 'road')}, {self.lines}")


@contextmanager
def changing(
    server: Server, database: str, statements: Callable[[int], Iterable[str]], pause_seconds: float
) -> Iterator[None]:
    """Transactions 1, 2, ... in the background, each of the statements of its number."""
    over = threading.Event()

    def write() -> None:
        with server.connect(database) as connection, connection.cursor() as cursor:
            number = 0
            while not over.wait(pause_seconds):
                number += 1
                for statement in statements(number):
                    cursor.execute(statement)
                connection.commit()

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join()
