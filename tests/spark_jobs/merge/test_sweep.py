"""A snapshot's end in a window with later statements known already, as a rebuild plays it: the key is that window's."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.merge.sweep import sweep_whole_tables
from spark_jobs.window.window import Sweep
from tests.spark_jobs.merge.test_silver_writer import UP, Rows, Shop
from tidegate.snapshot.progress.events import TableKey
from tidegate.table_names import Physical

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "later",
    ["DROP PRIMARY KEY, ADD PRIMARY KEY (id, b)", "CHANGE id number INT NOT NULL"],
    ids=["another key", "renamed"],
)
def test_a_nulls_row_stays_where_only_a_later_key_forbids_it(spark: SparkSession, tmp_path: Path, later: str) -> None:
    it, physical = Shop(spark, tmp_path, "positional"), Physical("s", "d", "t")
    it.ddl(10, "CREATE TABLE t (id INT PRIMARY KEY, b INT)")
    rows: Rows = [(11, UP, {"id": 1, "b": 1}), (21, UP, {"id": 2, "b": None}), (22, UP, {"id": 3, "b": 3})]
    done = it.apply(0, 25, {"t": rows})
    it.ddl(30, f"ALTER TABLE t {later}")
    known: Any = SimpleNamespace(tables={TableKey("read", *physical): ""}, opened=lambda *_: None)
    it.app.snapshots = known
    swept = sweep_whole_tables(it.app, done.window, it.times, [("d.t", Sweep("read", physical, 20, 24))])
    assert isinstance(swept["d.t"], int), swept
    assert it.silver("t") == [{"id": 2, "b": None}, {"id": 3, "b": 3}], "1 was written before the snapshot began"
