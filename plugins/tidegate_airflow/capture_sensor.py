"""Run capture inside an Airflow task, and give the slot back while a source is quiet.

In:  a pipeline file, one of its sources, the run's params.
Out: segments in bronze. The task ends well when its time is up, defers when the source is quiet, and fails with
     the library's own error (retries.py says what is tried again).

Airflow keeps no state of it: the position is in bronze alone. Therefore a task may be killed, cleared, retried or run
outside of Airflow in any order. A source defers only if it is the pipeline's single one. With several sources, a quiet
one must go on proving its resolved_ts, or it would hold back the cut of all. With semi_sync no source defers: the
server's next commit would wait for a reader that is gone.
"""

from __future__ import annotations

import math
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import BaseSensorOperator

from tidegate import pipelines
from tidegate.errors import Transient
from tidegate.home import state_folder
from tidegate.limits import (
    CAPTURE_REFUSED_SECONDS,
    HOUR_PROVEN_SECONDS,
    HOUR_SECONDS,
    PROOF_START_SECONDS,
    PUMP_REFUSED_AGAIN_SECONDS,
    REPORT_SECONDS,
)
from tidegate_airflow import lineage
from tidegate_airflow.connections import lake_connection, source_connection
from tidegate_airflow.params import with_params
from tidegate_airflow.source_trigger import ADVANCED, LOST, WAITED, SourceAdvancedTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidegate.capture.progress import CaptureProgress, CaptureResult
    from tidegate.config import Pipeline
    from tidegate_airflow.lineage import Lineage

_AWAKE: Final = {
    ADVANCED: "writes again",
    WAITED: "is still quiet, and the wait's time is up: capture proves that nothing is missing",
    LOST: "gave the watcher no answer: capture asks it",
}


class CaptureStopped(Transient):
    """The task was told to end. Bronze has what it had read, and the next try goes on from there."""


class CaptureSensor(BaseSensorOperator):
    """Captures one source of a pipeline for run_for_seconds.

    pipeline_file: path of the YAML file; source: its name there.
    """

    shallow_copy_attrs = ("_stop",)  # Airflow copies operators; a lock can't be copied
    _lineage: Lineage | None = None

    def __init__(self, *, pipeline_file: str, source: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline_file = pipeline_file
        self.source = source
        self._stop = threading.Event()
        self._reported_at = 0.0

    def execute(self, context: Context) -> None:
        """Read until the run's time is up. Raises what capture raises, or CaptureStopped."""
        pipeline = self._pipeline(context)
        ends_at, refused_until = run_ends_at(pipeline, self.source, time.time()), math.inf
        while True:
            try:
                return self._capture_or_wait(pipeline, ends_at, is_whole=True)
            except Transient:
                raise
            except Exception as error:
                pushes = pipeline.sources[self.source].traits.pushes
                if len(pipeline.sources) == 1 and not pushes:  # Airflow pauses its DAG after some failures
                    raise
                # The next run begins at once: thousands of runs and logins a day. TiDB waits for a Pump, which is back
                # as soon as it is no longer refused.
                now = time.monotonic()
                refused_until = min(refused_until, now + CAPTURE_REFUSED_SECONDS)
                left = refused_until - now
                self.log.error("%s; the task ends in %.0f s", error, left)  # noqa: TRY400
                again = left > 0 and pushes
                if self._stop.wait(min(left, PUMP_REFUSED_AGAIN_SECONDS) if again else left) or not again:
                    raise
                pipeline = self._pipeline(context)

    def resume(self, context: Context, event: dict[str, Any], deadline: float) -> None:
        """Go on after SourceAdvancedTrigger has fired."""
        pipeline = self._pipeline(context)
        self.log.info("source %s %s", self.source, _AWAKE[event["reason"]])
        if event["reason"] == WAITED:
            proof_seconds = pipeline.capture.proof_seconds
            self._capture(pipeline, proof_seconds + PROOF_START_SECONDS, proof_seconds)
            self._make_lineage(pipeline, None)  # only a part of the run is known
        else:
            # The source writes again. The run reads on even if its time is nearly up: otherwise the changes would wait
            # for some seconds until the next run has started.
            self._capture_or_wait(pipeline, max(deadline, time.time() + pipeline.capture.idle_seconds))

    def on_kill(self) -> None:
        """Called from SIGTERM's handler: the loop lands what it has and ends."""
        # Not in this thread: it may hold the lock that set() takes.
        threading.Thread(target=self._stop.set).start()

    def _capture_or_wait(self, pipeline: Pipeline, deadline: float, *, is_whole: bool = False) -> None:
        """Capture until deadline (Unix time). If the source goes quiet before that, wait in the triggerer. is_whole:
        this is the run's beginning.
        """
        # Only a server can be asked whether it wrote. A Pump is written to, and a changefeed's path is read.
        watched = pipeline.watched_while_at_rest(self.source)
        result = self._capture(pipeline, deadline - time.time(), pipeline.capture.idle_end_seconds if watched else None)
        if watched and result.reason == "idle" and deadline > time.time():
            self.log.info("source %s is quiet at %s; waiting for it to write", self.source, result.position)
            until = waits_until(pipeline, time.time(), deadline)
            self.defer(
                trigger=SourceAdvancedTrigger(watched, str(result.position), until),
                method_name="resume",
                kwargs={"deadline": deadline},
            )
        self._make_lineage(pipeline, result.bytes if is_whole else None)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Lineage | None:
        """The source's tables, read into bronze: the OpenLineage provider calls this."""
        del task_instance
        return self._lineage

    def _make_lineage(self, pipeline: Pipeline, size: int | None) -> None:
        if lineage.is_on():
            self._lineage = lineage.made(lambda: lineage.of_capture(pipeline, self.source, size))

    def _capture(self, pipeline: Pipeline, seconds: float, idle_seconds: float | None = None) -> CaptureResult:
        run = pipelines.capture_run(
            pipeline, self.source, state_folder(), sources=source_connection, lakes=lake_connection
        )
        result = run.run(seconds, idle_seconds, stop=self._stop, on_progress=self._report)
        self.log.info("%s", result)
        if result.reason == "stopped":
            raise CaptureStopped("capture was told to end", where=f"{pipeline.pipeline}/{self.source}")
        return result

    def _report(self, progress: CaptureProgress) -> None:
        """A line in the task's log, at most every ten seconds."""
        now = time.monotonic()
        if now - self._reported_at >= REPORT_SECONDS:
            self._reported_at = now
            if str(progress.position).startswith(":"):
                self.log.info("source %s answers; it has written nothing since capture began", self.source)
                return
            self.log.info(
                "source %s: %d segments captured, %.1f MB/s, %s, at %s",
                self.source,
                progress.segments,
                progress.bytes_per_second / 1e6,
                progress.lag_text,
                progress.position,
            )

    def _pipeline(self, context: Context) -> Pipeline:
        """The file as it is now, with this run's params."""
        # Bronze is an outlet for Airflow's graph only; its events come from its watcher. An event at the end of each
        # run would start Spark every few minutes for a quiet source.
        self.outlets = []
        pipeline = pipelines.load(Path(self.pipeline_file))
        part = with_params(pipeline.capture, context["params"], where=str(context["run_id"]))
        return pipelines.resolved(pipeline.model_copy(update={"capture": part}))


def run_ends_at(pipeline: Pipeline, source: str, now: float) -> float:
    """The end of a run that begins now, in Unix time. Each Pump of a TiDB has its own place in the cycle of the clock:
    while one run ends and Airflow starts the next one, TiDB finds the other Pumps.
    """
    seconds, pumps = pipeline.capture.run_for_seconds, pipeline.pumps(source)
    if len(pumps) == 1:
        return now + seconds
    phase = seconds * pumps.index(source) / len(pumps)
    least = now + seconds / 2
    return phase + seconds * math.ceil((least - phase) / seconds)


def waits_until(pipeline: Pipeline, now: float, deadline: float) -> float:
    """The end of a run's wait for a quiet source, in Unix time. If hours are to be complete, it ends just after the
    hour, to prove it.
    """
    next_hour = (now // HOUR_SECONDS + 1) * HOUR_SECONDS
    return min(deadline, next_hour + HOUR_PROVEN_SECONDS) if pipeline.completeness.hourly else deadline
