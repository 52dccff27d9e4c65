"""Columns that silver leaves out, of a TiCDC's tables: rows, DDL, an update of the key, an exchange of partitions."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.changefeed_world import ChangefeedWorld
from tests.support.changefeed_writer import CREATE_PLAIN, PLAIN, Change, Changefeed, number, plain, ts
from tests.support.stored import places_of

pytestmark = [pytest.mark.spark]

SECRET = "secret-4711"


def test_silver_never_has_a_column_that_is_left_out(spark: SparkSession, tmp_path: Path) -> None:
    feed = Changefeed(tmp_path / "feed")
    made = CREATE_PLAIN.format("shop", "t") + " PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10))"
    feed.ddl("shop.t", ts(1), made, 3, PLAIN)
    feed.ddl("shop.n", ts(2), CREATE_PLAIN.format("shop", "n"), 3, PLAIN)
    feed.rows("shop.t", Change(ts(3), plain(1, SECRET)), folder="105")
    feed.rows("shop.t", Change(ts(4), plain(2, SECRET), plain(1, SECRET)), folder="105")
    feed.rows("shop.n", Change(ts(4), plain(7, SECRET)))
    feed.checkpoint(ts(5))
    world = ChangefeedWorld(tmp_path, str(feed.path), kept=", columns: [{match: 'shop.*', exclude: [WORD.*]}]")
    world.capture()
    assert not world.apply(spark).states
    assert world.silver("shop", "t") == [{"id": 2}]
    feed.ddl("shop.t", ts(6), "ALTER TABLE `shop`.`t` EXCHANGE PARTITION `p0` WITH TABLE `shop`.`n`", 42, PLAIN)
    feed.ddl("shop.n", ts(6), "", 0, PLAIN)
    more = {**PLAIN, "n": {"ColumnType": "INT"}, "word_2": {"ColumnType": "VARCHAR", "ColumnLength": "40"}}
    feed.ddl("shop.n", ts(7), "ALTER TABLE `n` ADD COLUMN `n` INT DEFAULT 7, ADD COLUMN `word_2` VARCHAR(40)", 5, more)
    cells = plain(8, SECRET) | {"n": number(8), "word_2": plain(8, SECRET)["word"]}
    feed.rows("shop.n", Change(ts(8), cells))
    feed.checkpoint(ts(9))
    world.capture()
    held = {name: state.reason for name, state in world.apply(spark).states.items() if state.state == "held"}
    assert not held
    assert world.silver("shop", "t") == [{"id": 7}]
    assert world.silver("shop", "n") == [{"id": 2, "n": 7}, {"id": 8, "n": 8}]
    assert places_of(tmp_path / "lake", SECRET) <= {"bronze", "bronze_log"}
