"""A route whose target is the name of a table that no route names: its rows are no shard's.

In:  a real MariaDB; one table of the target's own name and two shards, in every order of arrival.
Out: silver never mixes them: the table is held by name, with what is right in it; once the pipeline file tells them
     apart it is equal to the shards that are left.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.support.readers import by_duckdb
from tidegate import config, tables
from tidegate.lake.standing.held import release
from tidegate.local.server import Server
from tidegate.standing.causes import Cause

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(900)]

DEFINED = "(id INT PRIMARY KEY, v INT)"


class Mixed(Road):
    """`mix`.`orders` beside `mix_1`.`orders` and `mix_2`.`orders`, which a route brings to that very name."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.at = f"mix{os.getpid()}"
        super().__init__(server, folder, include=f"{self.at}.*.*")
        self.routed = rf", routes: [{{match: '{self.at}_\d+.orders', to: {self.at}.orders}}]}}"
        self.keeps("")
        self.name = f"{self.at}.orders"

    def keeps(self, exclude: str) -> None:
        left_out = f", exclude: ['{exclude}']" if exclude else ""
        self.file.write_text(self.text.replace(f"['{self.at}.*.*']}}", f"['{self.at}.*.*']{left_out}{self.routed}"))
        self.pipeline = config.load(self.file)

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.server.query(statement.format(d=self.at))

    def plain(self) -> None:
        self.run("CREATE TABLE {d}.orders " + DEFINED, "INSERT INTO {d}.orders VALUES (1, 100), (2, 200)")

    def shards(self) -> None:
        for number, rows in ((1, "(1, 11), (3, 13)"), (2, "(1, 21)")):
            self.run(
                f"CREATE TABLE {{d}}_{number}.orders {DEFINED}", f"INSERT INTO {{d}}_{number}.orders VALUES {rows}"
            )

    def window(self, spark: SparkSession) -> Cause | None:
        self.capture()
        standing = self.apply(spark).states.get(self.name)
        return standing.cause if standing is not None else None

    def silver(self) -> list[tuple[object, ...]]:
        rows = by_duckdb(self.lake.uri(tables.silver_path(self.at, "orders"))).to_pylist()
        names = (tables.SHARD_DATABASE, "id", "v")
        return sorted((tuple(row[name] for name in names if name in row) for row in rows), key=str)


@pytest.fixture
def mixed(mariadb: Server, tmp_path: Path) -> Iterator[Mixed]:
    road = Mixed(mariadb, tmp_path)
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {tables.WATERMARK_DATABASE}.* TO '{mariadb.user}'@'%'")
    for name in ("", "_1", "_2"):
        road.run(f"DROP DATABASE IF EXISTS {{d}}{name}", f"CREATE DATABASE {{d}}{name}")
    road.capture()
    yield road
    for name in ("", "_1", "_2"):
        road.run(f"DROP DATABASE IF EXISTS {{d}}{name}")


SHARDS = [("{d}_1", 1, 12), ("{d}_1", 3, 13), ("{d}_2", 1, 21)]


def _shards_alone(mixed: Mixed, spark: SparkSession) -> None:
    """The table is left out, and released; one that needs rows is read by a snapshot, by itself."""
    mixed.keeps(f"{mixed.at}.orders")
    mixed.run("UPDATE {d}_1.orders SET v = 12 WHERE id = 1", "UPDATE {d}.orders SET v = 101 WHERE id = 1")
    mixed.capture()
    standing = mixed.apply(spark).states[mixed.name]
    if standing.releasable and not standing.lacks_rows:
        release(mixed.lake, standing)
        mixed.apply(spark)
    Reading(mixed, spark).run()
    assert mixed.window(spark) is None
    assert mixed.silver() == [(name.format(d=mixed.at), *row) for name, *row in SHARDS]


def test_all_in_one_window(mixed: Mixed, spark: SparkSession) -> None:
    mixed.plain()
    mixed.shards()
    assert mixed.window(spark) is Cause.SAME_NAME
    _shards_alone(mixed, spark)


def test_shards_first(mixed: Mixed, spark: SparkSession) -> None:
    mixed.shards()
    assert mixed.window(spark) is None
    mixed.plain()
    assert mixed.window(spark) is Cause.SAME_NAME
    assert len(mixed.silver()) == 3, "what the shards had stays as it was"
    _shards_alone(mixed, spark)


def test_plain_first(mixed: Mixed, spark: SparkSession) -> None:
    mixed.plain()
    assert mixed.window(spark) is None
    mixed.shards()
    assert mixed.window(spark) is Cause.SAME_NAME
    assert mixed.silver() == [(1, 100), (2, 200)]
    _shards_alone(mixed, spark)


def test_a_route_that_comes_later_to_a_table_of_its_own_name(mixed: Mixed, spark: SparkSession) -> None:
    """What silver has is of no shard: all of it is read anew."""
    text = mixed.file.read_text()
    mixed.file.write_text(mixed.text)
    mixed.pipeline = config.load(mixed.file)
    mixed.plain()
    assert mixed.window(spark) is None
    mixed.file.write_text(text.replace(r"_\d+.orders', to", r"(_\d+)?.orders', to"))
    mixed.pipeline = config.load(mixed.file)
    mixed.run("UPDATE {d}.orders SET v = 101 WHERE id = 1")
    assert mixed.window(spark) is Cause.NEEDS_ROWS
    Reading(mixed, spark).run()
    mixed.shards()
    assert mixed.window(spark) is None
    mixed.run("UPDATE {d}_1.orders SET v = 12 WHERE id = 1")
    mixed.window(spark)
    rows = [("{d}", 1, 101), ("{d}", 2, 200), *SHARDS]
    assert mixed.silver() == [(name.format(d=mixed.at), *row) for name, *row in rows]
