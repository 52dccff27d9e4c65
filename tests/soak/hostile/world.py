"""A hostile run: people compose whatever a server takes, others edit the pipeline file, write to silver and kill apply.

In:  a folder, a seed, a flavour.
Out: HostileWorld, a context manager: round() after round(), then settle() and compare(). All that it starts it ends.

Everything runs in turn in this process, but for an apply that is to die: so a seed gives the same run again, and the
file statements.sql says what was done.
"""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from tests.kit import spark as kit_spark
from tests.kit.road import Road
from tests.kit.snapshots import Reader, Reading
from tests.soak.hostile import silver_hands
from tests.soak.hostile.copies import Copies
from tests.soak.hostile.ends import Ends
from tests.soak.hostile.people import People
from tests.soak.hostile.settings import Settings
from tests.soak.hostile.tables import HOSTILE, table_of, tables_at
from tests.soak.hostile.variables import global_variable
from tests.soak.plan import Fault
from tests.soak.witness import Wrong
from tests.support import driver
from tests.support.nursery import TRANSIENT
from tests.support.own_server import own_server
from tests.support.whole import Whole
from tidegate import config
from tidegate.lake import held
from tidegate.lake.files import LakeFiles
from tidegate.snapshot.work import SnapshotWork
from tidegate.tables import WATERMARK_DATABASE, State

_APPLY_SECONDS: Final = 600
_FIRST_TABLES: Final = 7
_FIRST_ROWS: Final = 12
_READERS_MAX: Final = 4
_READER_SECONDS: Final = 2.0


class HostileRoad(Road):
    """A road whose pipeline file changes on the way."""

    def again(self) -> None:
        """As the next process reads it."""
        self.pipeline = config.load(self.file)

    def reopen(self) -> None:
        """Another lake in the same folder."""
        self.lake = LakeFiles(self.lake.root)


class HostileWorld(Whole):
    """touched: silver's tables whose rows somebody else has changed."""

    def __init__(self, folder: Path, seed: int, flavour: str) -> None:
        super().__init__()
        self.folder = folder
        self.server = own_server(flavour, folder / "server")
        self.touched: set[str] = set()
        self.rounds = 0
        self._wider: set[str] = set()
        self._rng = random.Random(f"{seed} hostile")

    def _begin(self) -> None:
        server = self.stack.enter_context(self.server)
        self.spark: SparkSession = self.stack.enter_context(kit_spark.session())
        self.spark.sparkContext.setLogLevel("OFF")
        self.road = HostileRoad(server, self.folder, include=f"{HOSTILE[0]}.*")
        head = (
            f"pipeline: road\nlake: {{path: {self.folder / 'lake'}}}\n"
            f"sources: {{one: {{conn_id: road_one, flavour: {server.flavour}, start: now}}}}\n"
        )
        if self._rng.random() < 0.5:  # else snapshots are read without marks in the log
            rights = f"CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.*"
            server.query(f"GRANT {rights} TO '{server.user}'@'%'")
        server.query(f"GRANT LOCK TABLES ON *.* TO '{server.user}'@'%'")
        self.settings = Settings(self.road.file, head)
        self.road.again()
        self.road.capture()
        self.people = People(server, self._rng, self.folder)
        self.people.begin(_FIRST_TABLES, _FIRST_ROWS)
        self.copies = Copies(self.folder, server, self.road.file, self.note)

    @property
    def lake(self) -> LakeFiles:
        return self.road.lake

    def note(self, line: str) -> None:
        self.people.note(line)

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

    def _apply(self) -> None:
        self.road.apply(self.spark)

    def _goes_on(self) -> None:
        """Nothing but the burst."""

    def _kill_apply(self, points: list[str]) -> None:
        self.road.capture()
        for point in points:
            process = driver.started(self.spark, self.road.file, point, log=self.folder / "apply.log")
            process.join(_APPLY_SECONDS)
            if process.exitcode is None:
                process.kill()
            self.note(f"apply to die at {point}: {process.exitcode}")
            if process.exitcode not in (0, TRANSIENT, -9):
                raise Wrong(f"apply ended with {process.exitcode} (point {point}): see apply.log")
            driver.settled(self.spark, cancel=True, what=point)

    def _edit_file(self, edits: int) -> None:
        names = [table.dotted for table in tables_at(self.server)]
        for _ in range(edits):
            self.note(f"file: {self.settings.edit(self._rng, names)}")
        self.road.again()

    def _silver(self, which: float) -> str:
        """The path of a table that is at the source; "" when none is in silver yet."""
        root = self.folder / "lake"
        paths = sorted(str(log.parent.relative_to(root)) for log in root.glob("silver/*/*/_delta_log"))
        at_source = {table.dotted for table in tables_at(self.server)}
        paths = [path for path in paths if table_of(path) in at_source]
        return paths[int(which * len(paths))] if paths else ""

    def _silver_hand(self, hand: str, which: float) -> None:
        self.road.capture()
        self._apply()
        path = self._silver(which)
        if not path:
            return
        if silver_hands.KINDS[hand](self, path):
            self.touched.add(path)
        if hand == silver_hands.own_column.__name__:
            self._wider.add(path)
        self.people.work(5)

    def _older_silver(self, which: float) -> None:
        path = self._silver(which)
        if not path:
            return
        aside = self.folder / "aside"
        shutil.copytree(self.folder / "lake" / path, aside)
        self.road.capture()
        self._apply()
        shutil.rmtree(self.folder / "lake" / path, ignore_errors=True)
        shutil.move(aside, self.folder / "lake" / path)
        self.note(f"an older copy: {path}")
        self._wider.add(path)
        self.people.work(5)

    def _crash_source(self) -> None:
        self.server.kill()
        self.server.start()
        self.people.crashed()

    def _set_global(self) -> None:
        statement = global_variable(self._rng, mariadb=self.server.flavour == "mariadb")
        self.note(statement)
        try:
            self.server.query(statement)
        except Exception as error:  # noqa: BLE001 - not every version has each
            self.note(f"refused: {error}")

    def _small_windows(self, windows: int) -> None:
        for _ in range(windows):
            self.road.capture()
            self._apply()
            self.people.work(6)

    def _snapshot(self, asked: bool, which: float) -> None:
        """A reader reads while people go on."""
        names = [table.dotted for table in tables_at(self.server) if table.dotted not in self.settings.excluded]
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

    def _maintain(self) -> None:
        self.road.capture()
        process = driver.started(self.spark, self.road.file, "none", job="maintain", log=self.folder / "apply.log")
        process.join(_APPLY_SECONDS)
        if process.exitcode not in (0, TRANSIENT):
            raise Wrong(f"maintain ended with {process.exitcode}: see apply.log")

    def _backup(self, which: float, busy: bool) -> None:
        """Into a new folder, or one of the earlier ones."""
        made = self.copies.made
        renewed = [None, *made][int(which * (len(made) + 1))]
        self.copies.backup(frozenset(self.touched), frozenset(self._wider), renewed, self._work_on if busy else None)

    def _work_on(self) -> None:
        self.people.work(10)
        self.road.capture()
        self._apply()

    def _restore(self, which: float) -> None:
        """An older lake, while the source has gone on; what others did to silver before the backup is there again."""
        if not self.copies.made:
            self._backup(0.0, busy=False)
            self._work_on()
        backup = self.copies.made[int(which * len(self.copies.made))]
        self.copies.restore(backup, self.folder / "lake")
        self.touched |= backup.touched
        self._wider |= backup.wider
        self.road.reopen()

    # --- the end ------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """The source is quiet, the file keeps all, people answer what waits for them, snapshots read the rest."""
        self.note("--- settle")
        self.people.end()
        self.settings.calm()
        self.road.again()
        self.road.capture()
        self._apply()
        for _ in range(5):
            waits = [one for one in held.held_tables(self.lake).values() if not one.lacks_rows]
            for standing in waits:
                held.release(self.lake, standing, reason="a hostile run lets go")
            if not waits:
                break
            self._apply()
        names = {table_of(path) for path in self.touched}
        names &= {table.dotted for table in tables_at(self.server)}
        for _ in range(_READERS_MAX):  # a table may come to wait for its rows while a reader is at others
            Reading(self.road, self.spark).run(*sorted(names))
            self._apply()
            states = held.last_states(self.lake)
            if not any(it.lacks_rows or it.state is State.SNAPSHOT for it in states.values()):
                break
            # A reader that failed at a table asks for it again only later: a person does so now.
            names = {table.dotted for table in tables_at(self.server)}
            names &= {name for name, it in states.items() if it.lacks_rows}
        self.touched.clear()

    def compare(self) -> str:
        """How many rows, in words. Raises Wrong."""
        return Ends(self.server, self.road, self.folder, {table_of(path) for path in self._wider}).compare()
