"""Random foreign keys and random changes at a real server: after each round silver has what its SELECT has.

A round of many schemas is one window, or several; each has a database of its own. Apply is a new process each time, and
killed now and then. What is held must be held for a reason that is known, and a snapshot ends what it can by itself.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Self

import pytest
from pyspark.sql import SparkSession

from tests.kit.changelogs import changes_of, played, silver_rows
from tests.kit.road import Road
from tests.kit.snapshots import Reading, changing
from tests.support import driver
from tests.support.own_server import own_server_or_skip
from tests.support.seeds import LONG, VARIABLE, many, seed
from tests.support.workloads.foreign_keys import ForeignKeyWorkload
from tidegate.changelog.changelog_table import BEGIN, GAP, ROW_OPS, changelog
from tidegate.local.server import Server
from tidegate.standing.causes import Cause
from tidegate.tables import WATERMARK_DATABASE, State, silver_path

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.long]

_NATIVE: Final = ("--innodb-native-foreign-keys=ON",)
_POINTS: Final = (
    *("apply_before_publish", "apply_in_publish", "apply_after_publish", "apply_before_schema_history"),
    *("apply_after_schema_history", "apply_after_changelog", "apply_after_decode", "apply_after_stage"),
    *("apply_after_merge", "apply_in_merge", "apply_before_commit", "apply_after_commit", "delta_before_commit"),
    *("delta_after_commit", "apply_after_prewrites", "apply_in_chunks", "apply_after_watermarks"),
)
# What apply is told, and the schemas of `make test-long`: 501 on three servers. MERGE takes seconds for each table.
_STYLES: Final = {
    "auto": (", writer: auto", 90),
    "small": (", window_bytes: 1048576", 60),
    "merge": (", writer: merge", 17),
}


@pytest.fixture(scope="module", params=["mariadb", "mariadb118", "mysql9"])
def unlogging(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that carries out foreign keys below its log: MariaDB, MySQL with InnoDB's own."""
    options = _NATIVE if request.param == "mysql9" else ()
    with own_server_or_skip(request.param, tmp_path_factory.mktemp(request.param), options=options) as server:
        rights = "CREATE, SELECT, INSERT, UPDATE"
        server.query(f"GRANT {rights} ON {WATERMARK_DATABASE}.* TO '{server.user}'@'%'")
        if server.flavour == "mysql":
            server.query(f"GRANT XA_RECOVER_ADMIN ON *.* TO '{server.user}'@'%'")
        yield server


class Batch:
    """Schemas that share a server and a pipeline. tally: what was done, and what was held, by cause and phrase."""

    def __init__(self, server: Server, spark: SparkSession, folder: Path, first: int, schemas: int, style: str) -> None:
        self.server, self.spark, self.first = server, spark, first
        self.style = style
        self.tally = Counter[str](schemas=schemas)
        self.held: dict[str, str] = {}
        self._draw = random.Random(first)
        self.workloads: dict[str, ForeignKeyWorkload] = {}
        for number in range(first, first + schemas):
            name, before = f"fk_{os.getpid()}_{number}", next(reversed(self.workloads), "")
            server.query(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4")
            self.workloads[name] = ForeignKeyWorkload(server, name, number, before)
        extra = ", exclude: ['*.out[0-9]+'], soft_delete: ['*.soft[0-9]+'], changelog: ['*.t[02]']"
        include = f"({'|'.join(self.workloads)}).*"
        self.road = Road(server, folder, include=include, extra=extra, apply=_STYLES[style][0])
        self.road.capture()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for workload in self.workloads.values():
            workload.answer()
        with self.server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET foreign_key_checks = 0")  # keys lead from one database into another
            for name in self.workloads:
                cursor.execute(f"DROP DATABASE `{name}`")

    def round(self, number: int) -> None:
        for at, workload in enumerate(self.workloads.values()):
            workload.round() if number else workload.create()
            if self.style == "small" and at % 7 == 0:
                self.road.capture()
        self.road.capture()
        for _ in range(self._draw.randint(0, 3)):
            self._kill()
        self._note(self.road.apply(self.spark))
        self.check(f"round {number}")

    def _kill(self) -> None:
        point = f"{self._draw.choice(_POINTS)}:{self._draw.choice([1, 1, 2, 3, 5, 8, 20])}"
        process = driver.started(self.spark, self.road.file, point, log=self.road.folder / "apply.log")
        process.join(600)
        assert process.exitcode in (0, -9), (point, (self.road.folder / "apply.log").read_text()[-3000:])
        self.tally["kills"] += process.exitcode == -9
        driver.settled(self.spark, cancel=process.exitcode == -9, what=point)

    def under_load(self) -> None:
        """Some tables are read by snapshots while their rows change."""
        names = self._draw.sample(sorted(self.workloads), min(5, len(self.workloads)))
        reading = Reading(self.road, self.spark)

        def statements(_: int) -> list[str]:
            for name in names:
                self.workloads[name].round(4, ddl=False)
            return []

        with changing(self.server, names[0], statements, 0.2):
            app = reading.run(*(f"{name}.{table}" for name in names for table in self._usual(name)))
        self._note(app)
        self.road.capture()
        self._note(self.road.apply(self.spark))
        self.check("a snapshot under load")

    def _usual(self, database: str) -> list[str]:
        return [str(table) for (table,) in self.server.query("SHOW TABLES", database=database) if table[0] == "t"]

    def _at_source(self, names: Iterable[str]) -> list[str]:
        known = {
            name: {table for (table,) in self.server.query("SHOW TABLES", database=name)} for name in self.workloads
        }
        return [name for name in names if name.partition(".")[2] in known[name.partition(".")[0]]]

    def settle(self) -> None:
        """What a snapshot can end is ended by one that comes by itself."""
        for workload in self.workloads.values():
            workload.answer()
        for attempt in range(3):
            self.road.capture()
            app = self.road.apply(self.spark)
            lacking = [name for name, state in app.states.items() if state.lacks_rows]
            if not lacking:
                break
            asked = self._at_source(lacking) if attempt else ()  # one that failed comes by itself after a pause
            Reading(self.road, self.spark).run(*asked)
            self.tally["snapshots by themselves"] += 1
        self.check("the end")
        waits = {name: state.reason for name, state in app.states.items() if state.state is State.HELD}
        # One that was renamed while it was held goes with the table of its new name, once that goes on.
        causes = {app.states[name].cause for name in self._at_source(waits)}
        assert causes <= {Cause.UNLOGGED}, f"{VARIABLE}={self.first}: {waits}"
        self.tally["held in the end"] += len(waits)
        self._changelogs(app)
        self.tally["compared"] = self.road.compared
        self.tally["statements"] = sum(len(workload.done) for workload in self.workloads.values())

    def _note(self, app: Any) -> None:
        for name, state in app.states.items():
            if state.state is State.HELD:
                phrase = state.reason.split("can't be followed", 1)[-1].rsplit("; ", 1)[0]
                for given in sorted(name.split("."), key=len, reverse=True):
                    phrase = phrase.replace(given, "...")
                if self.held.get(name) != phrase:
                    self.held[name] = phrase
                    self.tally[f"held {state.cause}: {phrase[:160]}"] += 1
            else:
                self.held.pop(name, None)

    def check(self, when: str) -> None:
        try:
            self.road.assert_equal()
        except AssertionError as error:
            wrong = str(error).split(".", 1)[0]
            told = "\n".join(self.workloads[wrong].done) if wrong in self.workloads else ""
            raise AssertionError(f"{VARIABLE}={self.first}, {when}: {error}\n{told}") from error

    def _changelogs(self, app: Any) -> None:
        """Each changelog without a gap, played, leaves what silver has."""
        for name in (f"{database}.{table}" for database in self.workloads for table in ("t0", "t2")):
            pair, state = name.split("."), app.states.get(name)
            if state is not None and state.state is not State.ACTIVE:
                continue
            if not self.road.lake.log(changelog(*pair).path).state().created:
                continue
            rows = changes_of(self.road.lake, *pair)
            if words := {row["op"] for row in rows} - {*ROW_OPS, BEGIN, "create", "truncate", "drop"}:
                self.tally[f"changelogs with {'a gap' if GAP in words else min(words)}"] += 1
                continue
            made = self.road.lake.log(silver_path(*pair)).state().created
            there = silver_rows(self.road.lake, *pair) if made else Counter[str]()
            assert played(rows) == there, f"{VARIABLE}={self.first}: changelog of {name}"
            self.tally["changelogs played"] += 1


@pytest.mark.timeout(7000)
@pytest.mark.parametrize("style", _STYLES if LONG else ["auto"])
def test_silver_follows_random_foreign_keys(style: str, unlogging: Server, spark: SparkSession, tmp_path: Path) -> None:
    schemas = int(os.environ.get("TIDEGATE_CASCADE_SEEDS") or many(3, _STYLES[style][1]))
    rounds = int(os.environ.get("TIDEGATE_CASCADE_ROUNDS") or many(3, 5))
    first = seed() + list(_STYLES).index(style) * 1000
    with Batch(unlogging, spark, tmp_path, first, schemas, style) as batch:
        try:
            for number in range(rounds):
                batch.round(number)
            if LONG:
                batch.under_load()
            batch.settle()
        finally:
            print(f"{unlogging.flavour} {style} {first}: {dict(sorted(batch.tally.items()))}")
