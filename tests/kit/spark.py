"""One Spark session per test process: starting it costs more than any test."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

from tests.support.servers import ROOT

# A JVM that lives through hundreds of tests: what runs often is compiled sooner, and young objects get more room.
# Of 80 CPU seconds of small statements these two saved 3 and 2.
_LONG_LIVED = "-XX:CompileThresholdScaling=0.2 -XX:-DontCompileHugeMethods -Xms1g -Xmn512m"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The process' one session."""
    with session(jvm=_LONG_LIVED) as made:
        yield made


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
    conf["spark.driver.extraJavaOptions"] += f" {jvm}"
    made = application_session("tidegate tests", conf)
    fit_to_size(made, large=False)
    yield made
    made.stop()
