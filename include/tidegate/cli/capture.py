"""`tidegate capture PIPELINE`: the loop that CaptureSensor runs, outside of Airflow.

In:  a pipeline file; the source's connection in AIRFLOW_CONN_<ID>, the lake's keys likewise.
Out: bronze, continued; one line of progress a second on a terminal; SIGTERM and Ctrl-C land what was read.
"""

from __future__ import annotations

import gc
import logging
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from tidegate import pipelines
from tidegate.connections import from_environment
from tidegate.home import state_folder
from tidegate.log_lines import are_json

log = logging.getLogger(__name__)


def capture(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline, or path of its file")],
    source: Annotated[str | None, typer.Option(help="Source of the pipeline. Required if it has several")] = None,
    run_for: Annotated[
        float | None,
        typer.Option(
            help="Seconds to capture; longer while the lake fails. In less than four heartbeats a quiet server proves"
            " nothing: a warning says so. Default: capture.run_for_seconds",
            min=0,
        ),
    ] = None,
    idle: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="End after this many seconds without changes, but no sooner than four heartbeats: by then a quiet"
            " source has proved its resolved_ts",
        ),
    ] = None,
    state_dir: Annotated[Path | None, typer.Option(help="Folder of the value log. Default: .tidegate")] = None,
) -> None:
    """Capture a source's binlog into bronze."""
    from tidegate.cli.lake import source_named

    loaded = pipelines.load(pipelines.find(pipeline))
    name = source_named(loaded, source)
    run = pipelines.capture_run(
        loaded, name, state_dir or state_folder(), sources=from_environment, lakes=from_environment
    )
    place = {"pipeline": loaded.pipeline, "source": name}
    proves = loaded.sources[name].traits.heartbeats_prove
    if run_for is not None and proves and (why := loaded.capture.why_unproven(run_for)):
        remedy = "raise --run-for, or lower capture.heartbeat_seconds"
        log.warning("%s: %s, and a cut waits for that; %s", name, why, remedy, extra=place)

    from tidegate.capture.progress import CaptureProgress
    from tidegate.capture.status_file import (
        lasts_text,  # numba, pyarrow: a second; a typo is reported before that
    )

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    def tell(progress: CaptureProgress) -> None:
        if sys.stderr.isatty():
            typer.echo(
                f"seq {progress.last_seq} at {progress.position}, landed {progress.landed_seq}, "
                f"{progress.bytes_per_second / 1e6:.1f} MB/s, {progress.lag_text}"
                + (f", {progress.status.state}: {lasts_text(progress.status)}" if progress.status.behind_bytes else ""),
                err=True,
            )

    gc.freeze()  # modules stay, so no collection needs to visit them
    idle_end = None if idle is None else loaded.capture.idle_end(idle)
    result = run.run(loaded.capture.run_for_seconds if run_for is None else run_for, idle_end, stop, tell)
    if are_json():
        log.info("%s", result, extra=place)
    else:
        typer.echo(str(result))
