"""A lake whose past lies further back: what would take a week of waiting.

In:  a local lake that no one is writing to.
Out: every file, every removal in the Delta logs and every publication of a cut, older by some hours.
"""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from tidegate import tables
from tidegate.delta.exchange import exchange
from tidegate.lake.control import load, rows_of
from tidegate.lake.control.files import write_file
from tidegate.lake.files import LakeFiles


def age(spark: SparkSession, lake: LakeFiles, hours: float) -> None:
    """Checkpoints are not rewritten: the logs must have none."""
    seconds = hours * 3600
    cuts = load(lake, tables.CUTS)
    assert cuts is not None
    rows = rows_of(lake, tables.CUTS, cuts)
    index = rows.schema.get_field_index("published_at")
    shifted = pc.subtract(rows["published_at"], pa.scalar(timedelta(hours=hours)))
    body = write_file(lake, tables.CUTS, rows.set_column(index, "published_at", shifted))
    exchange(lake.log(tables.CUTS.path), cuts.files, [body], operation="WRITE", data_change=True)
    for log in Path(lake.root, "silver").glob("**/_delta_log"):
        assert not list(log.glob("*checkpoint*"))
        for entry in sorted(log.glob("*.json")):
            stamp = entry.stat().st_mtime
            entry.write_text("".join(_older(line, seconds) + "\n" for line in entry.read_text().splitlines()))
            os.utime(entry, (stamp, stamp))
        for checksum in log.glob("*.crc"):
            checksum.unlink()
    for path in Path(lake.root, "silver").glob("**/*"):
        if path.is_file():
            stamp = path.stat().st_mtime - seconds
            os.utime(path, (stamp, stamp))
    for checksum in Path(lake.root, "silver").glob("**/.*.crc"):
        checksum.unlink()
    spark.sparkContext._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def _older(line: str, seconds: float) -> str:
    action = json.loads(line)
    for body in action.values():
        for name in ("timestamp", "deletionTimestamp", "modificationTime", "createdTime"):
            if name in body:
                body[name] -= int(seconds * 1000)
    return json.dumps(action)
