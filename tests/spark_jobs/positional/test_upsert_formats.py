"""What the positional upsert reads and writes, against Spark's own Delta: vectors, statistics, files, keys by type.

In:  tables that Spark writes; files, vectors and statistics of tidegate/upsert.
Out: both sides say the same.
"""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_jobs.positional.writer import upserted
from tests.support.hand_table import HandTable
from tests.support.readers import READERS
from tidegate import tables
from tidegate.delta.log import DeltaLog
from tidegate.delta.table.state import TableState
from tidegate.lake.files import LakeFiles
from tidegate.upsert.actions import adopted, replaced
from tidegate.upsert.deletions import deletion_vector
from tidegate.upsert.deletions.deletion_vector import VectorWriter
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.files.rewrite import live_rows
from tidegate.upsert.files.statistics import statistics
from tidegate.upsert.fitness import why_not
from tidegate.upsert.keys.candidates import candidates
from tidegate.upsert.keys.probe_file import probe_file
from tidegate.upsert.keys.resolve import resolve
from tidegate.upsert.stage import Target, staged

pytestmark = pytest.mark.spark

PATH = "silver/db/t"
# Every type that silver has, as Spark SQL makes row number `id` of it; the first `_KEYS` may be in a key.
TYPES = {
    "tinyint": "CAST(id % 100 AS TINYINT)",
    "smallint": "CAST(id * 7 - 300 AS SMALLINT)",
    "int": "CAST(id * 1000003 - 5000000 AS INT)",
    "bigint": "id * 1000000007 - 40000000000",
    "decimal(20,0)": "CAST(18446744073709551615 - id AS DECIMAL(20,0))",
    "decimal(9,2)": "CAST(id - 50.25 AS DECIMAL(9,2))",
    "decimal(38,10)": "CAST(id AS DECIMAL(38,10)) * CAST(-1000000000000000000 AS DECIMAL(20,0))",
    "string": "concat('größe ', lpad(CAST(id AS STRING), 40, '0'))",
    "binary": "unhex(lpad(hex(id), 8, '0'))",
    "date": "date_add(DATE'1000-01-01', CAST(id AS INT) * 3000)",
    "timestamp": "timestamp_micros(id * 1234567890123 - 62135596800000000)",
    "timestamp_ntz": "CAST(timestamp_micros(id * 987654321987) AS TIMESTAMP_NTZ)",
    "float": "CAST(id / 3 AS FLOAT)",
    "double": "CAST(id / 7 AS DOUBLE)",
    "boolean": "id % 2 = 0",
    "array<float>": "array(CAST(id AS FLOAT), CAST(NULL AS FLOAT))",
}
NAMES = {kind: f"c_{number}" for number, kind in enumerate(TYPES)}
KEYS = [kind for kind in TYPES if kind not in ("boolean", "array<float>", "tinyint")]
ROWS = 100


def made(spark: SparkSession, root: Path, rows: str) -> HandTable:
    """A table of every type, written by Spark as one file."""
    table = HandTable(LakeFiles(str(root)), PATH)
    columns = ", ".join(f"{name} {kind}" for kind, name in NAMES.items())
    uri = table.lake.uri(PATH)
    spark.sql(
        f"CREATE TABLE delta.`{uri}` (id BIGINT, {columns}, {tables.COMMIT_TS} BIGINT) USING delta"
        f" TBLPROPERTIES ('delta.enableDeletionVectors'='true')"
    )
    spark.sql(f"INSERT INTO delta.`{uri}` SELECT * FROM ({rows})")
    return table


def rows_sql(start: int, end: int) -> str:
    values = ", ".join(f"{value} AS {NAMES[kind]}" for kind, value in TYPES.items())
    return f"SELECT /*+ COALESCE(1) */ id, {values}, id AS {tables.COMMIT_TS} FROM range({start}, {end}, 1, 1)"


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> HandTable:
    return made(spark, tmp_path_factory.mktemp("formats"), rows_sql(0, ROWS))


def state_of(table: HandTable) -> TableState:
    return DeltaLog(table.lake.uri(table.path)).state()


def all_rows(table: HandTable, snapshot: TableState) -> pa.Table:
    layout = FileLayout.of(snapshot, ("id",))
    parts = [part for file in snapshot.files for part in live_rows(table.lake, table.path, file, layout)]
    return pa.concat_tables(parts)


def test_statistics_are_those_that_spark_writes(table: HandTable) -> None:
    snapshot = state_of(table)
    (file,) = snapshot.files
    theirs = json.loads(file.action["stats"], parse_float=Decimal)
    layout = FileLayout.of(snapshot, ("id",))
    ours = json.loads(statistics(all_rows(table, snapshot), layout.indexed), parse_float=Decimal)
    assert ours["numRecords"] == theirs["numRecords"]
    assert ours["nullCount"] == theirs["nullCount"]
    rounded = {NAMES["timestamp"], NAMES["timestamp_ntz"]}  # Spark cuts a maximum, we round it up
    for bound in ("minValues", "maxValues"):
        assert set(ours[bound]) == set(theirs[bound])
        for name in set(ours[bound]) - rounded:
            assert ours[bound][name] == theirs[bound][name], name
    for name in rounded:
        assert ours["minValues"][name][:23] == theirs["minValues"][name][:23]
        assert theirs["maxValues"][name][:22] == ours["maxValues"][name][:22]


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_each_type_are_found_in_sparks_files(table: HandTable, kind: str) -> None:
    snapshot = state_of(table)
    layout = FileLayout.of(snapshot, (NAMES[kind],))
    rows = all_rows(table, snapshot)
    chosen = [3, 50, 99]
    deleted = rows.take(chosen)
    for name, values in ((tables.OP, [3] * 3), (tables.SEQ, [1] * 3), (tables.ORDINAL, [0, 1, 2])):
        deleted = deleted.append_column(name, pa.array(values, pa.int8() if name == tables.OP else pa.int64()))
    found = resolve([staged(Target(table.lake, table.path, layout), deleted, "s")])
    assert candidates(snapshot.files, found.table) == list(snapshot.files)
    hits = probe_file(table.lake, table.path, snapshot.files[0], found.table)
    assert hits.fresh.tolist() == chosen


@pytest.mark.parametrize(
    "condition", ["id % 3 = 0", "id BETWEEN 1000 AND 150000", "id = 77", "id % 2 = 0 OR id < 90000"]
)
def test_vectors_that_spark_wrote_are_read(spark: SparkSession, tmp_path: Path, condition: str) -> None:
    table = HandTable(LakeFiles(str(tmp_path)), PATH)
    uri = table.lake.uri(PATH)
    spark.sql(
        f"CREATE TABLE delta.`{uri}` (id BIGINT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors'='true')"
    )
    spark.sql(f"INSERT INTO delta.`{uri}` SELECT id FROM range(0, 200000, 1, 1)")
    spark.sql(f"DELETE FROM delta.`{uri}` WHERE {condition}")
    (file,) = state_of(table).files
    assert file.deletion_vector is not None
    dead = deletion_vector.read(table.lake, table.path, file.deletion_vector)
    expected = spark.sql(f"SELECT id FROM range(200000) WHERE {condition} ORDER BY id").toPandas()["id"]
    assert (dead == expected.to_numpy()).all()


def test_spark_and_the_others_read_what_a_positional_commit_leaves(spark: SparkSession, tmp_path: Path) -> None:
    table = made(spark, tmp_path, rows_sql(0, ROWS))
    other = made(spark, tmp_path / "other", rows_sql(50, 150))
    snapshot = state_of(table)
    assert why_not(snapshot) is None
    changes = all_rows(other, state_of(other))
    count = changes.num_rows
    changes = changes.set_column(
        changes.column_names.index(NAMES["string"]), NAMES["string"], pa.array([f"new {n}" for n in range(count)])
    )
    changes = changes.append_column(tables.OP, pa.array(np.where(np.arange(count) % 5, 1, 3), pa.int8()))
    changes = changes.append_column(tables.SEQ, pa.array([1] * count, pa.int64()))
    changes = changes.append_column(tables.ORDINAL, pa.array(range(count), pa.int64()))
    again = changes.slice(0, 10).set_column(  # later changes of the same keys: rows that lose on arrival
        changes.column_names.index(tables.SEQ), tables.SEQ, pa.array([2] * 10, pa.int64())
    )
    target = Target(table.lake, table.path, FileLayout.of(snapshot, ("id",)))
    found = resolve([staged(target, part, "s") for part in (changes, again)])
    with VectorWriter(table.lake, table.path) as vectors:
        hits = [probe_file(table.lake, table.path, file, found.table) for file in snapshot.files]
        actions = replaced(hits, vectors)
        actions.extend(adopted(found.files, vectors))
    DeltaLog(table.lake.uri(table.path)).commit(snapshot, upserted(actions, ("a", 1)))
    expected = [{"id": n, "note": None} for n in range(50)]
    expected += [{"id": n, "note": f"new {n - 50}"} for n in range(50, 150) if (n - 50) % 5]
    text = NAMES["string"]
    by_spark = spark.sql(f"SELECT id, {text} FROM delta.`{table.lake.uri(PATH)}` ORDER BY id").toPandas()
    seen: dict[str, list[Any]] = {"spark": list(zip(by_spark["id"], by_spark[text], strict=True))}
    for name, read in READERS.items():
        rows = read(table.lake.uri(PATH))
        seen[name] = sorted(zip(rows["id"].to_pylist(), rows[text].to_pylist(), strict=True))
        assert rows[NAMES["decimal(20,0)"]].to_pylist() == [2**64 - 1 - n for n in rows["id"].to_pylist()]
    for name, rows in seen.items():
        assert [row[0] for row in rows] == [row["id"] for row in expected], name
        assert [row[1] for row in rows[50:]] == [row["note"] for row in expected[50:]], name
    whole = spark.sql(f"SELECT * EXCEPT ({text}) FROM delta.`{table.lake.uri(PATH)}`")
    alike = spark.sql(f"SELECT * EXCEPT ({text}) FROM ({rows_sql(0, 150)}) WHERE id < 50 OR (id - 50) % 5 <> 0")
    assert whole.exceptAll(alike).count() == alike.exceptAll(whole).count() == 0
