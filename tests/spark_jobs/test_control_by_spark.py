"""Spark reads control tables as we do, and what a person deletes in it is read right or refused with a way out."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tidegate import tables
from tidegate.errors import LakeRefused
from tidegate.lake import control
from tidegate.lake.control.upkeep import compact
from tidegate.lake.files import LakeFiles

pytestmark = pytest.mark.spark

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)


def cut(number: int) -> dict[str, Any]:
    row = {"table": f"d.{number}", "delta_version": number, "applied_ts": number, "state": "active"}
    return row | {"cut_ts": number, "published_at": NOW}


def judgement(number: int) -> dict[str, Any]:
    row = {
        "source": "ä",
        "file": "f",
        "pos": number,
        "commit_ts": 1,
        "tables": ["d.a", ""],
        "reason": "",
        "judged_at": NOW,
    }
    return row | {"judged_by": "me"}


def event(number: int) -> dict[str, Any]:
    row = {"pipeline": "p", "table": f"d.{number}", "state": "held", "reason": "why", "error": "", "commit_ts": 1}
    return row | {"recorded_at": NOW, **({"place_pos": number} if number % 2 else {})}


def test_spark_reads_what_we_read_behind_a_checkpoint_too(spark: SparkSession, tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    cases = ((tables.CUTS, cut, "cut_ts"), (tables.JUDGEMENTS, judgement, "pos"), (tables.TABLE_STATES, event, "table"))
    for table, made, key in cases:
        for number in range(12):
            control.append(lake, table, [made(number)])
            if number == 9:
                compact(lake, table, files_min=2)
        found = spark.read.format("delta").load(lake.uri(table.path))
        theirs = found.toArrow().cast(control.read(lake, table).schema).sort_by(key)
        assert theirs.equals(control.read(lake, table).sort_by(key)), table.path
        assert found.schema[key].metadata["comment"] == table.schema.field(key).metadata[b"comment"].decode()


def test_what_a_person_deletes_is_gone_or_the_way_out_is_said(spark: SparkSession, tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    place = f"delta.`{lake.uri(tables.CUTS.path)}`"
    control.append(lake, tables.CUTS, [cut(number) for number in range(6)])
    spark.sql(f"DELETE FROM {place} WHERE cut_ts = 0")
    assert sorted(control.read(lake, tables.CUTS)["cut_ts"].to_pylist()) == [1, 2, 3, 4, 5]
    spark.sql(f"ALTER TABLE {place} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    spark.sql(f"DELETE FROM {place} WHERE cut_ts = 1")
    with pytest.raises(LakeRefused, match="deletion vectors") as refused:
        control.read(lake, tables.CUTS)
    spark.sql(refused.value.remedy.partition(" in Spark")[0])
    control.append(lake, tables.CUTS, [cut(6)])
    assert sorted(control.read(lake, tables.CUTS)["cut_ts"].to_pylist()) == [2, 3, 4, 5, 6]
