"""One Spark session per test process, started by the first test that uses it: its start costs more than any test.

In:  nothing.
Out: `spark`, which most roads hand to apply, and apply leaves alone; session(); frame(); no_spark().
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from tests.support.servers import ROOT

# A JVM that lives through hundreds of tests: what runs often is compiled sooner, and young objects get more room.
# Of 80 CPU seconds of small statements these two saved 3 and 2.
_LONG_LIVED = "-XX:CompileThresholdScaling=0.2 -XX:-DontCompileHugeMethods -Xms1g -Xmn512m"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The process' one session."""
    with ExitStack() as stack:
        yield cast("SparkSession", LateSession(lambda: stack.enter_context(session(jvm=_LONG_LIVED))))


class LateSession:
    """A session that starts when something of it is asked for."""

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._started: SparkSession | None = None

    @property
    def has_started(self) -> bool:
        """Whether there is a JVM."""
        return self._started is not None

    def __getattr__(self, name: str) -> Any:
        """Everything of a session, which the object itself lacks."""
        with self._lock:
            if self._started is None:
                self._started = self._start()
        return getattr(self._started, name)


def frame(spark: SparkSession, rows: Iterable[Sequence[Any]], columns: str) -> DataFrame:
    """Rows of these columns, in SQL's words, given to the JVM as Arrow: Spark's own way for rows starts workers of
    Python, 2 CPU seconds each time.
    """
    schema = to_arrow_schema(StructType.fromDDL(columns))
    names = schema.names
    table = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema)
    return spark.createDataFrame(table, StructType.fromDDL(columns))


def no_spark() -> SparkSession:
    """Of an application that must do without."""
    raise AssertionError("what is tested here needs no Spark")


@contextmanager
def session(more: Mapping[str, str] | None = None, *, jvm: str = "") -> Iterator[SparkSession]:
    """A local session with tidegate's own settings (tidegate.spark_settings), and more: of a store, of its JVM.

    Tests' own statements are about small tables: they run without generated code, as apply's do over small windows.
    Sessions that jobs make from this one start from Spark's defaults. It lives through hundreds of tests: with more
    memory than an application has, it spends less time on collecting garbage.
    """
    from spark_jobs.session.spark import application_session, fit_to_size
    from tidegate import config, spark_settings
    from tidegate.local import jars

    jars.ensure(ROOT)
    os.environ.update(spark_settings.driver_environment(ROOT))
    pipeline = config.parse(
        "pipeline: steps\nlake: {path: unused}\napply: {driver_memory: 2g}\n"
        "sources: {s: {conn_id: none, flavour: mysql}}\ntables: {include: ['*.*']}\n",
        where="steps.yaml",
    )
    conf = {"spark.master": "local[2]"} | spark_settings.submit_conf(pipeline, ROOT) | dict(more or {})
    # VACUUM lists a table's folders in this many tasks however few there are: Spark's 10,000 are 50 CPU seconds.
    conf["spark.sql.sources.parallelPartitionDiscovery.parallelism"] = "2"
    # Delta reads a log of a few commits in one task as well as in two.
    conf["spark.databricks.delta.snapshotPartitions"] = "1"
    # Nobody looks at what each task has done while it runs.
    conf["spark.ui.liveUpdate.period"] = "-1"
    conf["spark.driver.extraJavaOptions"] += f" {jvm}"
    made = application_session("tidegate tests", conf)
    fit_to_size(made, large=False)
    yield made
    made.stop()
