"""Checkpoints between Spark and us: its are read as its commits are, and ours as if Spark had written them.

In:  tables of many shapes that Spark writes, each with another kind of checkpoint (tests/support/spark_logs.py).
Out: our checkpoint behind each, in a log of which everything before it is gone, so that nobody reads around it.
"""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.support.delta_histories import State
from tests.support.readers import READERS
from tests.support.spark_logs import SHAPES
from tidegate.delta.checkpoints import checkpoint
from tidegate.delta.checkpoints import write as checkpoint_write
from tidegate.delta.log import DeltaLog
from tidegate.delta.object_names import checkpoint_name, commit_name, commit_version
from tidegate.delta.stores.store import LogStore
from tidegate.delta.table.actions import now_ms

Rows = list[str]


def by_spark(spark: SparkSession, table: Path) -> Rows:
    """What the table holds, from its log as it is now."""
    forget(spark)
    return sorted(str(row) for row in spark.read.format("delta").load(str(table)).collect())


def forget(spark: SparkSession) -> None:
    jvm = spark._jvm
    assert jvm is not None
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def state_by_spark(spark: SparkSession, table: Path) -> Rows:
    """All actions of Delta's own state reconstruction, tombstones too."""
    forget(spark)
    jvm = spark._jvm
    assert jvm is not None
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(table))
    rows = [json.loads(row) for row in log.unsafeVolatileSnapshot().stateDF().toJSON().collectAsList()]
    return sorted(json.dumps(told(row), sort_keys=True) for row in rows if "commitInfo" not in row)


def told(row: dict[str, Any]) -> dict[str, Any]:
    """Without what a checkpoint doesn't keep of tombstones, and statistics parsed."""
    if "remove" in row:
        return {"remove": {name: value for name, value in row["remove"].items() if name not in ("stats", "tags")}}
    if "add" in row:
        statistics = json.loads(row["add"].get("stats", "null"), parse_int=number, parse_float=number)
        return {"add": row["add"] | {"stats": statistics}}
    return row


def number(text: str) -> str:
    """The same for all spellings of a number."""
    return str(Decimal(text).normalize())


def by_reader(name: str, table: Path) -> Rows:
    rows: pa.Table = READERS[name](str(table))
    return sorted(str(sorted(row.items())) for row in rows.to_pylist())


def leave_only(store: LogStore, version: int) -> None:
    """Our checkpoint of that version, and its own commit."""
    kept = {checkpoint_name(version), commit_name(version), "_last_checkpoint"}
    store.delete([entry.name for entry in store.names() if entry.name not in kept])
    sidecars = store.folder("_sidecars")
    sidecars.delete([entry.name for entry in sidecars.names()])


def state_of(store: LogStore, version: int) -> State:
    state = State()
    for number in range(version + 1):
        state.take([json.loads(line) for line in (store.get(commit_name(number)) or b"").splitlines()])
    return state


@pytest.mark.parametrize("shape", SHAPES)
def test_checkpoints_are_read_alike(spark: SparkSession, tmp_path: Path, shape: str) -> None:
    table = tmp_path / shape
    SHAPES[shape](spark, table)
    log = DeltaLog(str(table))
    found = checkpoint.newest(log.store)
    assert found is not None
    assert len(found[1]) == len(state_of(log.store, found[0]).rows(tombstones_after_ms=None))

    # One more commit behind Spark's checkpoint, then ours from both.
    spark.sql(f"INSERT INTO delta.`{table}` SELECT * FROM delta.`{table}` LIMIT 3")
    version = log.state().version
    assert version == found[0] + 1
    names = [name for name in READERS if name != "Polars" or not shape.startswith("v2")]  # it refuses that feature
    rows, state = by_spark(spark, table), state_by_spark(spark, table)
    others = {name: by_reader(name, table) for name in names}
    hint = checkpoint_write.write(log.store, version, now_ms=now_ms(), files=len(log.state().files))
    leave_only(log.store, version)

    assert by_spark(spark, table) == rows
    assert state_by_spark(spark, table) == state
    assert hint.actions == len(state)
    assert {name: by_reader(name, table) for name in names} == others
    assert len(DeltaLog(str(table)).state().files) == len(log.state().files)

    # And it is what Spark goes on from.
    spark.sql(f"INSERT INTO delta.`{table}` SELECT * FROM delta.`{table}` LIMIT 1")
    assert len(by_spark(spark, table)) == len(rows) + 1
    assert [entry.name for entry in log.store.names() if commit_version(entry.name) == version + 1]
