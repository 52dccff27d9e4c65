"""A table of several sources is rebuilt and swapped while one of them is behind the cut.

In:  two servers with a shard each; capture of one of them stands still, and the cut goes on without it.
Out: no table is rebuilt at a moment that a source isn't captured up to; what the late one brings comes behind the swap.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild, swap
from spark_jobs.session.background import BackgroundSession
from tests.integration.shards.test_shards import Shards
from tidegate.errors import LakeRefused
from tidegate.lake.figures.status import cut_ts
from tidegate.lake.standing import held
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(900)]


def test_what_a_late_source_brings_is_in_the_rebuilt_table(
    mariadb: Server, mysql9: Server, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    road = Shards({"m": mariadb, "y": mysql9}, tmp_path, 1)
    background = BackgroundSession(lambda: spark)

    def rebuilt(at: str) -> None:
        plan = Rebuild.plan(road.pipeline, road.lake, road.logical, at, "")
        assert rebuild(plan, background, compare=False, report=road.lines.append) == 0
        swap(plan, background, report=road.lines.append)

    try:
        road.capture_all()
        road.create()
        road.fill(1000)
        road.equal(spark)
        road.fill(2000)
        for _ in range(2):
            road.capture("y")
        patient = road.pipeline
        hasty = patient.sources["m"].model_copy(update={"max_hold_seconds": 0, "required": False})
        road.pipeline = patient.model_copy(update={"sources": {**patient.sources, "m": hasty}})
        road.apply(spark)
        assert held.last_states(road.lake)[road.logical].state.waits
        with pytest.raises(LakeRefused, match="m is captured up to"):
            rebuilt(str(cut_ts(road.lake)))
        with monkeypatch.context() as older:
            older.setattr("spark_jobs.rebuild.check_captured", lambda *_: None)
            with pytest.raises(LakeRefused, match="m is captured up to"):
                rebuilt(str(cut_ts(road.lake)))
        rebuilt("")
        assert len(road.in_silver()) == 6, "up to where both are captured"
        road.pipeline = patient
        road.equal(spark, last="m")
        rebuilt("")
        road.equal(spark)
    finally:
        road.drop()
