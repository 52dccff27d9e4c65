"""A silver table of millions of rows, for changes to go into: made here, written by Spark as Delta's own writer does.

In:  how many rows; a folder.
Out: a clustered Delta table of workload A's columns (450 bytes a row) in about twenty files, each a range of keys.

All writers start from this same table, so its making is not timed: its files are linked, and plain() gives them
a log without what other writers can't do.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.lakes import PIPELINE
from benchmarks.workloads import DATABASE
from spark_jobs.window.shape.shapes import shape_of
from tests.kit.decoding import version_on
from tidegate import tables
from tidegate.delta.table.actions import transaction
from tidegate.local.server import Server
from tidegate.merge import silver_sql
from tidegate.merge.past import NO_PAST, Past
from tidegate.spark_sql import quote

_FILES = 20
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_PAIRS = np.stack([np.repeat(_HEX, 16), np.tile(_HEX, 16)], 1).copy().view(np.uint16).ravel()  # two digits per byte
_ONE_FILE_A_TASK = 1 << 40
_FEATURES = {"clustering", "domainMetadata"}  # of silver's protocol, and of no use to a plain MERGE
_VECTORS = "deletionVectors"


def make(spark: SparkSession, server: Server, table: str, rows: int, folder: Path, past: Past = NO_PAST) -> Path:
    """The table's folder, which a Delta log and its files are in. past: the mode that it has."""
    parts = folder / "parts"
    parts.mkdir(parents=True)
    numbers = np.random.default_rng(5)
    step = -(-rows // _FILES)
    for first in range(1, rows + 1, step):
        part = _rows(first, min(step, rows + 1 - first), numbers)
        pq.write_table(part, parts / f"{first:012d}.parquet", compression="none", use_dictionary=False)
    target = folder / "table"
    shape = shape_of([version_on(server, DATABASE, table)], routed=False, past=past)
    session = spark.newSession()
    session.sql(silver_sql.create(str(target), shape))
    session.conf.set("spark.sql.files.maxPartitionBytes", str(_ONE_FILE_A_TASK))
    session.conf.set("spark.sql.files.openCostInBytes", str(_ONE_FILE_A_TASK))
    wanted = [
        f"CAST({past.begun.get(c.name, quote(c.name))} AS {c.type}) AS {quote(c.name)}" for c in shape.all_columns
    ]
    session.read.parquet(str(parts)).selectExpr(*wanted).write.format("delta").mode("append").save(str(target))
    shutil.rmtree(parts)
    return target


def link(table: Path, target: Path) -> None:
    """The same table elsewhere: data files linked, since nobody changes them, the log copied."""
    shutil.copytree(table / "_delta_log", target / "_delta_log")
    for path in table.rglob("*.parquet"):
        if "_delta_log" not in path.parts:
            (target / path.relative_to(table)).parent.mkdir(parents=True, exist_ok=True)
            os.link(path, target / path.relative_to(table))


def own(silver: Path, name: str) -> None:
    """Its last commit is marked as one of the pipeline's, at the rows' commit time: apply takes it as its own."""
    newest = max((silver / "_delta_log").glob("*.json"))
    with newest.open("a") as file:
        file.write(json.dumps(transaction(tables.app_id(PIPELINE, f"{DATABASE}.{name}"), 1)) + "\n")


def plain(table: Path, target: Path, *, vectors: bool) -> None:
    """The same rows in the same files as a table that isn't clustered, with deletion vectors or without them."""
    link(table, target)
    log = target / "_delta_log"
    shutil.rmtree(log)
    log.mkdir()
    for commit in sorted((table / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        kept = [json.dumps(_plain(action, vectors)) for action in actions if "domainMetadata" not in action]
        (log / commit.name).write_text("\n".join(kept) + "\n")


def _plain(action: dict[str, Any], vectors: bool) -> dict[str, Any]:
    """protocol, metaData and add without clustering."""
    if protocol := action.get("protocol"):
        gone = _FEATURES | (set() if vectors else {_VECTORS})
        for side in ("readerFeatures", "writerFeatures"):
            protocol[side] = [feature for feature in protocol[side] if feature not in gone]
    if (meta := action.get("metaData")) and not vectors:
        meta["configuration"].pop("delta.enableDeletionVectors", None)
    action.get("add", {}).pop("clusteringProvider", None)
    return action


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
