"""One Spark session for all tests of this folder: starting it costs more than any of them."""

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
        "pipeline: steps\nlake: {path: unused}\nsources: {s: {conn_id: none, flavour: mysql}}\ntables: {include: ['*.*']}\n",
        where="steps.yaml",
    )
    session = application_session(
        "tidegate tests",
        {"spark.master": "local[2]"}
        | spark_settings.submit_conf(pipeline, ROOT)
        | {"spark.python.daemon.module": "pyspark.daemon"},
    )
    yield session
    session.stop()
