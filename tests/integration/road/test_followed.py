"""Tables that join, leave and come back: what the pipeline file keeps changes while the source goes on.

One road and many tables at once: each name says what happened to the table while nobody followed it. In the end silver
is compared with the source's own SELECT, and what can't be had from the log waits by name.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.reached import position_of, run_to
from tests.kit.road import Road
from tests.support.driver import killed
from tests.support.readers import by_duckdb
from tests.support.servers import FreshDatabase
from tidegate import config, tables
from tidegate.errors import LakeRefused
from tidegate.lake import control
from tidegate.lake.figures import status
from tidegate.lake.standing import held
from tidegate.local.server import Server
from tidegate.mysql.capturing.reader import binlog_run
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.facts.server_facts import current_position

pytestmark = [pytest.mark.server, pytest.mark.spark]

# What becomes of a table while it isn't kept; {t} is its name.
MEANWHILE = {
    "rows": ("INSERT INTO {t} VALUES (10, 10)", "UPDATE {t} SET v = 99 WHERE id = 1", "DELETE FROM {t} WHERE id = 2"),
    "ddl": ("INSERT INTO {t} VALUES (10, 10)", "ALTER TABLE {t} ADD COLUMN w INT", "INSERT INTO {t} VALUES (11, 1, 1)"),
    "again": (
        "DROP TABLE {t}",
        "CREATE TABLE {t} (id INT PRIMARY KEY, x VARCHAR(9))",
        "INSERT INTO {t} VALUES (1, 'n')",
    ),
    "gone": ("DROP TABLE {t}",),
    "emptied": ("TRUNCATE TABLE {t}", "INSERT INTO {t} VALUES (7, 7)"),
    "quiet": (),
}
LATER = "INSERT INTO {t} (id) VALUES (100)"


class Changing(Road):
    """A road whose pipeline file is rewritten."""

    def selects(self, include: str, *, exclude: str = "", routes: str = "") -> None:
        parts = [f"include: [{include}]", *([f"exclude: [{exclude}]"] if exclude else [])]
        parts += [f"routes: [{routes}]"] if routes else []
        head, _, tail = self.text.partition("tables: ")
        self.text = f"{head}tables: {{{', '.join(parts)}}}\n{tail.partition(chr(10))[2]}"
        self.file.write_text(self.text)
        self.pipeline = config.load(self.file)

    def run(self, statements: list[str]) -> None:
        with self.server.connect(self.database) as connection, connection.cursor() as cursor:
            cursor.execute("SET autocommit = 1")
            for statement in statements:
                cursor.execute(statement)

    database: str = ""


def made(names: list[str]) -> list[str]:
    return [
        text
        for name in names
        for text in (
            f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT)",
            f"INSERT INTO {name} VALUES (1, 1), (2, 2), (3, 3)",
        )
    ]


def meanwhile(prefix: str) -> list[str]:
    return [text.format(t=prefix + kind) for kind, texts in MEANWHILE.items() for text in texts]


def later(prefixes: tuple[str, ...]) -> list[str]:
    return [LATER.format(t=prefix + kind) for prefix in prefixes for kind in MEANWHILE if kind != "gone"]


@pytest.mark.timeout(900)
def test_what_joins_leaves_and_comes_back_is_whole_or_waits_by_name(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Changing(mariadb, tmp_path, include=f"{database}.out_.*")
    road.database = database
    one, more = f"'{database}.(out|keep|one|s1).*'", f"'{database}.*'"
    shards = f"{{match: '{database}.s\\d.*', to: '{database}.shards'}}"
    singles = f"{{match: '{database}.one\\d', to: '{database}.ones'}}"
    road.selects(one, routes=shards)
    road.capture()
    late, out = [f"late_{kind}" for kind in MEANWHILE], [f"out_{kind}" for kind in MEANWHILE]
    road.run(made([*late, *out, "keep", "one1", "one2", "s1", "s2", "late_moved"]))
    road.run(["RENAME TABLE late_moved TO late_taken", "INSERT INTO late_taken VALUES (5, 5)"])
    road.capture()
    road.apply(spark)

    # Some are left out, and two flow into one table from now on.
    road.selects(one, exclude=f"'{database}.out_.*'", routes=f"{shards}, {singles}")
    road.run(
        [*meanwhile("late_"), *meanwhile("out_"), "INSERT INTO keep VALUES (9, 9)", "INSERT INTO one1 VALUES (8, 8)"]
    )
    road.capture()
    killed(spark, road.file, "apply_after_followed")
    app = road.apply(spark)
    assert app.states[f"{database}.out_rows"].state == "left"
    assert app.states[f"{database}.one1"].state == "left"
    assert road.assert_equal()["one2"] == 3

    # All are kept; a table that catches up is killed at its points, and no other table waits for it.
    road.selects(more, routes=f"{shards}, {singles}")
    road.run(["INSERT INTO keep VALUES (10, 10)", "INSERT INTO one2 VALUES (8, 8)"])
    road.capture()
    for point in ("apply_after_followed", "apply_after_commit:2", "apply_before_publish:2"):
        killed(spark, road.file, point)
    app = road.apply(spark)
    waits = {name: state for name, state in app.states.items() if state.state == "held"}
    assert set(waits) == {f"{database}.late_taken"}
    assert "renamed from another table" in waits[f"{database}.late_taken"].reason
    told = {table.table: table.reason for table in status.table_statuses(road.lake)}
    assert f"lacks rows of {database}.s2 of one" in told[f"{database}.shards"], "its other shards go on"
    assert {state.state for state in app.states.values()} == {"held", "dropped", "active", "left", "snapshot"}
    found = road.assert_equal()
    whole = {f"{prefix}_{kind}" for prefix in ("late", "out") for kind in MEANWHILE if kind != "gone"}
    assert whole <= found.keys()

    # The shard is left out again, a truncated table is known again, the route has another name.
    road.selects(more, exclude=f"'{database}.s2'", routes=f"{shards}, {singles.replace('.ones', '.singles')}")
    road.run([*later(("late_", "out_")), "TRUNCATE TABLE late_taken", "INSERT INTO one1 VALUES (77, 7)"])
    road.run(["INSERT INTO late_taken VALUES (6, 6)", "INSERT INTO s1 VALUES (6, 6)"])
    road.capture()
    app = road.apply(spark)
    assert not [name for name, state in app.states.items() if state.state in ("held", "released")]
    assert app.states[f"{database}.ones"].state == "left"
    found = road.assert_equal()
    assert (found["late_taken"], found["s1"], found["one1"]) == (1, 4, 5)
    assert_accounted(road)
    assert_belongs(road, spark)


def assert_belongs(road: Road, spark: SparkSession) -> None:
    """Under another name all of bronze would be applied again."""
    road.file.write_text(road.text.replace("pipeline: road", "pipeline: other"))
    road.pipeline = config.load(road.file)
    with pytest.raises(LakeRefused, match="belongs to pipeline road"):
        road.apply(spark)


def assert_accounted(road: Road) -> None:
    """Windows below the cut have their rows in the ledger too."""
    ledger = control.read(road.lake, tables.LEDGER)
    sums = [ledger[name].to_numpy() for name in ("decoded_bytes", "ignored_bytes", "quarantined_bytes")]
    assert (sum(sums) == ledger["payload_bytes"].to_numpy()).all()


class TwoSources(Road):
    """Sources one (MariaDB, table a) and two (MySQL, table b)."""

    def __init__(self, servers: tuple[Server, Server], databases: tuple[str, str], folder: Path) -> None:
        super().__init__(servers[0], folder, include=f"({'|'.join(databases)}).*")
        self.other, (self.mine, self.theirs) = servers[1], databases
        self.alone = self.pipeline
        self.file.write_text(self.text.replace("start: now}}", "start: now}, two: {conn_id: c, flavour: mysql}}"))
        self.both = config.load(self.file)

    def insert(self, number: int) -> None:
        self.server.query(f"INSERT INTO {self.mine}.a VALUES ({number})")
        self.other.query(f"INSERT INTO {self.theirs}.b VALUES ({number})")

    def capture_other(self, *, heartbeat: bool = False) -> None:
        """heartbeat: until one proves that nothing else was committed by now."""
        other = self.other
        info = ConnectionInfo(host=other.host, port=other.port, user=other.user, password=other.password)
        with other.connect() as connection, connection.cursor() as cursor:
            goal = current_position(cursor)
        for _ in range(10):
            run = binlog_run(self.pipeline, "two", info, self.folder / "state")
            if heartbeat:
                found = run_to(run, goal, 60, idle_seconds=run.pipeline.capture.idle_end_seconds, heartbeat=True)
            else:
                found = run.run(60, idle_seconds=0.8)
            if found.last_seq and goal is not None and position_of(found.position) >= goal:
                break

    def settle(self) -> None:
        """MariaDB's clock is whole seconds: only a later one proves that all of the other source is below the cut.

        A cut that went on without the other source may be later than its last commit. Its quiet must be proved past it.
        """
        time.sleep(1.1)
        self.server.query(f"INSERT INTO {self.mine}.tick VALUES ()")  # REPLACE by the same row logs nothing
        self.capture_other()
        self.capture()
        self.capture_other(heartbeat=True)

    def counts(self, spark: SparkSession) -> tuple[int, int]:
        """Rows in silver of a and of b, after all was applied."""
        self.apply(spark)
        return self._rows(self.mine, "a"), self._rows(self.theirs, "b")

    def _rows(self, database: str, table: str) -> int:
        path = tables.silver_path(database, table)
        return by_duckdb(self.lake.uri(path)).num_rows if (self.folder / "lake" / path).exists() else 0


@pytest.mark.timeout(900)
def test_a_source_that_joins_stalls_leaves_and_comes_back_loses_nothing_and_stops_nobody(
    mariadb: Server, mysql9: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    mine, other = fresh_database(mariadb), fresh_database(mysql9)
    road = TwoSources((mariadb, mysql9), (mine, other), tmp_path)
    road.capture()

    # The second is captured while an application that doesn't know of it publishes cuts.
    mariadb.query(f"CREATE TABLE {mine}.a (id INT PRIMARY KEY)")
    mariadb.query(f"CREATE TABLE {mine}.tick (id INT PRIMARY KEY AUTO_INCREMENT)")
    road.pipeline = road.both
    road.capture_other()
    mysql9.query(f"CREATE TABLE {other}.b (id INT PRIMARY KEY)")
    road.insert(1)
    road.capture_other()
    road.pipeline = road.alone
    road.insert(2)
    road.capture()
    assert road.counts(spark) == (2, 0)
    road.pipeline = road.both
    road.settle()
    assert road.counts(spark) == (2, 2)

    # It stalls: the first goes on, its table is named.
    stalls = road.both.apply.model_copy(update={"stalled_seconds": 0})
    road.pipeline = road.both.model_copy(update={"apply": stalls})
    road.insert(3)
    time.sleep(1.1)
    road.capture(heartbeat=True)
    assert road.counts(spark) == (3, 2)
    state = held.last_states(road.lake)[f"{other}.b"]
    assert (state.state, state.source) == ("released", "two")
    assert "source two" in state.reason
    road.pipeline = road.both
    road.settle()
    assert road.counts(spark) == (3, 3)

    # It is taken out, and put back.
    road.pipeline = road.alone
    road.insert(4)
    road.capture()
    assert road.counts(spark) == (4, 3)
    assert held.last_states(road.lake)[f"{other}.b"].state == "left"
    mysql9.query(f"ALTER TABLE {other}.b ADD COLUMN v INT DEFAULT 7")
    road.pipeline = road.both
    mariadb.query(f"INSERT INTO {mine}.a VALUES (5)")
    road.settle()
    assert road.counts(spark) == (5, 4)
