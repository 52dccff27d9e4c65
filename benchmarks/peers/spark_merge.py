"""Changes that Delta's own MERGE puts into a Delta table, in one plain Spark job in a process of its own.

In:  per run one line of JSON on standard input: {"target", "changes", "key", "deleted"}, as delta_rs.py has them.
Out: one line of JSON: {"rows": rows inserted, updated and deleted, "values": as many}.

Its settings suit two cores: SETTINGS says why. Other options of the JVM haven't been compared warm: C1 alone with the
serial collector, which tidegate's own applications have, may be better for it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME: Final = "Delta's MERGE in a plain Spark job"
JVM: Final = "-XX:+UseParallelGC"
SETTINGS: Final = {
    "spark.driver.memory": "4g",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "2",  # as many as cores
    "spark.databricks.delta.snapshotPartitions": "2",  # the log of a table with twenty files
    "spark.databricks.delta.optimizeWrite.enabled": "false",
    "spark.databricks.delta.merge.materializeSource": "none",  # a Parquet file that nobody changes needs no copy
}


def program(root: Path) -> list[str]:
    """The command that runs this file with Delta's jars."""
    from tidegate.local import jars

    return [
        "env",
        f"PYSPARK_PYTHON={sys.executable}",
        sys.executable,
        str(Path(__file__).resolve()),
        f"{jars.ensure(root)}/*",
    ]


def session(class_path: str, more: dict[str, str]) -> SparkSession:
    """On two cores."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName(NAME)
    settings = {"spark.driver.extraClassPath": class_path, "spark.driver.extraJavaOptions": JVM}
    for name, value in (settings | SETTINGS | more).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def merge(spark: SparkSession, asked: dict[str, Any]) -> dict[str, int]:
    """One MERGE, one commit."""
    key, deleted = asked["key"], asked["deleted"]
    names = [name for name in spark.read.parquet(asked["changes"]).columns if name != deleted]
    sets = ", ".join(f"t.`{name}` = s.`{name}`" for name in names)
    columns, values = ", ".join(f"`{name}`" for name in names), ", ".join(f"s.`{name}`" for name in names)
    done = spark.sql(
        f"MERGE INTO delta.`{asked['target']}` t USING parquet.`{asked['changes']}` s ON t.`{key}` = s.`{key}`"
        f" WHEN MATCHED AND s.`{deleted}` THEN DELETE WHEN MATCHED THEN UPDATE SET {sets}"
        f" WHEN NOT MATCHED AND NOT s.`{deleted}` THEN INSERT ({columns}) VALUES ({values})"
    ).first()
    assert done is not None, "MERGE says how many rows it changed"
    return {"rows": done["num_affected_rows"], "values": done["num_affected_rows"]}


if __name__ == "__main__":
    warm = session(sys.argv[1], json.loads(sys.argv[2]) if len(sys.argv) > 2 else {})
    for line in sys.stdin:
        print(json.dumps(merge(warm, json.loads(line))), flush=True)
