"""Run capture inside an Airflow task, and give the slot back while a source is quiet.

In:  a pipeline file, one of its sources, the run's params.
Out: segments in bronze. The task ends well when its time is up, defers when the source is quiet, and fails with
     the library's own error (retries.py says what is tried again).

Nothing is kept in Airflow: where to go on stands in bronze alone, so a task may be killed, cleared, retried
or run outside Airflow in any order. Only a pipeline's single source defers: of several, a quiet one must go
on proving its resolved_ts, or it would hold back the cut of all.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator

from tidegate import config, spark_settings
from tidegate.errors import Transient
from tidegate_airflow import pipelines
from tidegate_airflow.connections import connection_info, storage_options
from tidegate_airflow.params import with_params
from tidegate_airflow.source_trigger import WAITED, PositionAsker, SourceAdvancedTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidegate.config import Pipeline

# How long a run that was only woken to prove resolved_ts reads, in heartbeats.
_HEARTBEATS_TO_PROVE = 3


class CaptureStopped(Transient):
    """The task was told to end; what it had read is in bronze, and the next try goes on from there."""


class CaptureSensor(BaseSensorOperator):
    """Captures one source of a pipeline for run_for_seconds.

    pipeline_file: path of the YAML file; source: its name there.
    """

    def __init__(self, *, pipeline_file: str, source: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline_file = pipeline_file
        self.source = source
        self._stop = threading.Event()

    def execute(self, context: Context) -> None:
        """Read until the run's time is up; see capture_until."""
        seconds = self._pipeline(context).capture.run_for_seconds
        self.capture_until(context, time.time() + seconds)

    def resume(self, context: Context, event: dict[str, Any], deadline: float) -> None:
        """Called by Airflow when SourceAdvancedTrigger has fired."""
        self.log.info("source %s: %s", self.source, event["reason"])
        self.capture_until(context, deadline, proving=event["reason"] == WAITED)

    def capture_until(self, context: Context, deadline: float, *, proving: bool = False) -> None:
        """Capture until deadline (Unix time); defer while the source is quiet.

        proving: the source has written nothing, so a few heartbeats suffice. A run that is woken late, even past
        its deadline, reads until the source is quiet again or for run_for_seconds: a new run would come seconds later.
        """
        pipeline = self._pipeline(context)
        settings = pipeline.capture
        # Asked before reading: whatever is written from here on, read or not, differs from it.
        raise NotImplementedError
