"""Every change that a changefeed wrote is in its table's changelog exactly once, whatever is killed or comes again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.kit.changelogs import changes_of, played, silver_rows
from tests.support.changefeed_world import ChangefeedWorld
from tests.support.changefeed_writer import CREATE_PLAIN, PLAIN, Change, Changefeed, number, plain, ts
from tests.support.driver import killed
from tidegate.changelog.changelog_table import ROW_OPS

pytestmark = [pytest.mark.spark]

FIRST = (
    Change(ts(3), plain(1, "one")),
    Change(ts(3), plain(2, None)),
    Change(ts(5), plain(1, 'eins, "so"\n'), plain(1, "one")),
)
# Of one transaction: 2 becomes 4, which TiCDC writes as two, in no order; then 1 and 4 are changed.
LATER = (
    Change(ts(6), plain(4, None)),
    Change(ts(6), None, plain(2, None)),
    Change(ts(7), plain(4, "vier"), plain(4, None)),
    Change(ts(8), None, plain(1, 'eins, "so"\n')),
)
CSV_OLD = "csv: {old_value: true, binary_encoding: base64}"


def sides(rows: list[dict[str, Any]]) -> list[tuple[str, Any, Any]]:
    return [(row["op"], row["before"], row["after"]) for row in rows if row["op"] in ROW_OPS]


@pytest.mark.parametrize(
    ("protocol", "extra", "old"),
    [("canal-json", "", True), ("csv", f", {CSV_OLD}", True), ("csv", "", False)],
    ids=["canal-json", "csv", "csv without old values"],
)
def test_changes_are_logged_once_through_kills_and_lines_that_come_again(
    protocol: str, extra: str, *, old: bool, spark: SparkSession, tmp_path: Path
) -> None:
    feed = Changefeed(tmp_path / "feed", protocol, csv={"old_value": True} if extra else {})
    feed.ddl("shop.t", ts(1), CREATE_PLAIN.format("shop", "t"), 3, PLAIN)
    feed.rows("shop.t", *FIRST)
    feed.rows("shop.t", *FIRST[1:], writer="another")  # after a restart, by another server
    feed.checkpoint(ts(5))
    world = ChangefeedWorld(
        tmp_path, str(feed.path), extra=f", protocol: {protocol}{extra}", kept=", changelog: ['shop.t']"
    )
    world.capture()
    for point in ("apply_after_changelog", "apply_before_publish"):
        killed(spark, world.file, point)
    world.apply(spark)
    first = changes_of(world.lake, "shop", "t")
    assert [row["op"] for row in first] == ["begin", "create", "insert", "insert", "update"]
    assert all(row["file"] == str(feed.path) and row["pos"] > 0 for row in first[2:])
    feed.rows("shop.t", *LATER)
    more = {**PLAIN, "n": {"ColumnType": "INT"}}
    feed.ddl("shop.t", ts(9), "ALTER TABLE `t` ADD COLUMN `n` INT DEFAULT 7", 5, more)
    feed.rows("shop.t", Change(ts(10), plain(9, "neun") | {"n": number(8)}))
    feed.checkpoint(ts(11))
    world.capture()
    killed(spark, world.file, "delta_after_commit:1")
    world.apply(spark)
    rows = changes_of(world.lake, "shop", "t")
    assert rows[: len(first)] == first
    key = (lambda row: row) if old else (lambda row: {"id": row["id"]})  # what an UPDATE tells of its row before
    assert sides(rows) == [
        ("insert", None, {"id": 1, "word": "one"}),
        ("insert", None, {"id": 2, "word": None}),
        ("update", key({"id": 1, "word": "one"}), {"id": 1, "word": 'eins, "so"\n'}),
        ("delete", {"id": 2, "word": None}, None),
        ("insert", None, {"id": 4, "word": None}),
        ("update", key({"id": 4, "word": None}), {"id": 4, "word": "vier"}),
        ("delete", {"id": 1, "word": 'eins, "so"\n'}, None),
        ("insert", None, {"id": 9, "word": "neun", "n": 8}),
    ]
    assert [row["op"] for row in rows].count("alter") == 1
    world_rows = silver_rows(world.lake, "shop", "t")
    assert len(world_rows) == 2
    if old:
        assert played([row for row in rows if row["commit_ts"] > ts(9)]) < world_rows
