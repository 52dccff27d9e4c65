"""A silver table of millions of rows, for changes to go into: made here, written by Spark as Delta's own writer does.

In:  how many rows; a folder.
Out: a clustered Delta table of workload A's columns (450 bytes a row) in about twenty files, each a range of keys.

Both writers start from this same table, so its making is not timed.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.workloads import DATABASE
from spark_jobs.window.shape.shapes import shape_of
from tests.kit.decoding import version_on
from tidegate import tables
from tidegate.local.server import Server
from tidegate.merge import silver_sql
from tidegate.spark_sql import quote

_FILES = 20
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_PAIRS = np.stack([np.repeat(_HEX, 16), np.tile(_HEX, 16)], 1).copy().view(np.uint16).ravel()  # two digits per byte
_ONE_FILE_A_TASK = 1 << 40


def make(spark: SparkSession, server: Server, table: str, rows: int, folder: Path) -> Path:
    """The table's folder, which a Delta log and its files are in."""
    parts = folder / "parts"
    parts.mkdir(parents=True)
    numbers = np.random.default_rng(5)
    step = -(-rows // _FILES)
    for first in range(1, rows + 1, step):
        part = _rows(first, min(step, rows + 1 - first), numbers)
        pq.write_table(part, parts / f"{first:012d}.parquet", compression="none", use_dictionary=False)
    target = folder / "table"
    shape = shape_of([version_on(server, DATABASE, table)], routed=False)
    session = spark.newSession()
    session.sql(silver_sql.create(str(target), shape))
    session.conf.set("spark.sql.files.maxPartitionBytes", str(_ONE_FILE_A_TASK))
    session.conf.set("spark.sql.files.openCostInBytes", str(_ONE_FILE_A_TASK))
    wanted = [f"CAST({quote(c.name)} AS {c.type}) AS {quote(c.name)}" for c in shape.all_columns]
    session.read.parquet(str(parts)).selectExpr(*wanted).write.format("delta").mode("append").save(str(target))
    shutil.rmtree(parts)
    return target


def _rows(first: int, count: int, numbers: np.random.Generator) -> pa.Table:
    columns: dict[str, pa.Array] = {
        "id": pa.array(np.arange(first, first + count, dtype=np.int64)),
        "k": pa.array(numbers.integers(0, 1_000_000, count, dtype=np.int32)),
        "c": _texts(numbers, count, 120),
        "pad": _texts(numbers, count, 60),
        "amount": _decimals(numbers.integers(-(10**13), 10**13, count, dtype=np.int64)),
        "ts": pa.array(numbers.integers(0, 26 * 10**12, count) + 1_767_225_600_000_000, pa.timestamp("us")),
        "flag": pa.array(numbers.integers(0, 3, count, dtype=np.int8)),
        "note": _texts(numbers, count, 140),
        "j": _texts(numbers, count, 70),
        tables.COMMIT_TS: pa.array(np.ones(count, np.int64)),
    }
    return pa.table(columns)


def _texts(numbers: np.random.Generator, count: int, width: int) -> pa.Array:
    """Strings of random hexadecimal digits, all of one width."""
    random = np.frombuffer(numbers.bytes(-(-count * width // 2)), np.uint8)
    digits = _PAIRS[random].view(np.uint8)[: count * width]
    offsets = np.arange(0, (count + 1) * width, width, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(digits)])


def _decimals(unscaled: np.ndarray) -> pa.Array:
    """decimal(18,4): 128 bits little-endian, the upper half is the sign."""
    words = np.empty((len(unscaled), 2), np.int64)
    words[:, 0] = unscaled
    words[:, 1] = unscaled >> 63
    return pa.Array.from_buffers(pa.decimal128(18, 4), len(unscaled), [None, pa.py_buffer(words)])
