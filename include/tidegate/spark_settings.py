"""How tidegate's Spark applications are submitted: settings as data, the same for Airflow, the CLI and tests.

In:  a pipeline and the project's root.
Out: spark-submit `--conf` pairs and the environment of the driver. Nothing secret: keys of an object
     store travel in the environment variable TIDEGATE_STORAGE_OPTIONS, never in argv.

The defaults suit a small machine; a pipeline's apply.spark_conf wins over them. Figures are from benchmarks on two
cores: with the C1 compiler alone a short application takes less than half of the CPU time. The default for C1 alone is
48 MB for compiled code. An application fills that in minutes, and then the JVM compiles and drops code without end.
Therefore ReservedCodeCacheSize is larger.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tidegate.config import Pipeline
from tidegate.home import HOME_ENV, SPARK_MASTER_ENV, folder_of
from tidegate.log_lines import are_json

_JVM = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -Duser.timezone=UTC"

# Arrow reaches into these packages of the JVM.
_ARROW_OPENS = " ".join(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.nio", "sun.nio.ch", "java.lang"))


def application(job: str) -> Path:
    """The script that spark-submit runs for a job: apply."""
    return folder_of("spark_jobs") / f"{job}.py"


def class_archive(root: Path) -> Path:
    """Classes of Spark and Delta as a JVM maps them (tidegate/local/class_archive.py)."""
    return root / ".tidegate" / "spark.jsa"


def _shared_classes(root: Path) -> str:
    """A JVM option, where there is an archive, and in a path that the options' text can hold."""
    archive = class_archive(root)
    return f" -XX:SharedArchiveFile={archive}" if archive.is_file() and " " not in str(archive) else ""


def _logging() -> str:
    """A JVM option: the JVM's messages for a job, and the suppressed ones (spark_jobs/log4j2.properties)."""
    file = folder_of("spark_jobs") / ("log4j2-json.properties" if are_json() else "log4j2.properties")
    return f" -Dlog4j2.configurationFile={file}" if file.is_file() and " " not in str(file) else ""


def submit_environment(root: Path) -> dict[str, str]:
    """Environment of spark-submit: the driver's, and the needs of its own first JVM, a mere printer of a command."""
    return driver_environment(root) | {"SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


def driver_environment(root: Path) -> dict[str, str]:
    """Environment of the driver (and, in local mode, of its workers)."""
    return {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", str(root / ".tidegate" / "numba")),
        HOME_ENV: str(root),
    }


def submit_conf(pipeline: Pipeline, root: Path) -> dict[str, str]:
    """Spark settings of an application for this pipeline, to be passed as --conf."""
    jars = root / ".tidegate" / "jars" / "*"
    conf = {
        "spark.driver.extraClassPath": str(jars),
        "spark.executor.extraClassPath": str(jars),
        "spark.driver.extraJavaOptions": f"{_JVM} {_ARROW_OPENS}{_logging()}{_shared_classes(root)}",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        # Spark makes this folder at its start, by default in the current folder. tidegate has no table in it.
        "spark.sql.warehouse.dir": str(root / ".tidegate" / "spark-warehouse"),
        "spark.driver.memory": pipeline.apply.driver_memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Small windows: two partitions cost two tasks, two hundred cost seconds.
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        # The staged changes are files: a second read gives the same rows, so MERGE needs no copy of its source.
        "spark.databricks.delta.merge.materializeSource": "none",
        # One MERGE per table and window is its only writer; other tables' writers don't matter to it.
        "spark.scheduler.mode": "FAIR",
        # Workers fork from a daemon that has loaded the compiled kernels already.
        "spark.python.daemon.module": "spark_jobs.session.worker_daemon",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
        # As apply writes its own files (upsert/files/data_file.py); snappy, Spark's default, makes text twice as large.
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.hadoop.parquet.compression.codec.zstd.level": "1",
        # Statistics for every column an analyst may filter by are collected by Delta's default (32).
        "spark.databricks.delta.stats.collect": "true",
        "spark.log.level": "WARN",
        # What Spark doesn't show of settings: its own words, and how Azure's keys are called.
        "spark.redaction.regex": "(?i)secret|password|passwd|token|access[.]?key|account[.]key",
    }
    master = os.environ.get(SPARK_MASTER_ENV)
    if master:
        conf["spark.master"] = master
    for name, value in driver_environment(root).items():
        conf[f"spark.executorEnv.{name}"] = value
    return conf | pipeline.apply.spark_conf
