"""Delta tables whose logs Spark wrote, each with another kind of checkpoint, and all their commits still there.

In:  a Spark session and an empty folder.
Out: SHAPES: name -> what makes such a table; `logs` makes them all. `python -m tests.support.spark_logs` writes
     tests/golden/checkpoints anew.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.servers import ROOT

VECTORS = "'delta.enableDeletionVectors'='true'"
_PART_SIZE = "spark.databricks.delta.checkpoint.partSize"
_TOP_LEVEL = "spark.databricks.delta.checkpointV2.topLevelFileFormat"


def checkpoint(spark: SparkSession, table: Path) -> None:
    """By Delta's own writer, at the newest version."""
    jvm = spark._jvm
    assert jvm is not None
    jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(table)).checkpoint()


def partitioned(spark: SparkSession, table: Path) -> None:
    """Partitions with nulls, spaces and dates; deletion vectors; a transaction; files that went."""
    spark.sql(
        f"CREATE TABLE delta.`{table}` (id BIGINT, note STRING, p STRING, d DATE) USING delta "
        f"PARTITIONED BY (p, d) TBLPROPERTIES ({VECTORS}, 'delta.checkpointInterval'='1000')"
    )
    for start in (0, 40):
        rows = (
            f"SELECT id, concat('n', id) AS note, IF(id % 3 = 0, NULL, concat('a b/ü%', id % 3)) AS p, "
            f"date_add(DATE'2024-02-28', int(id % 2)) AS d FROM range({start}, {start + 40})"
        )
        writer = spark.sql(rows).coalesce(1).write.format("delta").mode("append")
        writer.option("txnAppId", "app").option("txnVersion", start).save(str(table))
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id IN (1, 2, 50)")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE p IS NULL AND id < 40")
    checkpoint(spark, table)


def in_parts(spark: SparkSession, table: Path) -> None:
    """A multi-part checkpoint."""
    spark.sql(f"CREATE TABLE delta.`{table}` (id BIGINT) USING delta TBLPROPERTIES ('delta.checkpointInterval'='1000')")
    spark.range(6).repartition(3).write.format("delta").mode("append").save(str(table))
    spark.conf.set(_PART_SIZE, "2")
    try:
        checkpoint(spark, table)
    finally:
        spark.conf.unset(_PART_SIZE)


def _v2(spark: SparkSession, table: Path, top_level: str) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{table}` (id BIGINT, note STRING) USING delta CLUSTER BY (id) "
        f"TBLPROPERTIES ({VECTORS}, 'delta.checkpointPolicy'='v2', 'delta.checkpointInterval'='1000')"
    )
    spark.sql(f"INSERT INTO delta.`{table}` SELECT id, 'x' FROM range(20)")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 3")
    spark.conf.set(_TOP_LEVEL, top_level)
    try:
        checkpoint(spark, table)
    finally:
        spark.conf.unset(_TOP_LEVEL)


def v2_json(spark: SparkSession, table: Path) -> None:
    """A V2 checkpoint with sidecars, its top level in JSON, of a clustered table."""
    _v2(spark, table, "json")


def v2_parquet(spark: SparkSession, table: Path) -> None:
    """The same with its top level in Parquet."""
    _v2(spark, table, "parquet")


def as_columns(spark: SparkSession, table: Path) -> None:
    """Statistics as columns only, of each type that has bounds."""
    spark.sql(
        f"CREATE TABLE delta.`{table}` (b BYTE, i INT, l BIGINT, f FLOAT, x DOUBLE, m DECIMAL(20, 3), s STRING, "
        f'd DATE, t TIMESTAMP, n TIMESTAMP_NTZ, o BOOLEAN, st STRUCT<a: INT, `q"s`: STRING>) USING delta TBLPROPERTIES '
        f"('delta.checkpoint.writeStatsAsJson'='false', 'delta.checkpointInterval'='1000')"
    )
    for low in (-3, 5):
        spark.sql(
            f"INSERT INTO delta.`{table}` SELECT CAST(id AS BYTE), int(id), id * 1000000007, CAST(id / 10 AS FLOAT), "
            f"id / 10, id / 8, concat('q\"\\\\', id, 'é'), date_add(DATE'1970-01-01', int(id * 300)), "
            f"timestamp_micros(id * 1234567891), CAST(timestamp_micros(id * 1234567891) AS TIMESTAMP_NTZ), id % 2 = 0, "
            f"named_struct('a', IF(id = 0, NULL, int(id)), 'q\"s', 'z') FROM range({low}, {low + 4})"
        )
    checkpoint(spark, table)


SHAPES: dict[str, Callable[[SparkSession, Path], None]] = {
    made.__name__: made for made in (partitioned, in_parts, v2_json, v2_parquet, as_columns)
}


def logs(spark: SparkSession, folder: Path) -> dict[str, Path]:
    """All of them; name -> table."""
    for name, made in SHAPES.items():
        made(spark, folder / name)
    return {name: folder / name for name in SHAPES}


def write_golden() -> None:
    """Their logs alone, without what only Spark reads."""
    from tests.kit.spark import session

    with tempfile.TemporaryDirectory() as folder, session() as spark:
        for name, table in logs(spark, Path(folder)).items():
            kept = ROOT / "tests" / "golden" / "checkpoints" / name
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(table / "_delta_log", kept, ignore=shutil.ignore_patterns(".*", "*.crc", "_staged_commits"))


if __name__ == "__main__":
    write_golden()
