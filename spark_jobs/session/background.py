"""Spark that comes up beside the work, and is waited for only by what needs it.

In:  a function that makes the session, as spark.py does.
Out: BackgroundSession: the session, or the one error that starting it ended with.

Most windows are written without the JVM. Where Spark is one machine, its start takes all cores for three seconds and
memory for as long as the application lives: apply begins it when a window needs it. The executors of a cluster take
long to come: apply begins it once the first window is done and it goes on looking.
"""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from spark_jobs.session.failures import first_line, java_classes
from tidegate.errors import ConfigError, SparkUnavailable, TidegateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# In the environment of every process that YARN starts.
_YARN_CONTAINER: Final = "CONTAINER_ID"
# The port of the JVM that started this driver.
_GATEWAY: Final = "PYSPARK_GATEWAY_PORT"
# The next start would fail in the same way after these: an invalid setting, a class that no jar
# has.
_LASTING: Final = frozenset(
    {"java.lang.IllegalArgumentException", "java.lang.ClassNotFoundException", "java.lang.NoClassDefFoundError"}
)


class BackgroundSession:
    """The session of a job, begun once. Its methods may be called from any thread."""

    def __init__(self, make: Callable[[], SparkSession]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._session: SparkSession | None = None
        self._error: TidegateError | None = None
        self._is_asked = False
        if _YARN_CONTAINER in os.environ:  # YARN takes a driver without a Spark context for one that failed
            self.begin()

    def begin(self) -> None:
        """Start Spark, unless that was begun before; doesn't wait for it."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._start, name="spark", daemon=True)
                self._thread.start()

    def begin_ahead(self) -> None:
        """Start Spark before a window needs it, unless its executors are this machine's cores.
        Later calls do nothing.
        """
        if not self._is_asked:
            self._is_asked = True
            if _GATEWAY not in os.environ or not self.is_local():
                self.begin()

    def _start(self) -> None:
        try:
            self._session = self._make()
        except BaseException as error:  # noqa: BLE001 - raised where Spark is asked for
            traceback.print_exception(error)
            self._error = _named(error)

    def check(self) -> None:
        """Raises SparkUnavailable or ConfigError if the start of Spark has failed."""
        if self._error is not None:
            raise self._error

    @property
    def session(self) -> SparkSession:
        """Waits until it is there. Raises SparkUnavailable, whatever `check` does: no table is held for it."""
        self.begin()
        assert self._thread is not None, "begun"
        self._thread.join()
        if self._session is None:
            what = self._error.what if self._error else "Spark did not start"
            raise SparkUnavailable(what, where="Spark") from self._error
        return self._session

    def is_local(self) -> bool:
        """Whether executors are this machine's cores. Asked of spark-submit's settings, so Spark needn't start for it.

        Raises SparkUnavailable.
        """
        if self._session is None and _GATEWAY in os.environ:
            return _submitted_master().startswith("local")
        return (self.session.sparkContext.master or "").startswith("local")

    def stop(self) -> None:
        """End Spark if it was begun. Waits for a session that is being started: a JVM can't end
        cleanly during that.
        """
        if self._thread is not None:
            self._thread.join()
        if self._session is not None:
            self._session.stop()


def top_process() -> int:
    """The process above all work of this job: spark-submit's JVM, which this driver and its workers are below."""
    return os.getppid() if _GATEWAY in os.environ else os.getpid()


def _submitted_master() -> str:
    """The master that spark-submit was given (`local[*]`, `yarn` ...), read from its JVM. The JVM
    runs before any session.
    """
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()  # noqa: SLF001 - joins that JVM, as each session's start does; under a lock
    return SparkConf().get("spark.master") or ""


def _named(error: BaseException) -> TidegateError:
    """The error to raise: why Spark isn't there. ConfigError if another try would fail, too."""
    if isinstance(error, TidegateError):
        return error
    what = f"Spark did not start: {first_line(error)}"
    if any(name in _LASTING for names in java_classes(error) for name in names):
        return ConfigError(what, where="Spark", remedy="check apply.spark_conf, the Spark connection and the jars")
    return SparkUnavailable(what, where="Spark", remedy="see the lines above; the next run tries again")
