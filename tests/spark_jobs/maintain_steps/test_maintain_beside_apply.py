"""Maintain rewrites a table again and again while apply writes it: nothing is lost, nothing is there twice."""

from __future__ import annotations

import random
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.maintain import run
from spark_jobs.maintenance import Maintenance
from spark_jobs.session.spark import maintenance_session
from tests.support.upsert_table import NAME, Table, changes_of
from tidegate import config, tables
from tidegate.errors import LakeUnavailable
from tidegate.lake import control

pytestmark = pytest.mark.spark


def publish(table: Table, cut: int, version: int) -> None:
    now = datetime.now(UTC)
    control.append(
        table.app.lake,
        tables.CUTS,
        [
            {
                "cut_ts": cut,
                "table": name,
                "delta_version": at,
                "applied_ts": cut,
                "state": "active",
                "published_at": now,
            }
            for name, at in (("", -1), (NAME, version))
        ],
    )


def test_apply_and_maintain_at_the_same_time_lose_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = Table.create(spark, tmp_path / "lake")
    random_ = random.Random(11)
    shown: dict[int, dict[int, str]] = {}
    for number in range(3):
        done, _ = table.write(changes_of(random_, table.model, number * 100, 50))
        publish(table, number + 1, done.versions[NAME])
    # Whatever there is to rewrite is rewritten, every time.
    part = config.Maintain(cluster_share=0, purge_share=0)
    pipeline = table.app.pipeline.model_copy(update={"maintain": part})
    ended, runs, lines, troubles = threading.Event(), [0], [], []

    def maintain() -> None:
        while not ended.is_set():
            job = Maintenance(maintenance_session(spark, part.file_bytes), pipeline, table.app.lake, lines.append)
            try:
                run(job)
            except LakeUnavailable as error:
                troubles.append(str(error))
            runs[0] += 1

    beside = threading.Thread(target=maintain)
    beside.start()
    try:
        for number in range(3, 40):
            done, _ = table.write(changes_of(random_, table.model, number * 100, 50))
            publish(table, number + 1, done.versions[NAME])
            table.compact(done)
            shown[number + 1] = dict(table.model)
    finally:
        ended.set()
        beside.join()
    assert runs[0]
    assert not troubles, troubles
    assert any(": cluster: done" in line or ": purge: done" in line for line in lines), lines
    table.assert_equal()
    rows = control.read(table.app.lake, tables.CUTS).to_pylist()
    named = {row["cut_ts"]: row["delta_version"] for row in rows if row["table"] == NAME}
    for cut in (4, 20, 40):
        frame = spark.sql(
            f"SELECT id, note FROM delta.`{table.app.lake.spark_uri('silver/d/t')}` VERSION AS OF {named[cut]}"
        )
        assert {row.id: row.note for row in frame.collect()} == shown[cut], cut
