"""Maintain's steps on bronze: what they choose on a lake with cuts and tables that wait, and what they say of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.maintain import run
from spark_jobs.maintenance import Maintenance
from tests.support.bronze import QuietBronze
from tidegate import config, tables
from tidegate.errors import LakeUnavailable
from tidegate.lake import control
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.bronze.log import BronzeLog
from tidegate.lake.files import LakeFiles

pytestmark = pytest.mark.spark

# Noon of tomorrow: what the test writes is hours old then, and all of its last day is of one day.
NOW = (datetime.now(UTC) + timedelta(days=1)).replace(hour=12)
TEXT = "pipeline: p\nlake: {path: x}\nsources: {a: {conn_id: c, flavour: mysql}}\ntables: {include: ['d.*']}\n"


class Lake:
    """Forty days of bronze, a segment a day and forty today; every segment is one file."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.files, self.lines = spark, LakeFiles(str(folder)), []
        self.bronze = QuietBronze(folder)
        for ago in range(40, 0, -1):
            self.bronze.at = NOW - timedelta(days=ago)
            self._land()
        self.bronze.at = NOW - timedelta(hours=1)
        for _ in range(40):
            self._land()

    def _land(self) -> None:
        ts = 10 * (len(self.bronze.landed) + 1)
        self.bronze.land("a", (ts, ts + 1, ts + 1))

    def cut(self, cut_ts: int) -> None:
        row = {"cut_ts": cut_ts, "table": "", "delta_version": -1, "applied_ts": cut_ts, "state": "active"}
        control.append(self.files, tables.CUTS, [{**row, "published_at": NOW}])

    def state(self, name: str, state: str, commit_ts: int) -> None:
        event = {"pipeline": "p", "table": name, "state": state, "reason": "r", "error": "e", "commit_ts": commit_ts}
        control.append(self.files, tables.TABLE_STATES, [{**event, "recorded_at": datetime.now(UTC)}])

    def maintain(self, *, dry_run: bool = False, **settings: Any) -> list[tuple[str, str, int, int]]:
        """(step, outcome, files before, files after) of bronze's steps."""
        pipeline = config.parse(TEXT, where="p.yaml")
        part = config.Maintain.model_validate(settings)
        job = Maintenance(
            self.spark,
            pipeline.model_copy(update={"maintain": part}),
            self.files,
            self.lines.append,
            now=NOW,
            dry_run=dry_run,
        )
        before = control.read(self.files, tables.MAINTENANCE).num_rows
        run(job)
        rows = job.rows or control.read(self.files, tables.MAINTENANCE).sort_by("at").to_pylist()[before:]
        mine = [row for row in rows if row["table"] == tables.SEGMENTS.path]
        return [(row["step"], row["outcome"], row["files_before"], row["files_after"]) for row in mine]

    def seqs(self) -> list[int]:
        index = BronzeIndex(self.files)
        index.refresh(0)
        return [ref.seq for ref in index.refs["a"]]


def test_segments_go_by_age_below_the_oldest_cut_and_the_rest_is_packed(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path)
    assert lake.maintain(dry_run=True) == [("forget", "left", 0, 0), ("compact", "left", 0, 0)]
    assert "10 older files stay: no cut is published yet" in lake.lines[-2]
    lake.cut(700)
    lake.cut(750)
    # Thirty days stay; of today all but the newest file becomes one. A day's single file has no neighbour of its day.
    assert lake.maintain() == [("forget", "done", 80, 70), ("compact", "done", 39, 1)]
    assert lake.seqs() == list(range(11, 81))
    assert lake.maintain() == []
    assert lake.maintain(keep_bronze_days=5) == [("forget", "done", 32, 7)]
    assert lake.seqs() == list(range(36, 81))


def test_a_table_that_waits_keeps_what_it_waits_for(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path)
    lake.cut(700)
    lake.state("d.slow", "held", 35)
    lake.state("d.quick", "held", 5)
    lake.state("d.quick", "active", 700)
    assert lake.maintain(bronze_bytes=0) == [("forget", "done", 80, 77)]
    assert "7 older files stay: d.slow is held, at 35" in lake.lines[-1]
    assert lake.seqs() == list(range(4, 81))
    lake.state("d.slow", "released", 60)
    assert lake.maintain(bronze_bytes=0, keep_bronze_days=None) == []
    assert lake.maintain(bronze_bytes=0) == [("forget", "done", 77, 75)]
    lake.state("d.slow", "active", 700)
    assert lake.maintain(bronze_bytes=0) == [("forget", "done", 75, 70)]


def test_damage_in_bronze_is_said_and_makes_the_run_red(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path)
    log = BronzeLog.load(lake.files)
    assert log is not None
    (tmp_path / tables.SEGMENTS.path / log.files()["a"][45].path).unlink()
    with pytest.raises(LakeUnavailable, match="of maintain failed"):
        lake.maintain()
    assert any("compact_bronze: left" in line for line in lake.lines)
    assert lake.seqs
