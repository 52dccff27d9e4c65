"""Drivers of apply and maintain, some of which die at a named point, over the Spark of the test's own session.

In:  the session, or none for a driver with a JVM of its own, which starts when the driver has a use for one; a pipeline
     file, a failpoint.
Out: started(): a driver's process, whose exit code is the job's. killed(): the same, which died of SIGKILL at its
     point, and Spark runs nothing of it any more.

A driver is a process of its own, forked from one that has imported everything, and asks for the test's JVM when its job
needs one, as the job itself would start it then: `tidegate apply` and a JVM of its own for each point would cost five
times as much. What a driver knows dies with it all the same; what its JVM would have lost too is cancelled, or done
before the next driver starts.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark_jobs.session.background import BackgroundSession
from tests.kit.spark import LateSession
from tests.support.forks import forks

_SECONDS_MAX = 900
_IDLE_SECONDS_MAX = 300
BROKEN = 70  # the exit code of an exception that isn't ours


def started(
    spark: SparkSession | None,
    file: Path,
    point: str,
    *,
    job: str = "apply",
    mode: str | None = None,
    log: Path | None = None,
) -> Any:
    """A driver that works on the pipeline. job: apply or maintain; mode: apply.mode, the file's when left out."""
    ours, its = forks.Pipe() if spark is not None else (None, None)
    variables = _connections() | {"TIDEGATE_FAILPOINT": point}
    arguments = (its, str(file), variables, job, mode, None if log is None else str(log))
    driver = forks.Process(target=_drive, args=arguments)
    driver.start()
    if its is not None:
        its.close()
        threading.Thread(target=_tell, args=(ours, spark), daemon=True).start()
    return driver


def _connections() -> dict[str, str]:
    """A driver is forked from a process that was there before the test, and knows none of the test's."""
    return {name: value for name, value in os.environ.items() if name.startswith("AIRFLOW_CONN_")}


def _tell(asked: Connection, spark: SparkSession) -> None:
    """Where the JVM is, once the driver asks; it is started then."""
    with asked:
        try:
            asked.recv()
        except (EOFError, OSError):  # it ended, and had no use for one
            return
        context: Any = spark.sparkContext
        gateway = context._gateway.gateway_parameters
        with suppress(OSError):  # it was killed meanwhile
            asked.send((gateway.port, gateway.auth_token))


def killed(spark: SparkSession, file: Path, point: str) -> None:
    """Apply the pipeline in a driver of its own, which must die at the point, not end by itself."""
    driver = started(spark, file, point)
    driver.join(_SECONDS_MAX)
    code = driver.exitcode
    if code is None:
        driver.kill()
    assert code == -signal.SIGKILL, f"{point} was not reached: the driver's exit code is {code}"
    settled(spark, cancel=True, what=point)


def settled(spark: SparkSession, *, cancel: bool, what: str) -> None:
    """Wait until Spark does nothing of what drivers that were killed have asked for."""
    if isinstance(spark, LateSession) and not spark.has_started:
        return
    context: Any = spark.sparkContext
    if cancel:
        context.cancelAllJobs()
    end = time.monotonic() + _IDLE_SECONDS_MAX
    while context.statusTracker().getActiveJobsIds():
        assert time.monotonic() < end, f"{what}: Spark goes on with what the driver asked for"
        time.sleep(0.02)


def _drive(
    asked: Connection | None, file: str, variables: Mapping[str, str], job: str, mode: str | None, log: str | None
) -> None:
    """What `tidegate apply` or `tidegate maintain` does, in a JVM that isn't its own where there is whom to ask."""
    if log is not None:
        target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(target, 1)
        os.dup2(target, 2)
    os.environ.update(variables)
    code = 0
    try:
        with ExitStack() as stack:
            if asked is None:
                from tests.kit.spark import session

                background = BackgroundSession(lambda: stack.enter_context(session()))
            else:
                background = BackgroundSession(partial(_shared, asked))
            _work(background, Path(file), job, mode)
    except BaseException as error:  # noqa: BLE001  as an interpreter would end
        from spark_jobs.session.failures import TableWriteError
        from spark_jobs.session.job import failed
        from tidegate.errors import TidegateError

        if isinstance(error, TidegateError | TableWriteError):
            code = failed(error)
        else:
            traceback.print_exc()
            code = BROKEN
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # without a word to a JVM that is the test's


def _shared(asked: Connection) -> SparkSession:
    """A session in the JVM of whoever started the driver."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    from spark_jobs.session.spark import fit_to_size
    from tests.support.servers import ROOT
    from tidegate.spark_settings import driver_environment

    asked.send(None)
    port, secret = asked.recv()
    os.environ |= driver_environment(ROOT) | {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    gateway: Any = launch_gateway()
    java: Any = gateway.jvm.org.apache.spark
    jsc = java.api.java.JavaSparkContext.fromSparkContext(java.SparkContext.getOrCreate())
    context = SparkContext(jsc=jsc, gateway=gateway, conf=SparkConf(_jconf=jsc.getConf()))
    session = SparkSession(context).newSession()
    fit_to_size(session, large=False)
    return session


def _work(background: BackgroundSession, file: Path, job: str, mode: str | None) -> None:
    from spark_jobs import apply, maintain
    from spark_jobs.maintenance import Maintenance
    from spark_jobs.session.spark import maintenance_session
    from spark_jobs.window.application import Application
    from tidegate import config
    from tidegate.lake.bronze.index import BronzeIndex
    from tidegate.lake.files import LakeFiles

    pipeline = config.load(file)
    lake = LakeFiles(pipeline.lake.path)
    report = partial(print, flush=True)
    if job == "maintain":
        spark = maintenance_session(background.session, pipeline.maintain.file_bytes)
        maintain.run(Maintenance(spark, pipeline, lake, report))
        return
    if mode is not None:
        changed = pipeline.apply.model_copy(update={"mode": config.ApplyMode(mode)})
        pipeline = pipeline.model_copy(update={"apply": changed})
    apply.run(Application(background, pipeline, lake, BronzeIndex(lake)), report=report)
