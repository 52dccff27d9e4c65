"""Applications of apply, several at a time, started again whenever one ends: as Airflow does, and as it shouldn't.

In:  a pipeline file; Spark, whose JVM outlives each driver, as that of a killed task may.
Out: Applies: start, stop for a while, kill, and run to the end. Nothing here takes apply's lock: two drivers of one
     pipeline are two machines that don't share a folder.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.kit import spark
from tests.soak.witness import Wrong
from tests.support import driver
from tests.support.nursery import TERMINAL, TRANSIENT

RUNNING_MAX: Final = 3
_SECONDS: Final = 3600.0  # a busy machine takes that long for a backlog of small segments
_TRIES_MAX: Final = 8
_BETWEEN_JOBS_SECONDS: Final = 0.5
_KILLED: Final = -signal.SIGKILL


@dataclass(slots=True)
class Driver:
    """One process. wake_at: when it goes on, of one that was stopped. met_refusal: its lake was something else."""

    process: Any
    job: str
    wake_at: float = 0.0
    met_refusal: bool = False

    def send(self, number: signal.Signals) -> None:
        if self.process.exitcode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, number)

    def kill(self) -> None:
        self.send(signal.SIGKILL)  # a stopped process, too
        self.process.join()


class Applies:
    """A context manager. started: how many; ended: how many of them by themselves."""

    def __init__(self, file: Path, log: Path) -> None:
        self.started = self.ended = 0
        self._file, self._log = file, log
        self._running: list[Driver] = []
        self._stack = contextlib.ExitStack()
        self._spark: SparkSession | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._stack.close()

    def applies(self) -> list[Driver]:
        return [one for one in self._running if one.job == "apply"]

    def start(self, *, mode: str, point: str = "none", job: str = "apply") -> Driver | None:
        """None when so many run already that this machine would do nothing else."""
        self.tend()
        if len(self._running) >= RUNNING_MAX:
            return None
        self.started += 1
        self.say(f"--- {job} {self.started}: {mode}, {point}")
        process = driver.started(self.spark, self._file, point, job=job, mode=mode or None, log=self._log)
        self._running.append(Driver(process, job))
        self.say(f"--- {job} {self.started} is process {process.pid}")
        return self._running[-1]

    def ask(self, statement: str) -> None:
        """What a person asks of Spark; an apply that was faster makes it fail."""
        self.say(f"--- {statement}")
        try:
            self.spark.sql(statement).collect()
        except (PySparkException, Py4JJavaError) as error:  # Delta's own exceptions come as they are
            if "[DELTA_CONCURRENT_" not in str(error):
                raise
            self.say("--- another commit was faster")

    @property
    def spark(self) -> SparkSession:
        if self._spark is None:
            self._spark = self._stack.enter_context(spark.session())
            self._spark.sparkContext.setLogLevel("OFF")  # what drivers that are killed leave behind
        return self._spark

    def stop(self, one: Driver, seconds: float) -> None:
        """It stands still, as a machine may, and goes on as if nothing had happened."""
        one.send(signal.SIGSTOP)
        one.wake_at = time.monotonic() + seconds
        self.say(f"--- {one.process.pid} sleeps for {seconds:.1f} s")

    def tend(self) -> None:
        """Wake whose time has come; look at what those that ended say. Raises Wrong."""
        for one in list(self._running):
            if one.wake_at and time.monotonic() >= one.wake_at:
                one.wake_at = 0.0
                one.send(signal.SIGCONT)
                self.say(f"--- {one.process.pid} wakes")
            if (code := one.process.exitcode) is not None:
                self._running.remove(one)
                self.ended += code != _KILLED
                if code == TERMINAL and one.met_refusal and "LakeRefused: " in self._log.read_text():
                    self.say(f"--- {one.process.pid} was refused by the lake")
                elif code not in (0, TRANSIENT, _KILLED):
                    raise Wrong(f"{one.job} (process {one.process.pid}) ended with {code}: see apply.log")

    def kill_one(self) -> bool:
        """SIGKILL to the one that runs longest; what it asked of Spark goes on."""
        for one in self.applies():
            one.kill()
            self.say(f"--- {one.process.pid} is killed")
            self._running.remove(one)
            return True
        return False

    def meet_refusal(self) -> None:
        """Those that run now may find something else where their lake was: they end, and a person starts others."""
        for one in self._running:
            one.met_refusal = True

    def end(self) -> None:
        for one in self._running:
            one.kill()
        self._running.clear()

    def quiet(self) -> None:
        """None runs, and Spark does nothing that they have asked for: as when each had a JVM of its own."""
        self.end()
        if self._spark is None:
            return
        for _ in range(2):  # what was between two jobs begins one more
            driver.settled(self._spark, cancel=True, what="an end of all applies")
            time.sleep(_BETWEEN_JOBS_SECONDS)

    def to_the_end(self) -> None:
        """As Airflow's retries: until a batch ends by itself. Others may still run. Raises Wrong."""
        for _ in range(_TRIES_MAX):
            one = self.start(mode="batch")
            if one is None:
                self.end()
                continue
            end = time.monotonic() + _SECONDS
            while one.process.exitcode is None:
                self.tend_others(one)
                if time.monotonic() > end:
                    raise Wrong(f"apply takes over {_SECONDS:.0f} s")
                time.sleep(0.05)
            self._running.remove(one)
            if one.process.exitcode == 0:
                return
            if one.process.exitcode != TRANSIENT:
                raise Wrong(f"apply (process {one.process.pid}) ended with {one.process.exitcode}: see apply.log")
        raise Wrong(f"apply failed {_TRIES_MAX} times in a row: see apply.log")

    def tend_others(self, one: Driver) -> None:
        self._running.remove(one)
        try:
            self.tend()
        finally:
            self._running.append(one)

    def say(self, line: str) -> None:
        with self._log.open("a") as log:
            log.write(f"{time.strftime('%H:%M:%S')} {line}\n")
