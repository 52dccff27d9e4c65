"""Silver tables made, emptied and given columns by their logs alone are those that SQL makes of them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tidegate.delta.log import DeltaLog
from tidegate.errors import SchemaMismatch
from tidegate.lake.silver.silver_tables import add_columns, create_silver, describe_silver, empty_silver
from tidegate.merge import silver_sql
from tidegate.merge.column import SilverColumn
from tidegate.merge.past import SOFT_DELETE
from tidegate.merge.silver_sql import SilverShape

pytestmark = pytest.mark.spark

TYPES = (
    *("tinyint", "smallint", "int", "bigint", "float", "double", "decimal(20,0)", "boolean", "binary", "string"),
    *("date", "timestamp", "timestamp_ntz", "array<float>"),
)
COLUMNS = tuple(SilverColumn(f"ü{at}", kind, f"it's {kind} \\ \"") for at, kind in enumerate(TYPES))
PLAIN = (SilverColumn("id", "bigint", "bigint unsigned"), SilverColumn("at", "timestamp_ntz"))
SHAPES = {
    "keyed": SilverShape(PLAIN, ("id", "at")),
    "without a key, deleted rows kept": SilverShape(PLAIN, (), past=SOFT_DELETE),
    "shards": SilverShape(PLAIN, ("_tg_source", "id"), routed=True),
    "clustered as asked": SilverShape(PLAIN, ("id",), clustering=("nowhere", "at")),
    "clustered by its key, as what is asked for isn't there": SilverShape(PLAIN, ("id",), clustering=("nowhere",)),
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
    create_silver(DeltaLog(str(tmp_path / "ours")), SHAPES[name])
    assert first_commit(tmp_path / "ours") == first_commit(tmp_path / "sql")
    frames = [spark.read.format("delta").load(str(tmp_path / folder)) for folder in ("ours", "sql")]
    assert frames[0].schema == frames[1].schema


def test_a_table_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    log = DeltaLog(str(tmp_path / "t"))
    create_silver(log, SHAPES["keyed"])
    found = create_silver(log, SHAPES["no column to cluster by"])
    assert (found.version, found.created) == (0, True)
    assert [field["name"] for field in found.schema["fields"]] == ["id", "at", "_tg_commit_ts"]


@pytest.mark.parametrize("name", ["a b", "a=b", "ID"])
def test_a_name_that_delta_refuses_is_refused_here_too(tmp_path: Path, name: str) -> None:
    shape = SilverShape((SilverColumn("id", "bigint"), SilverColumn(name, "bigint")), ("id",))
    with pytest.raises(SchemaMismatch, match=name):
        create_silver(DeltaLog(str(tmp_path / "t")), shape)
    assert not list(tmp_path.glob("t/_delta_log/*.json"))


def filled(spark: SparkSession, uri: str) -> DeltaLog:
    """A table of five rows by Spark."""
    log = DeltaLog(uri)
    create_silver(log, SilverShape((SilverColumn("id", "bigint"), SilverColumn("v", "string")), ("id",)))
    spark.sql(f"INSERT INTO delta.`{uri}` SELECT id, 'x', 1 FROM range(5)")
    return log


def test_added_columns_are_those_that_sql_adds(spark: SparkSession, tmp_path: Path) -> None:
    added = (SilverColumn("n", "decimal(10,2)", "money"), SilverColumn("at", "timestamp_ntz"))
    ours, theirs = (str(tmp_path / name) for name in ("ours", "theirs"))
    log = filled(spark, ours)
    filled(spark, theirs)
    assert add_columns(log, added).version == 2
    assert add_columns(log, added).version == 2  # they are there
    spark.sql(f"ALTER TABLE delta.`{theirs}` SET TBLPROPERTIES ('delta.feature.timestampNtz'='supported')")
    spark.sql(f"ALTER TABLE delta.`{theirs}` ADD COLUMNS (n decimal(10,2) COMMENT 'money', at timestamp_ntz)")
    spark.sql(f"INSERT INTO delta.`{ours}` SELECT id, 'y', 2, 3.5, NULL FROM range(5, 7)")
    spark.sql(f"INSERT INTO delta.`{theirs}` SELECT id, 'y', 2, 3.5, NULL FROM range(5, 7)")
    frames = [spark.read.format("delta").load(uri) for uri in (ours, theirs)]
    fields = [{field.name: field for field in frame.schema} for frame in frames]
    assert {name: (f.dataType, f.metadata) for name, f in fields[0].items()} == {
        name: (f.dataType, f.metadata) for name, f in fields[1].items()
    }
    rows = [sorted(map(str, frame.select("id", "v", "n", "at").collect())) for frame in frames]
    assert rows[0] == rows[1]
    states = [DeltaLog(uri).state() for uri in (ours, theirs)]
    assert states[0].features == states[1].features


def test_comments_are_changed(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    log = filled(spark, uri)
    columns = (SilverColumn("v", "string", "words", source="varchar(9)"), SilverColumn("gone", "int", "x"))
    shape = SilverShape(columns, ("id",), comment="a table")
    assert describe_silver(log, shape).version == 2
    assert describe_silver(log, replace(shape, comment=None)).version == 2
    field = {field.name: field for field in spark.read.format("delta").load(uri).schema}["v"]
    assert field.metadata == {"comment": "words", "tidegate.source": "varchar(9)"}
    assert log.state().metadata["description"] == "a table"


def test_rows_from_before_a_table_was_emptied_count_as_written(tmp_path: Path) -> None:
    log = DeltaLog(str(tmp_path / "t"))
    create_silver(log, SilverShape((SilverColumn("id", "int"),), ("id",)))
    for done, wanted in ((7, 6), (9, 8), (5, 8)):  # of several sources the later one may come first
        state = empty_silver(log, (f"app/ddl/{done}", done), rows=("app", done - 1))
        assert (state.transaction("app"), state.transaction(f"app/ddl/{done}")) == (wanted, done)


def test_a_table_is_emptied_once(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    log = filled(spark, uri)
    other = DeltaLog(uri)
    assert empty_silver(log, ("app/ddl", 7)).version == 2
    spark.sql(f"INSERT INTO delta.`{uri}` VALUES (9, 'after', 8)")
    assert empty_silver(other, ("app/ddl", 7)).version == 3  # an application that is behind does nothing
    assert [row.id for row in spark.sql(f"SELECT id FROM delta.`{uri}`").collect()] == [9]
    new = SilverShape((SilverColumn("other", "date"),), ("other",))
    assert empty_silver(other, ("app/ddl", 9), new).version == 4
    spark.sql(f"INSERT INTO delta.`{uri}` VALUES (DATE '2020-01-01', 9)")
    assert [row.asDict() for row in spark.sql(f"SELECT * FROM delta.`{uri}`").collect()] == [
        {"other": date(2020, 1, 1), "_tg_commit_ts": 9}
    ]
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{uri}`").collect()[0]
    assert (list(detail.clusteringColumns), detail.numFiles) == (["other"], 1)
    spark.sql(f"OPTIMIZE delta.`{uri}`")
