"""A changefeed's files to silver: capture, bronze, apply on Spark, for what a TiCDC may write."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.changefeed_world import ChangefeedWorld
from tests.support.changefeed_writer import CREATE_PLAIN, PLAIN, Change, Changefeed, plain, ts

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
