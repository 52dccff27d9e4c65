"""A table made by Delta's own transaction is the one that CREATE TABLE makes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from spark_jobs.delta_commit import DeltaCommitter
from tidegate.merge import silver_sql
from tidegate.merge.silver_sql import SilverColumn, SilverShape

pytestmark = pytest.mark.spark

TYPES = (
    *("tinyint", "smallint", "int", "bigint", "float", "double", "decimal(20,0)", "boolean", "binary", "string"),
    *("date", "timestamp", "timestamp_ntz", "array<float>"),
)
COLUMNS = tuple(SilverColumn(f"ü{at}", kind, f"it's {kind} \\ \"") for at, kind in enumerate(TYPES))
PLAIN = (SilverColumn("id", "bigint", "bigint unsigned"), SilverColumn("at", "timestamp_ntz"))
SHAPES = {
    "keyed": SilverShape(PLAIN, ("id", "at")),
    "without a key, deleted rows kept": SilverShape(PLAIN, (), keeps_deleted=True),
    "shards": SilverShape(PLAIN, ("_tg_source", "id"), routed=True),
    "no column to cluster by": SilverShape((SilverColumn("id", "binary"),), ("id",)),
    "every type": SilverShape(COLUMNS, ("ü2",)),
}


def first_commit(uri: Path) -> dict[str, Any]:
    """Metadata, protocol and domains, without what differs from one table to the next."""
    lines = (uri / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
    found: dict[str, Any] = {}
    for line in lines:
        ((kind, action),) = json.loads(line).items()
        found[kind] = action
    assert found["commitInfo"].pop("operation") == "CREATE TABLE"
    found.pop("commitInfo")
    for name in ("id", "createdTime"):
        assert found["metaData"].pop(name)
    found["metaData"]["schemaString"] = json.loads(found["metaData"]["schemaString"])
    for name in ("readerFeatures", "writerFeatures"):
        found["protocol"][name] = sorted(found["protocol"][name])
    return found


@pytest.mark.parametrize("name", SHAPES)
def test_a_table_is_what_sql_makes_of_its_shape(spark: SparkSession, tmp_path: Path, name: str) -> None:
    spark.sql(silver_sql.create(str(tmp_path / "sql"), SHAPES[name]))
    committer = DeltaCommitter.of(spark)
    committer.create(str(tmp_path / "ours"), SHAPES[name])
    assert first_commit(tmp_path / "ours") == first_commit(tmp_path / "sql")
    frames = [spark.read.format("delta").load(str(tmp_path / folder)) for folder in ("ours", "sql")]
    assert frames[0].schema == frames[1].schema


def test_a_table_that_is_there_stays_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    committer, uri = DeltaCommitter.of(spark), str(tmp_path / "t")
    committer.create(uri, SHAPES["keyed"])
    committer.create(uri, SHAPES["no column to cluster by"])
    found = committer.snapshot(uri, "app")
    assert (found.version, found.created) == (0, True)
    assert [field["name"] for field in found.schema["fields"]] == ["id", "at", "_tg_commit_ts"]


def test_a_name_that_delta_refuses_is_refused_here_too(spark: SparkSession, tmp_path: Path) -> None:
    shape = SilverShape((SilverColumn("id", "bigint"), SilverColumn("a b", "bigint")), ("id",))
    with pytest.raises(AnalysisException, match="DELTA_INVALID_CHARACTERS_IN_COLUMN_NAME"):
        DeltaCommitter.of(spark).create(str(tmp_path / "t"), shape)
    assert not list(tmp_path.glob("t/_delta_log/*.json"))
