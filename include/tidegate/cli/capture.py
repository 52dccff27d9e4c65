"""`tidegate capture PIPELINE`: the loop that CaptureSensor runs, outside of Airflow.

In:  a pipeline file; the source's connection in AIRFLOW_CONN_<ID>, the lake's keys likewise.
Out: bronze, continued; SIGTERM and Ctrl-C land what was read. A source that is captured alone has a line of progress a
     second on a terminal.
"""

from __future__ import annotations

import gc
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate import pipelines
from tidegate.cli.capture_each import Captures
from tidegate.cli.stop_signals import set_by_signals
from tidegate.connections import from_environment
from tidegate.home import EXIT_OK, state_folder
from tidegate.log_lines import are_json

if TYPE_CHECKING:
    from tidegate.capture.progress import CaptureProgress
    from tidegate.config import Pipeline

log = logging.getLogger(__name__)


def capture(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline, or path of its file")],
    source: Annotated[
        str | None, typer.Option(help="Source of the pipeline. Default: all, each in a process of its own")
    ] = None,
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
) -> int:
    """Capture sources' binlogs into bronze."""
    from tidegate.cli.lake import source_named

    loaded = pipelines.load(pipelines.find(pipeline))
    captures = Captures(loaded.sources, loaded.capture.run_for_seconds if run_for is None else run_for)
    if source is None and len(loaded.sources) > 1:
        pipelines.load_readers(loaded)
        name = captures.begun()
        if name is None:
            return captures.code
        if not are_json():
            logging.basicConfig(format=f"{name}: %(message)s")
    else:
        name = source_named(loaded, source)
    if run_for is not None:
        _warn_if_unproven(loaded, name, run_for)
    _run(loaded, name, captures, None if idle is None else loaded.capture.idle_end(idle), state_dir or state_folder())
    return EXIT_OK


def _run(loaded: Pipeline, name: str, captures: Captures, idle_end: float | None, state_dir: Path) -> None:
    """Capture one source, and say how it ended."""
    run = pipelines.capture_run(loaded, name, state_dir, sources=from_environment, lakes=from_environment)
    set_by_signals(captures.stop)
    gc.freeze()  # modules stay, so no collection needs to visit them
    beside = captures.is_child
    seconds = captures.left_seconds if beside else captures.run_for_seconds
    result = run.run(seconds, idle_end, captures.stop, (lambda _: captures.end_orphan()) if beside else _tell)
    if are_json():
        log.info("%s", result, extra={"pipeline": loaded.pipeline, "source": name})
    else:
        typer.echo(f"{name}: {result}" if beside else str(result))


def _warn_if_unproven(loaded: Pipeline, name: str, run_for: float) -> None:
    if loaded.sources[name].traits.heartbeats_prove and (why := loaded.capture.why_unproven(run_for)):
        place = {"pipeline": loaded.pipeline, "source": name}
        remedy = "raise --run-for, or lower capture.heartbeat_seconds"
        log.warning("%s: %s, and a cut waits for that; %s", name, why, remedy, extra=place)


def _tell(progress: CaptureProgress) -> None:
    if not sys.stderr.isatty():
        return
    from tidegate.capture.status_file import lasts_text  # pyarrow: a second; a typo is reported before that

    waits = f", {progress.status.state}: {lasts_text(progress.status)}" if progress.status.behind_bytes else ""
    typer.echo(
        f"seq {progress.last_seq} at {progress.position}, landed {progress.landed_seq}, "
        f"{progress.bytes_per_second / 1e6:.1f} MB/s, {progress.lag_text}{waits}",
        err=True,
    )
