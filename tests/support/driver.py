"""Apply drivers that die at a named point, over the Spark of the test's own session.

In:  the session, a pipeline file, a failpoint.
Out: killed(): the driver process died of SIGKILL there, and Spark runs nothing of it any more.

A driver is a process of its own, forked from one that has imported everything, and speaks to the JVM that is there:
`tidegate apply` and a JVM of its own for each point would cost five times as much. What a driver knows dies with it all
the same; what its JVM would have lost too is cancelled, or done before the next driver starts.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

_SECONDS_MAX = 300
_IDLE_SECONDS_MAX = 30
_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(["spark_jobs.apply", "tidegate.binlog.decode", "tests.support.driver"])


def killed(spark: SparkSession, file: Path, point: str) -> None:
    """Apply the pipeline in a driver of its own, which must die at the point, not end by itself."""
    context: Any = spark.sparkContext
    parameters = context._gateway.gateway_parameters
    driver = _forks.Process(target=_drive, args=(parameters.port, parameters.auth_token, str(file), point))
    driver.start()
    driver.join(_SECONDS_MAX)
    code = driver.exitcode
    if code is None:
        driver.kill()
    assert code == -signal.SIGKILL, f"{point} was not reached: the driver's exit code is {code}"
    context.cancelAllJobs()
    end = time.monotonic() + _IDLE_SECONDS_MAX
    while context.statusTracker().getActiveJobsIds():
        assert time.monotonic() < end, f"{point}: Spark goes on with what the driver asked for"
        time.sleep(0.02)


def _drive(port: int, secret: str, file: str, point: str) -> None:
    """What `tidegate apply` does, in a JVM that isn't its own."""
    os.environ |= {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret, "TIDEGATE_FAILPOINT": point}
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    from spark_jobs.application import Application
    from spark_jobs.apply import run
    from spark_jobs.session import fit_to_size
    from tidegate import config
    from tidegate.lake.bronze_index import BronzeIndex
    from tidegate.lake.files import LakeFiles

    gateway: Any = launch_gateway()
    java: Any = gateway.jvm.org.apache.spark
    jsc = java.api.java.JavaSparkContext.fromSparkContext(java.SparkContext.getOrCreate())
    context = SparkContext(jsc=jsc, gateway=gateway, conf=SparkConf(_jconf=jsc.getConf()))
    session = SparkSession(context).newSession()
    fit_to_size(session, large=False)
    pipeline = config.load(Path(file))
    lake = LakeFiles(pipeline.lake.path)
    run(Application(session, pipeline, lake, BronzeIndex(lake)), report=print)
    os._exit(0)  # without a word to the JVM: it is the test's
