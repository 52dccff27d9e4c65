"""Silver after any sequence of windows equals a plain dictionary (or bag) that saw the same changes."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.merge.values import with_row_hash
from tests.kit.spark import frame
from tests.support.readers import rows_of
from tidegate import tables
from tidegate.merge import silver_sql
from tidegate.merge.column import SilverColumn
from tidegate.merge.silver_sql import SilverShape

pytestmark = pytest.mark.spark

COLUMNS = (SilverColumn("id", "int"), SilverColumn("na`me", "string"), SilverColumn("b", "binary"))
KEYED = SilverShape(COLUMNS, ("id",))
KEYLESS = SilverShape(COLUMNS, ())
CHANGES = (
    f"{tables.OP} tinyint, {tables.COMMIT_TS} bigint, {tables.SEQ} bigint, {tables.ORDINAL} bigint,"
    " id int, `na``me` string, b binary, _tg_order_source string"
)


def _window(rng: random.Random, number: int) -> list[tuple[object, ...]]:
    rows = []
    for ordinal in range(rng.randint(30, 40)):
        op = rng.choice((tables.OP_UPSERT, tables.OP_UPSERT, tables.OP_DELETE))
        name = rng.choice((None, "a", "A", "a ", "'\\", "表"))
        rows.append(
            (
                op,
                number * 100 + ordinal // 3,
                1,
                ordinal,
                rng.randint(1, 12),
                name,
                rng.choice((None, b"", b"\xff\x00")),
                "s",
            )
        )
    return rows


def test_merge_keeps_the_last_change_of_each_key(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "keyed")
    spark.sql(silver_sql.create(uri, KEYED))
    rng = random.Random(7)
    truth: dict[object, tuple[object, ...]] = {}
    for number in range(1, 3):
        rows = _window(rng, number)
        frame(spark, rng.sample(rows, len(rows)), CHANGES).createOrReplaceTempView("changes")
        spark.sql(silver_sql.merge(uri, silver_sql.latest_per_key("changes", KEYED), KEYED))
        for op, commit_ts, _, _, key, name, value, _ in rows:
            truth.pop(key, None)
            if op == tables.OP_UPSERT:
                truth[key] = (key, name, value, commit_ts)
        found = rows_of(uri)
        assert {row[0]: row for row in found} == truth
        assert len(found) == len(truth)


def test_equal_rows_without_a_key_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "bag")
    spark.sql(silver_sql.create(uri, KEYLESS))
    rng = random.Random(11)
    bag: Counter[tuple[object, ...]] = Counter()
    for number in range(1, 3):
        rows = []
        for row in _window(rng, number):
            value = (row[4] % 3, row[5], row[6])  # type: ignore[operator]
            op = row[0] if bag[value] > 0 else tables.OP_UPSERT
            bag[value] += 1 if op == tables.OP_UPSERT else -1
            rows.append((op, *row[1:4], *value, "s"))
        with_row_hash(frame(spark, rows, CHANGES), KEYLESS.hashed_names).createOrReplaceTempView("changes")
        spark.sql(silver_sql.merge(uri, silver_sql.net_rows("changes", uri, KEYLESS), KEYLESS))
        found = spark.sql(f"SELECT * FROM delta.`{uri}`").collect()
        held = Counter((row[0], row[1], bytes(row[2]) if row[2] is not None else None) for row in found)
        assert held == +bag
        numbers = spark.sql(
            f"SELECT max({tables.OCCURRENCE}) = count(*) AND min({tables.OCCURRENCE}) = 1 AS dense"
            f" FROM delta.`{uri}` GROUP BY {tables.ROW_HASH}"
        ).collect()
        assert all(row.dense for row in numbers)


def test_deleting_a_row_that_silver_does_not_hold_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "bag")
    spark.sql(silver_sql.create(uri, KEYLESS))
    gone = frame(spark, [(tables.OP_DELETE, 1, 1, 1, 1, "a", b"", "s")], CHANGES)
    with_row_hash(gone, KEYLESS.hashed_names).createOrReplaceTempView("changes")
    with pytest.raises(Exception, match="silver does not hold"):
        spark.sql(silver_sql.merge(uri, silver_sql.net_rows("changes", uri, KEYLESS), KEYLESS))
