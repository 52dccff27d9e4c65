"""A changefeed's files to silver: capture, bronze, apply on Spark, for what a TiCDC may write."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.changefeed_world import ChangefeedWorld
from tests.support.changefeed_writer import CREATE_PLAIN, PLAIN, Change, Changefeed, number, plain, ts
from tidegate.standing.shown import way_out

pytestmark = [pytest.mark.spark]


def test_inserts_updates_and_deletes_are_in_silver_up_to_the_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    feed = Changefeed(tmp_path / "feed")
    feed.ddl("shop", ts(1), "CREATE DATABASE `shop`", 1)
    feed.ddl("shop.t", ts(2), CREATE_PLAIN.format("shop", "t"), 3, PLAIN)
    feed.rows(
        "shop.t",
        Change(ts(3), plain(1, "one")),
        Change(ts(3), plain(2, None)),
        Change(ts(4), plain(3, 'three, "or" so\n')),
        Change(ts(5), plain(1, "uno"), plain(1, "one")),
        Change(ts(6), None, plain(3, 'three, "or" so\n')),
        Change(ts(9), plain(9, "above the checkpoint")),
    )
    feed.checkpoint(ts(7))
    world = ChangefeedWorld(tmp_path, str(feed.path))
    assert world.capture() == ts(7)
    app = world.apply(spark)
    assert not app.states, app.states
    assert world.silver("shop", "t") == [{"id": 1, "word": "uno"}, {"id": 2, "word": None}]
    feed.rows("shop.t", Change(ts(10), plain(2, "two"), plain(2, None)))
    feed.checkpoint(ts(11))
    assert world.capture() == ts(11)
    world.apply(spark)
    assert world.silver("shop", "t") == [
        {"id": 1, "word": "uno"},
        {"id": 2, "word": "two"},
        {"id": 9, "word": "above the checkpoint"},
    ]


def test_ddl_partitions_and_tables_that_were_there_are_followed(spark: SparkSession, tmp_path: Path) -> None:
    """One changefeed: ALTER, RENAME (two names change places), TRUNCATE, DROP, partitions, a table that it found."""
    feed = Changefeed(tmp_path / "feed")
    feed.found("shop.old", ts(0), PLAIN)
    for at, table in enumerate(("a", "b", "grown", "emptied", "gone"), 1):
        feed.ddl(f"shop.{table}", ts(at), CREATE_PLAIN.format("shop", table), 3, PLAIN)
    made = CREATE_PLAIN.format("shop", "parts") + " PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10),"
    feed.ddl("shop.parts", ts(6), made + " PARTITION p1 VALUES LESS THAN (100))", 3, PLAIN)
    for table in ("a", "b", "grown", "emptied", "gone", "old"):
        feed.rows(f"shop.{table}", Change(ts(10), plain(1, f"of {table}")))
    feed.ddl("shop.n", ts(7), CREATE_PLAIN.format("shop", "n"), 3, PLAIN)
    feed.rows("shop.n", Change(ts(10), plain(7, "moves")))
    feed.rows("shop.parts", Change(ts(10), plain(50, "stays")), folder="106")
    feed.rows("shop.parts", Change(ts(11), plain(5, "goes")), folder="105")
    feed.checkpoint(ts(12))
    world = ChangefeedWorld(tmp_path, str(feed.path), extra=", all_rows: true")
    world.capture()
    world.apply(spark)
    assert world.silver("shop", "old") == [{"id": 1, "word": "of old"}]
    assert world.silver("shop", "parts") == [{"id": 5, "word": "goes"}, {"id": 50, "word": "stays"}]

    more = {**PLAIN, "n": {"ColumnType": "INT"}}
    feed.ddl("shop.grown", ts(20), "ALTER TABLE `grown` ADD COLUMN `n` INT DEFAULT 7", 5, more)
    feed.rows("shop.grown", Change(ts(21), plain(2, "after") | {"n": number(8)}))
    feed.ddl("shop.emptied", ts(22), "TRUNCATE TABLE `Emptied`", 11)
    feed.rows("shop.emptied", Change(ts(23), plain(2, "since")))
    feed.ddl("shop.gone", ts(24), "DROP TABLE `SHOP`.`Gone`", 4)
    feed.ddl("shop.parts", ts(25), "ALTER TABLE `shop`.`parts` TRUNCATE PARTITION `p0`", 23)
    feed.ddl("shop.a", ts(26), "ALTER TABLE `a` SET TIFLASH REPLICA 1", 30)
    for old, new in (("b", "c"), ("a", "b")):  # of one RENAME TABLE b TO c, a TO b
        feed.ddl(f"shop.{new}", ts(27), f"RENAME TABLE `shop`.`{old}` TO `shop`.`{new}`", 47, PLAIN)
    feed.rows("shop.b", Change(ts(28), plain(2, "came behind a")))
    feed.ddl(
        "shop.parts", ts(29), "ALTER TABLE `shop`.`parts` EXCHANGE PARTITION `p0` WITH TABLE `shop`.`n`", 42, PLAIN
    )
    feed.ddl("shop.n", ts(29), "", 0, PLAIN)  # as newer TiCDCs write it of the other table
    feed.rows("shop.n", Change(ts(30), plain(8, "since")))
    feed.checkpoint(ts(31))
    world.capture()
    app = world.apply(spark)
    held = {name: state.reason for name, state in app.states.items() if state.state == "held"}
    assert not held, held
    assert world.silver("shop", "grown") == [
        {"id": 1, "word": "of grown", "n": 7},
        {"id": 2, "word": "after", "n": 8},
    ]
    assert world.silver("shop", "emptied") == [{"id": 2, "word": "since"}]
    assert world.silver("shop", "parts") == [{"id": 7, "word": "moves"}, {"id": 50, "word": "stays"}]
    assert world.silver("shop", "n") == [{"id": 8, "word": "since"}]
    assert world.silver("shop", "c") == [{"id": 1, "word": "of b"}]
    assert world.silver("shop", "b") == [{"id": 1, "word": "of a"}, {"id": 2, "word": "came behind a"}]
    assert app.states["shop.gone"].state == "dropped"
    assert app.states["shop.a"].state == "dropped"


def test_what_the_files_do_not_tell_is_held_by_name_and_others_go_on(spark: SparkSession, tmp_path: Path) -> None:
    feed = Changefeed(tmp_path / "feed")
    feed.found("shop.old", ts(0), PLAIN)
    feed.ddl("shop.t", ts(1), CREATE_PLAIN.format("shop", "t"), 3, PLAIN)
    feed.ddl("shop.back", ts(1), CREATE_PLAIN.format("shop", "back"), 3, PLAIN)
    feed.ddl("shop.keyless", ts(2), "CREATE TABLE keyless (id INT)", 3, {"id": {"ColumnType": "INT"}})
    for table in ("old", "t", "back"):
        feed.rows(f"shop.{table}", Change(ts(3), plain(1, "x")))
    feed.rows("shop.keyless", Change(ts(3), {"id": number(1)}))
    feed.ddl("shop.back", ts(4), "DROP TABLE `shop`.`back`", 4)
    feed.ddl("shop.back", ts(5), "RECOVER TABLE `back`", 25, PLAIN)
    feed.rows("shop.t", Change(ts(6), plain(2, "y")))
    feed.checkpoint(ts(9))
    world = ChangefeedWorld(tmp_path, str(feed.path))
    world.capture()
    app = world.apply(spark)
    held = {name: state.reason for name, state in app.states.items() if state.state == "held"}
    assert set(held) == {"shop.old", "shop.back", "shop.keyless"}, app.states
    assert not [reason for reason in held.values() if "snapshot" in reason], "nobody reads one of them"
    assert "no snapshot reads this source" in way_out(app.states["shop.old"], app.pipeline.lacks_snapshots)
    assert world.silver("shop", "t") == [{"id": 1, "word": "x"}, {"id": 2, "word": "y"}]
    for number_, table in enumerate(("old", "back"), 10):
        feed.ddl(f"shop.{table}", ts(number_), f"TRUNCATE TABLE {table}", 11)
        feed.rows(f"shop.{table}", Change(ts(20), plain(3, "since")))
    feed.checkpoint(ts(30))
    world.capture()
    app = world.apply(spark)
    assert {name for name, state in app.states.items() if state.state == "held"} == {"shop.keyless"}
    assert world.silver("shop", "old") == world.silver("shop", "back") == [{"id": 3, "word": "since"}]
