"""The history of shards that snapshots read: what a shard lacked is unknown, the others' history has no gap."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from tests.kit.road import Road
from tests.support.driver import killed
from tests.support.known_history import check, forget_cuts, since
from tests.support.plain_snapshot import PlainReader
from tests.support.readers import READERS
from tests.support.seeds import seed
from tests.support.servers import FreshDatabase
from tests.support.shard_pasts import ShardPast, work
from tidegate import config, tables
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(1500)]

ROWS = 60
DEFINED = "id BIGINT PRIMARY KEY, place INT, note VARCHAR(20)"


def filled(name: str, first: int = 0) -> list[str]:
    values = ", ".join(f"({at}, {at}, 'old {at}')" for at in range(first, first + ROWS))
    return [f"CREATE TABLE {name} ({DEFINED})", f"INSERT INTO {name} VALUES {values}"]


class Turns:
    """Windows that end wherever they like, while all shards change."""

    def __init__(self, road: Road, past: ShardPast, spark: SparkSession, rng: random.Random) -> None:
        self.road, self.past, self.spark, self.rng = road, past, spark, rng

    def apply(self) -> Application:
        self.road.capture()
        return self.road.apply(self.spark)

    def change(self, *names: str) -> None:
        self.past.done(*work(self.rng, names or [*self.past.states[-1]]))

    def read(self, name: str, *, known: bool = False) -> None:
        """Snapshot a shard. known: silver has all of it already."""
        first = len(self.past.states)
        reader = PlainReader(self.road, self.past.database, name)
        while not reader.told.is_read:
            reader.low()
            if reader.read(ROWS // 6):
                self.change()
                self.apply()  # silver goes beyond the low mark, without this shard
            reader.read(ROWS // 3)
            self.change(name)
            reader.high()
            self.change()
            if self.rng.random() < 0.6:
                self.apply()
        reader.end()
        self.apply()
        if not known:
            self.past.unknown.setdefault(name, set()).update(range(first, len(self.past.states)))
        reader.close()

    def follow(self, text: str) -> None:
        self.road.file.write_text(text)
        self.road.pipeline = config.load(self.road.file)


@pytest.mark.parametrize("writer", ["positional", "merge"])
def test_shards_join_leave_come_back_and_are_read_again(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    database, rng = fresh_database(mariadb), random.Random(seed())
    for statement in [*filled("t_1"), *filled("t_2", ROWS // 2)]:
        mariadb.query(statement, database=database)
    keys = f", history: ['{database}.*'], routes: [{{match: '{database}.t_[0-9]', to: {database}.t}}]"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=keys, apply=f", writer: {writer}")
    road.capture()
    logical = f"{database}.t"
    past = ShardPast(mariadb, database, ["t_1", "t_2", "t_3", "t_4"], source="one", logical=logical)
    past.begin()
    turns = Turns(road, past, spark, rng)
    past.done(f"CREATE TABLE t_3 ({DEFINED})")
    for _ in range(4):
        turns.change()
    past.unknown = {name: set(range(len(past.states))) for name in ("t_1", "t_2")}
    app = turns.apply()
    assert app.states[logical].state == "snapshot", app.states
    for name in ("t_1", "t_2"):
        before = len(past.states)
        turns.read(name)
        for late in ("t_2",) if name == "t_1" else ():
            past.unknown[late].update(range(before, len(past.states)))
        past.check(road)
    assert turns.apply().states[logical].state == "active"

    # In place: no version begins or ends by it.
    turns.read("t_1", known=True)
    past.check(road)
    road.assert_equal()

    gone, back = _leaves_and_joins(turns, keys)
    turns.read("t_3", known=True)
    assert since(road, logical) == 0, "rows that were read may be older"
    for _ in range(3):
        turns.change()
        assert turns.apply().states[logical].state == "active"
    past.check(road)
    road.assert_equal()
    forget_cuts(road)
    assert all(check(road, past, name, spark) for name in past.names), "it is known from a cut on"
    _rebuilt(turns, writer, range(gone, back))


def _leaves_and_joins(turns: Turns, keys: str) -> tuple[int, int]:
    """A shard leaves, and comes back; one with rows joins. The first state without them, and the first one again."""
    road, past = turns.road, turns.past
    turns.follow(road.text.replace(keys, f"{keys}, exclude: ['{past.database}.t_[34]']"))
    turns.apply()
    gone = len(past.states)
    past.done(*filled("t_4")[:1])
    past.done(*filled("t_4")[1:])
    for _ in range(4):
        turns.change()
    turns.apply()
    turns.follow(road.text)
    back = len(past.states)
    turns.change()
    app = turns.apply()
    assert app.states[past.logical].state == "snapshot", app.states
    for name in ("t_3", "t_4"):
        turns.read(name)
        past.unknown[name] = past.unknown[name] | set(range(gone, len(past.states)))
    return gone, back


def _rebuilt(turns: Turns, writer: str, left: range) -> None:
    """From bronze the changes of shards that were left out are told, too: up to where they came back."""
    road, past = turns.road, turns.past
    database, logical = past.database, past.logical
    rows = READERS["DuckDB"](road.lake.uri(tables.silver_path(database, "t"))).to_pylist()
    begun = defaultdict(set)
    for row in rows:
        begun[row[tables.SHARD_TABLE]].add(row[tables.FROM_KNOWN])
    # A shard that was empty when it came back has no rows that a snapshot read.
    assert begun.keys() == set(past.names)
    assert [known for known in begun.values() if known == {True, False}]
    by = "merge" if writer == "positional" else "positional"
    past.logical = f"{database}.by_{by}"
    for name in ("t_3", "t_4"):
        past.unknown[name] -= set(left)
    _rebuild(road, turns.spark, logical, by)
    past.check(road)
    for row in (rebuilt := READERS["DuckDB"](road.lake.uri(tables.silver_path(database, f"by_{by}"))).to_pylist()):
        assert set(row) == set(rows[0])
    never_left = ("t_1", "t_2")
    live, again = (sorted(repr(row) for row in of if row[tables.SHARD_TABLE] in never_left) for of in (rows, rebuilt))
    assert live == again != []


@pytest.mark.parametrize("writer", ["positional", "merge"])
def test_a_shard_that_begins_below_the_others_has_its_versions_once_whatever_is_killed(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    """Silver is beyond the low mark, without the shard: its changes from there on are new, those of the others not."""
    database, rng = fresh_database(mariadb), random.Random(seed())
    for statement in filled("t_1"):
        mariadb.query(statement, database=database)
    keys = f", history: ['{database}.*'], routes: [{{match: '{database}.t_[0-9]', to: {database}.t}}]"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=keys, apply=f", writer: {writer}")
    road.capture()
    past = ShardPast(mariadb, database, ["t_1", "t_2"], source="one", logical=f"{database}.t")
    past.begin()
    turns = Turns(road, past, spark, rng)
    past.done(f"CREATE TABLE t_2 ({DEFINED})")
    turns.change()
    turns.apply()
    reader = PlainReader(road, database, "t_1")
    reader.low()
    for _ in range(3):
        turns.change("t_2")
    past.done("UPDATE t_1 SET place = -1 WHERE id < 5")
    first = len(past.states) - 1
    past.unknown["t_1"] = set(range(first + 1))  # a row that changes while it is read is known from there on
    turns.apply()
    reader.read(2 * ROWS)
    past.done("UPDATE t_1 SET place = -2 WHERE id BETWEEN 3 AND 8")
    reader.high()
    turns.change("t_2")
    past.done("DELETE FROM t_1 WHERE id = 4")
    road.capture()
    points = ["apply_after_snapshot_version", "apply_after_decode", "apply_in_merge"]
    points += ["apply_before_commit", "apply_after_commit"] if writer == "positional" else ["private_before_commit"]
    for point in [*points, "apply_after_merge"]:
        killed(spark, road.file, point)
        turns.change("t_2")
        road.capture()
    turns.apply()
    reader.end()
    assert turns.apply().states[f"{database}.t"].state == "active"
    reader.close()
    past.check(road)
    road.assert_equal()
    moments, versions = past.moments(road), past.versions_of(road, "t_1") or []
    since, upto = moments[first - 1], moments[first]
    begun = {row["id"]: row["place"] for row in versions if since < row[tables.VALID_FROM] < upto}
    assert begun == dict.fromkeys(range(5), -1), "changes below what silver had of the others"


def _rebuild(road: Road, spark: SparkSession, name: str, writer: str) -> None:
    """Beside the live table, by a writer, in whatever windows it takes."""
    text = road.text.replace("writer: merge", "writer: auto").replace("writer: positional", "writer: auto")
    file = road.folder / "other.yaml"
    file.write_text(text.replace("writer: auto", f"writer: {writer}"))
    plan = Rebuild.plan(config.load(file), road.lake, name, "", f"by_{writer}")
    assert rebuild(plan, BackgroundSession(lambda: spark), compare=False, report=road.lines.append) == 0, road.lines
