"""A hostile run: people compose whatever a server takes, others edit the pipeline file, write to silver and kill apply.

In:  a folder, a seed, a flavour.
Out: HostileWorld, a context manager: round() after round(), then settle() and compare(). All that it starts it ends.

Everything runs in turn in this process, but for an apply that is to die: so a seed gives the same run again, and the
file statements.sql says what was done.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any, Final, Protocol

from pyspark.sql import SparkSession

from tests.kit import spark as kit_spark
from tests.kit.snapshots import Reader
from tests.soak.copies import Copies, login
from tests.soak.hostile.companions import Companions, HostileRoad
from tests.soak.hostile.ends import Ends
from tests.soak.hostile.people import People
from tests.soak.hostile.settings import Settings
from tests.soak.hostile.tables import HOSTILE, table_of, tables_at
from tests.soak.plan import Fault
from tests.soak.witness import Wrong
from tests.support.own_server import own_server
from tests.support.whole import Whole
from tidegate.local.server import Server
from tidegate.snapshot.work import SnapshotWork
from tidegate.tables import WATERMARK_DATABASE

_FIRST_TABLES: Final = 7
_FIRST_ROWS: Final = 12
_READER_SECONDS: Final = 2.0


class HostilePeople(Protocol):
    """Those at the source. accepted: statements so far."""

    accepted: int

    def note(self, line: str) -> None: ...
    def work(self, count: int) -> None: ...
    def crashed(self) -> None: ...
    def end(self) -> None: ...


class HostileWorld(Whole, Companions):
    """rounds: so far."""

    def __init__(self, folder: Path, seed: int, flavour: str) -> None:
        Whole.__init__(self)
        Companions.__init__(self, random.Random(f"{seed} hostile"))
        self.folder = folder
        self.server = own_server(flavour, folder / "server")
        self.rounds = 0

    def _begin(self) -> None:
        server = self.stack.enter_context(self.server)
        self.spark: SparkSession = self.stack.enter_context(kit_spark.session())
        self.spark.sparkContext.setLogLevel("OFF")
        self.road = HostileRoad(server, self.folder, include="*.*")
        head = (
            f"pipeline: road\nlake: {{path: {self.folder / 'lake'}}}\n"
            f"sources: {{one: {{conn_id: road_one, flavour: {server.flavour}, start: now}}}}\n"
        )
        if self._rng.random() < 0.5:  # else snapshots are read without marks in the log
            rights = f"CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.*"
            server.query(f"GRANT {rights} TO '{server.user}'@'%'")
        server.query(f"GRANT LOCK TABLES ON *.* TO '{server.user}'@'%'")
        self.settings = self._settings(head)
        self.road.again()
        self.road.capture()
        self.people = self._people(server)
        self.copies = Copies(self.folder, self.road.file, {"AIRFLOW_CONN_ROAD_ONE": login(server)}, self.note)

    def _settings(self, head: str) -> Settings:
        return Settings(self.road.file, head, [f"{database}.*" for database in HOSTILE])

    def _people(self, server: Server) -> HostilePeople:
        """They have begun."""
        people = People(server, self._rng, self.folder)
        people.begin(_FIRST_TABLES, _FIRST_ROWS)
        return people

    def note(self, line: str) -> None:
        self.people.note(line)

    def work(self, statements: int) -> None:
        self.people.work(statements)

    def names(self) -> list[str]:
        return [table.dotted for table in tables_at(self.server)]

    # --- rounds -------------------------------------------------------------------------------------------

    def round(self, fault: Fault) -> None:
        """A burst, what is drawn, capture and apply. Raises Wrong when apply ends otherwise than it may."""
        self.rounds += 1
        self.note(f"--- round {fault}")
        parameters: dict[str, Any] = dict(fault.parameters)
        self.people.work(parameters.pop("statements"))
        getattr(self, f"_{fault.kind}")(**parameters)
        self.road.capture()
        self._apply()

    def _goes_on(self) -> None:
        """Nothing but the burst."""

    def _crash_source(self) -> None:
        self.server.kill()
        self.server.start()
        self.people.crashed()

    def _small_windows(self, windows: int) -> None:
        for _ in range(windows):
            self.road.capture()
            self._apply()
            self.people.work(6)

    def _snapshot(self, asked: bool, which: float) -> None:
        """A reader reads while people go on."""
        names = [name for name in self.names() if name not in self.settings.excluded]
        wanted = [names[int(which * len(names))]] if asked and names else []
        self.road.capture()
        self._apply()
        work = SnapshotWork(self.road.pipeline, self.lake, lambda _: self.road.info, self.note)
        reader = Reader(work, *wanted)
        end = time.monotonic() + _READER_SECONDS
        while not reader.is_over(0.2) and time.monotonic() < end:
            self.people.work(2)
            self.road.capture()
            self._apply()
        work.stop.set()
        for _ in range(20):
            if reader.is_over(0.5):
                return
            self.road.capture()
            self._apply()
        raise Wrong("a snapshot's reader doesn't end")

    # --- the end ------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """The source is quiet first."""
        self.people.end()
        super().settle()

    def compare(self) -> str:
        """How many rows, in words. Raises Wrong."""
        return Ends(self.server, self.road, self.folder, {table_of(path) for path in self.wider}).compare()
