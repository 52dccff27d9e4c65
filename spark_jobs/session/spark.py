"""The only place that makes and configures Spark sessions.

In:  settings from tidegate.spark_settings (spark-submit passes them; a test passes them itself).
Out: the application's session, and one session per silver table.

The import of pyspark takes 0.2 CPU seconds, and the start of a session 3. Therefore both begin only if Spark is needed,
or while nobody waits (spark_jobs/session/background.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A silver table up to this size is rewritten where it changes: that is fewer Spark jobs than deletion vectors
# (1.5 to 2.2 CPU seconds a MERGE instead of 2.5 to 3.3, two cores), and leaves no small files behind.
DELETION_VECTORS = "spark.databricks.delta.merge.deletionVectors.persistent"


_CUBE_FILES = 32


def application_session(name: str, conf: Mapping[str, str] | None = None) -> SparkSession:
    """The session of a job. conf: settings beyond those that spark-submit passed, such as an object store's keys."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    for key, value in (conf or {}).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def table_session(spark: SparkSession, *, large: bool) -> SparkSession:
    """A session of its own for one table's statements: how they are run is session state, and so are views."""
    session = spark.newSession()
    fit_to_size(session, large=large)
    return session


def fit_to_size(session: SparkSession, *, large: bool) -> None:
    """Code generation and adaptive plans: on for a statement over much data, off for a small one."""
    session.conf.set("spark.sql.codegen.wholeStage", str(large).lower())
    session.conf.set("spark.sql.codegen.factoryMode", "FALLBACK" if large else "NO_CODEGEN")
    session.conf.set("spark.sql.adaptive.enabled", str(large).lower())


def maintenance_session(spark: SparkSession, file_bytes: int) -> SparkSession:
    """A session for OPTIMIZE, REORG and VACUUM that write files of this size."""
    session = spark.newSession()
    for name, value in {
        "spark.databricks.delta.optimize.maxFileSize": file_bytes,
        "spark.databricks.delta.optimize.minFileSize": file_bytes // 2,
        # Delta clusters one cube of files at a time. A cube of this size or more is left as it is.
        "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.threshold": _CUBE_FILES * file_bytes,
        "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.targetCubeSize": 2
        * _CUBE_FILES
        * file_bytes,
        # VACUUM lists folders in this many tasks however few there are; Spark's own number is 10,000.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": 2 * spark.sparkContext.defaultParallelism,
        # Else VACUUM commits its beginning and its end to the table's log, on a local disk by a store that doesn't
        # arbitrate between processes.
        "spark.databricks.delta.vacuum.logging.enabled": "false",
    }.items():
        session.conf.set(name, str(value))
    fit_to_size(session, large=False)
    return session
