"""Checkpoints are written beside the windows: no commit writes one, none is forgotten, and old log files go."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from spark_jobs.apply_steps.checkpoint_tables import checkpoint_tables
from spark_jobs.window.checkpoints import Checkpoints
from tests.support.upsert_table import PATH, UP, Table
from tidegate.delta.checkpoints import write as checkpoint_write

pytestmark = pytest.mark.spark

_DAYS = 86_400


def log_of(table: Table) -> Path:
    return Path(table.app.lake.uri(PATH), "_delta_log")


def last_checkpoint(table: Table) -> int:
    return int(json.loads((log_of(table) / "_last_checkpoint").read_text())["version"])


def test_a_checkpoint_is_due_by_commits_and_takes_old_log_files_with_it(spark: SparkSession, tmp_path: Path) -> None:
    table = Table.create(spark, tmp_path / "lake")
    table.app.checkpoints = Checkpoints(table.app.lake, commits=4)
    for number in range(52):
        done, _ = table.write([(UP, number, "a")])
        if number < 2:
            checkpoint_tables(table.app, done.versions)
    assert not list(log_of(table).glob("*.checkpoint*")), "Delta wrote one in a commit, or one was written too soon"
    for entry in log_of(table).glob("*.json"):
        os.utime(entry, (time.time() - 40 * _DAYS,) * 2)
    checkpoint_tables(table.app, done.versions)
    table.app.checkpoints.close()
    assert last_checkpoint(table) == 52
    assert (log_of(table) / f"{1:020}.json").exists(), "who reads them now has not seen that checkpoint"
    for entry in log_of(table).glob("*.checkpoint.parquet"):
        os.utime(entry, (time.time() - 2 * _DAYS,) * 2)
    table.app.checkpoints = Checkpoints(table.app.lake, commits=4)  # of the next day: a log is looked at once in a day
    for number in range(4):
        done, _ = table.write([(UP, 100 + number, "b")])
    checkpoint_tables(table.app, done.versions)
    table.app.checkpoints.close()
    assert last_checkpoint(table) == 56
    assert not (log_of(table) / f"{1:020}.json").exists(), "the log was not cleaned up"
    assert (log_of(table) / f"{52:020}.json").exists(), "its commitInfo is in no checkpoint"
    table.write([(UP, 200, "c")])
    table.assert_equal()
    assert DeltaTable(table.app.lake.uri(PATH)).version() == 57


def test_windows_go_on_while_a_checkpoint_is_written_and_a_fault_of_it_stops_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = Table.create(spark, tmp_path / "lake")
    table.app.checkpoints = checkpoints = Checkpoints(table.app.lake, commits=2)
    gate, real = threading.Event(), checkpoint_write.write

    def slow(*_: object, **__: object) -> None:
        gate.wait(60)
        raise OSError("no room")

    monkeypatch.setattr(checkpoint_write, "write", slow)
    for number in range(5):
        done, _ = table.write([(UP, number, "a")])
        checkpoint_tables(table.app, done.versions)
    gate.set()
    checkpoints.close()
    assert "no checkpoint written: no room" in caplog.text
    monkeypatch.setattr(checkpoint_write, "write", real)
    for number in range(2):
        done, _ = table.write([(UP, 10 + number, "a")])
        checkpoint_tables(table.app, done.versions)
        checkpoints.close()
    assert last_checkpoint(table) == 6
    table.assert_equal()
