"""One row per key behind MERGE where another writer made two, and a change feed that tells each row's way."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.merge.private.log import PrivateLog, change_table
from spark_jobs.merge.twins import leave_one_of_each
from tests.kit.spark import frame
from tests.support.readers import rows_of
from tidegate import tables
from tidegate.lake.files import LakeFiles
from tidegate.merge import silver_sql
from tidegate.merge.column import SilverColumn
from tidegate.merge.silver_sql import SilverShape
from tidegate.spark_sql import table_at

pytestmark = pytest.mark.spark

SHAPE = SilverShape((SilverColumn("id", "int"), SilverColumn("ü", "string")), ("id",))
FEED = "'delta.enableChangeDataFeed' = 'true'"
# Of silver: 1 is alike twice, 2 is there thrice, 3 is to be deleted, 4 isn't in the window.
HELD = [(1, "a"), (1, "a"), (2, "b"), (2, "x"), (2, "y"), (3, "c"), (3, "c"), (4, "d"), (4, "d"), (5, "e")]
CHANGES = [(1, "a", False), (2, "B", False), (3, "c", True), (5, "E", False), (6, "f", False)]
COMMIT_TS = 9


def _merged(spark: SparkSession, folder: Path, changes: list[tuple[int, str, bool]]) -> int:
    """The version of silver with the changes."""
    lake = LakeFiles(str(folder))
    rows = [(key, text, tables.OP_DELETE if gone else tables.OP_UPSERT, COMMIT_TS) for key, text, gone in changes]
    made = frame(spark, rows, f"id int, `ü` string, {tables.OP} tinyint, {tables.COMMIT_TS} bigint")
    made.createOrReplaceTempView("changes")
    source = "SELECT * FROM changes"

    def work(private: PrivateLog) -> None:
        (counted,) = spark.sql(silver_sql.merge(private.uri, source, SHAPE)).collect()
        leave_one_of_each(private, source, SHAPE, counted)

    return change_table(lake, spark, "silver", work).version


@pytest.mark.parametrize("feed", ["", FEED], ids=["no feed", "feed"])
def test_one_row_of_each_key_of_the_window_stays_and_a_feed_tells_every_row(
    spark: SparkSession, tmp_path: Path, feed: str
) -> None:
    place = table_at(str(tmp_path / "silver"))
    spark.sql(silver_sql.create(str(tmp_path / "silver"), SHAPE))
    if feed:
        spark.sql(f"ALTER TABLE {place} SET TBLPROPERTIES ({feed})")
    held = ", ".join(f"({key}, '{text}', 1)" for key, text in HELD)
    spark.sql(f"INSERT INTO {place} VALUES {held}")
    version = _merged(spark, tmp_path, CHANGES)
    silver = Counter((row[0], row[1], row[2]) for row in rows_of(str(tmp_path / "silver")))
    new = [(1, "a"), (2, "B"), (5, "E"), (6, "f")]
    assert silver == Counter([*((*row, COMMIT_TS) for row in new), (4, "d", 1), (4, "d", 1)])
    if not feed:
        return
    told = spark.sql(f"SELECT * FROM table_changes_by_path('{tmp_path}/silver', {version})").collect()
    assert Counter((row["_change_type"], row[0], row[1], row[2]) for row in told) == Counter(
        [
            *(("delete", *row, 1) for row in HELD[:7]),
            *(("insert", *row, COMMIT_TS) for row in ((1, "a"), (2, "B"), (6, "f"))),
            ("update_preimage", 5, "e", 1),
            ("update_postimage", 5, "E", COMMIT_TS),
        ]
    )
    again = _merged(spark, tmp_path, CHANGES)
    told = spark.sql(f"SELECT * FROM table_changes_by_path('{tmp_path}/silver', {again})").collect()
    assert {row["_change_type"] for row in told} == {"update_preimage", "update_postimage"}, "none is a twin any more"
