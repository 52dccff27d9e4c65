"""A lake whose past lies further back: what would take a week of waiting.

In:  a local lake that no one is writing to.
Out: every file, every removal in the Delta logs and every publication of a cut, older by some hours.
"""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from tests.kit.spark import LateSession
from tidegate import tables
from tidegate.delta.exchange import exchange
from tidegate.lake.control import load, rows_of
from tidegate.lake.control.files import write_file
from tidegate.lake.files import LakeFiles


def age_all(spark: SparkSession, lake: LakeFiles, hours: float) -> None:
    """As age, of bronze, the changelogs and the control tables, too. What their rows say of times stays."""
    for folder in Path(lake.root).iterdir():
        if folder.is_dir():
            _age(folder, hours * 3600)
    _forgets(spark)


def age(spark: SparkSession, lake: LakeFiles, hours: float) -> None:
    """Silver and the cuts."""
    seconds = hours * 3600
    cuts = load(lake, tables.CUTS)
    assert cuts is not None
    rows = rows_of(lake, tables.CUTS, cuts)
    index = rows.schema.get_field_index("published_at")
    shifted = pc.subtract(rows["published_at"], pa.scalar(timedelta(hours=hours)))
    body = write_file(lake, tables.CUTS, rows.set_column(index, "published_at", shifted))
    exchange(lake.log(tables.CUTS.path), cuts.files, [body], operation="WRITE", data_change=True)
    _age(Path(lake.root, "silver"), seconds)
    _forgets(spark)


def _forgets(spark: SparkSession) -> None:
    """Delta's own reader reads logs anew; a JVM that hasn't started has read none."""
    if not isinstance(spark, LateSession) or spark.has_started:
        context: Any = spark.sparkContext
        context._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def _age(folder: Path, seconds: float) -> None:
    for log in folder.glob("**/_delta_log"):
        for checkpoint in log.glob("**/*.parquet"):
            rows = pq.read_table(checkpoint)
            older = [_older_actions(row, seconds) for row in rows.to_pylist()]
            pq.write_table(pa.Table.from_pylist(older, rows.schema), checkpoint)
        for entry in sorted(log.glob("*.json")):
            stamp = entry.stat().st_mtime
            entry.write_text("".join(_older(line, seconds) + "\n" for line in entry.read_text().splitlines()))
            os.utime(entry, (stamp, stamp))
        for checksum in log.glob("*.crc"):
            checksum.unlink()
    for path in folder.glob("**/*"):
        if path.is_file():
            stamp = path.stat().st_mtime - seconds
            os.utime(path, (stamp, stamp))
    for checksum in folder.glob("**/.*.crc"):
        checksum.unlink()


def _older(line: str, seconds: float) -> str:
    return json.dumps(_older_actions(json.loads(line), seconds))


def _older_actions(actions: dict[str, Any], seconds: float) -> dict[str, Any]:
    for body in filter(None, actions.values()):
        for name in ("timestamp", "deletionTimestamp", "modificationTime", "createdTime"):
            if body.get(name):
                body[name] -= int(seconds * 1000)
    return actions
