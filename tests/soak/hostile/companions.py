"""Companions of a pipeline that works: kills of apply, edits of its file, other hands on silver.

In:  a road and its file, Spark, a seeded random.Random; what people at the source do (work, names, note).
Out: Companions: a method per kind, then settle(): nothing waits that a person or a snapshot can end.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.soak import hands
from tests.soak.copies import Copies
from tests.soak.hostile.settings import Settings
from tests.soak.hostile.tables import table_of
from tests.soak.hostile.variables import global_variable
from tests.soak.witness import Wrong
from tests.support import driver
from tests.support.nursery import TRANSIENT
from tidegate import config
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing import held
from tidegate.local.server import Server
from tidegate.tables import State

_APPLY_SECONDS: Final = 600
_READERS_MAX: Final = 4


class HostileRoad(Road):
    """A road whose pipeline file changes on the way."""

    def again(self) -> None:
        """As the next process reads it."""
        self.pipeline = config.load(self.file)

    def reopen(self) -> None:
        """Another lake in the same folder."""
        self.lake = LakeFiles(self.lake.root)


class Altered(NamedTuple):
    """Tables of silver with rows of somebody else; wider: with columns of somebody else."""

    touched: frozenset[str]
    wider: frozenset[str]


class Companions:
    """touched: silver's tables whose rows somebody else has changed. wider: those that may have more columns."""

    folder: Path
    server: Server
    road: HostileRoad
    spark: SparkSession
    settings: Settings
    copies: Copies[Altered]

    def __init__(self, rng: random.Random) -> None:
        self.touched: set[str] = set()
        self.wider: set[str] = set()
        self._rng = rng

    @property
    def lake(self) -> LakeFiles:
        return self.road.lake

    # --- people at the source ------------------------------------------------------------------------------

    def note(self, line: str) -> None:
        """Into the run's book."""
        raise NotImplementedError

    def work(self, statements: int) -> None:
        """People send so many."""
        raise NotImplementedError

    def names(self) -> Collection[str]:
        """`database.table` of what the source has now."""
        raise NotImplementedError

    # --- kinds ----------------------------------------------------------------------------------------------

    def _apply(self) -> None:
        self.road.apply(self.spark)

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
        names = list(self.names())
        for _ in range(edits):
            self.note(f"file: {self.settings.edit(self._rng, names)}")
        self.road.again()

    def _silver(self, which: float) -> str:
        """The path of a table that is at the source; "" when none is in silver yet."""
        root = self.folder / "lake"
        paths = sorted(str(log.parent.relative_to(root)) for log in root.glob("silver/*/*/_delta_log"))
        at_source = set(self.names())
        paths = [path for path in paths if table_of(path) in at_source]
        return paths[int(which * len(paths))] if paths else ""

    def _silver_hand(self, hand: str, which: float) -> None:
        self.road.capture()
        self._apply()
        path = self._silver(which)
        if not path:
            return
        if hands.KINDS[hand](self, path):
            self.touched.add(path)
        if hand == hands.own_column.__name__:
            self.wider.add(path)
        self.work(5)

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
        self.wider.add(path)
        self.work(5)

    def _set_global(self) -> None:
        statement = global_variable(self._rng, mariadb=self.server.flavour == "mariadb")
        self.note(statement)
        try:
            self.server.query(statement)
        except Exception as error:  # noqa: BLE001 - not every version has each
            self.note(f"refused: {error}")

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
        altered = Altered(frozenset(self.touched), frozenset(self.wider))
        self.copies.backup(altered, renewed, self._work_on if busy else None)

    def _work_on(self) -> None:
        self.work(10)
        self.road.capture()
        self._apply()

    def _restore(self, which: float) -> None:
        """An older lake, while the source has gone on; what others did to silver before the backup is there again."""
        if not self.copies.made:
            self._backup(0.0, busy=False)
            self._work_on()
        backup = self.copies.made[int(which * len(self.copies.made))]
        self.copies.restore(backup, self.folder / "lake")
        self.touched |= backup.memory.touched
        self.wider |= backup.memory.wider
        self.road.reopen()

    # --- the end ------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """The file keeps all, people answer what waits for them, snapshots read the rest."""
        self.note("--- settle")
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
        names &= set(self.names())
        for _ in range(_READERS_MAX):  # a table may come to wait for its rows while a reader is at others
            Reading(self.road, self.spark).run(*sorted(names))
            self._apply()
            states = held.last_states(self.lake)
            if not any(it.lacks_rows or it.state is State.SNAPSHOT for it in states.values()):
                break
            # A reader that failed at a table asks for it again only later: a person does so now.
            names = set(self.names()) & {name for name, it in states.items() if it.lacks_rows}
        self.touched.clear()
