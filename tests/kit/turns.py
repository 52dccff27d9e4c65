"""Apply's own loop, a turn at a time, in the test's process: nothing else asks the store meanwhile. It needs no Spark.

In:  a pipeline and its lake.
Out: Turns.window(): the versions that the next window with changes made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from spark_jobs import apply as job
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from spark_jobs.window.life.following import take_up_selection
from spark_jobs.window.standing.silver_guard import ask_all
from tests.kit.spark import no_spark
from tidegate.config import Pipeline
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.control.lake_upgrade import upgrade
from tidegate.lake.files import LakeFiles

_SECONDS_MAX = 60.0


class Turns:
    """An application that has started."""

    def __init__(self, pipeline: Pipeline, lake: LakeFiles) -> None:
        self.app = Application(BackgroundSession(no_spark), pipeline, lake, BronzeIndex(lake))
        self.app.claim()
        upgrade(lake, lambda _: None)
        self.app.load()
        take_up_selection(self.app)
        ask_all(self.app)
        self._look = job.Look(self.app)

    def window(self, before: Callable[[], object] = lambda: None) -> Mapping[str, int]:
        """The next window that changes a table, with the look that finds it. before: called before each turn."""
        end = time.monotonic() + _SECONDS_MAX
        while time.monotonic() < end:
            before()
            window = self._look.next_window(time.monotonic())
            if window is None:
                continue
            done = job.apply_window(self.app, window)
            self.app.lake.empty("staging")
            self.app.control.tidy()
            if done.versions:
                return done.versions
        raise AssertionError("no window changes a table")

    def end(self) -> None:
        self.app.checkpoints.close()
