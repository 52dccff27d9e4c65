"""Values that don't fit their column's new type: what the server made of them isn't certain, so it is not guessed."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from spark_jobs.merge.recast import recast_values
from tests.unit.schema.replay.test_history import Session
from tidegate.errors import SchemaMismatch
from tidegate.schema.follow.silver_change import SilverAction, diff
from tidegate.schema.model.columns import TableVersion


def change(old: str, new: str) -> tuple[list[SilverAction], TableVersion]:
    s = Session()
    s.run(f"CREATE TABLE t (id INT PRIMARY KEY, c {old})", f"ALTER TABLE t MODIFY c {new}")
    before, after = s.history.versions("db", "t")
    return diff(before, after), after


DOUBTFUL = (
    ("BIGINT", "TINYINT", "CAST(128 AS BIGINT)"),
    ("INT", "INT UNSIGNED", "-1"),
    ("DECIMAL(9,2)", "DECIMAL(9,1)", "1.25BD"),
    ("DECIMAL(9,2)", "DECIMAL(4,2)", "CAST(100 AS DECIMAL(9,2))"),
    ("BIGINT", "VARCHAR(3)", "CAST(-100 AS BIGINT)"),
    ("VARCHAR(20)", "VARCHAR(3)", "'abcd'"),
    ("VARCHAR(20) CHARACTER SET utf8mb4", "VARCHAR(20) CHARACTER SET latin1", "'漢'"),
    ("VARCHAR(20) CHARACTER SET utf8mb4", "VARCHAR(20) CHARACTER SET utf8mb3", "'\U0001f600'"),
    ("VARCHAR(20)", "INT", "'12'"),
    ("ENUM('a','b')", "ENUM('a')", "'b'"),
    ("VARBINARY(9)", "VARBINARY(2)", "X'010203'"),
    ("DATETIME(3)", "DATETIME", "TIMESTAMP_NTZ '2024-02-03 04:05:06.789'"),
    ("DATETIME", "DATE", "TIMESTAMP_NTZ '2024-02-03 04:05:06'"),
    ("INT", "INT NOT NULL", "CAST(NULL AS INT)"),
    ("DOUBLE", "FLOAT", "0.1D"),
)


@pytest.mark.parametrize(("old", "new", "value"), DOUBTFUL)
def test_one_value_that_does_not_fit_is_enough_to_stop(old: str, new: str, value: str, spark: SparkSession) -> None:
    actions, after = change(old, new)
    with pytest.raises(SchemaMismatch, match="the server rewrote rows"):
        recast_values(spark.sql(f"SELECT 1 AS id, {value} AS c"), actions, after)


def test_a_table_without_rows_takes_any_change() -> None:
    actions, after = change("VARCHAR(20)", "INT")
    assert recast_values(None, actions, after) == {}
