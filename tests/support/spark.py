"""One Spark session per test process: starting it costs more than any test."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.support.servers import ROOT


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session with tidegate's own settings (tidegate.spark_settings)."""
    from spark_jobs.session import application_session
    from tidegate import config, spark_settings
    from tidegate.demo import jars

    jars.ensure(ROOT)
    os.environ.update(spark_settings.driver_environment(ROOT))
    pipeline = config.parse(
        "pipeline: steps\nlake: {path: unused}\n"
        "sources: {s: {conn_id: none, flavour: mysql}}\ntables: {include: ['*.*']}\n",
        where="steps.yaml",
    )
    conf = {"spark.master": "local[2]"} | spark_settings.submit_conf(pipeline, ROOT)
    session = application_session("tidegate tests", conf)
    yield session
    session.stop()
