"""`tidegate metrics [PIPELINE ...]`: figures for Prometheus and OpenTelemetry.

In:  pipeline files; their lakes and sources, as `tidegate status` asks them; capture's status on this machine.
Out: Prometheus' text format over HTTP until Ctrl-C, or once on stdout; with --otlp the same to OpenTelemetry.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated

import typer

from tidegate import pipelines
from tidegate.connections import from_environment
from tidegate.errors import UsageError
from tidegate.home import state_folder
from tidegate.limits import METRICS_LOOK_SECONDS


def metrics(
    pipeline: Annotated[list[str] | None, typer.Argument(help="Names or files of pipelines. Default: all")] = None,
    *,
    host: Annotated[str, typer.Option(help="Address to listen at")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen at", min=0, max=65_535)] = 9464,
    otlp: Annotated[bool, typer.Option("--otlp", help="Send to OpenTelemetry, too, by the OTEL_* variables")] = False,
    per_table: Annotated[bool, typer.Option("--per-table", help="Add two series for each table")] = False,
    once: Annotated[bool, typer.Option("--once", help="Print the figures, and end")] = False,
    state_dir: Annotated[Path | None, typer.Option(help="Folder of the value logs. Default: .tidegate")] = None,
) -> None:
    """Serve the figures of pipelines to Prometheus and OpenTelemetry."""
    if once and otlp:
        raise UsageError("--once sends nothing by --otlp", remedy="give one of them")
    from tidegate.metrics import exporting

    if not pipeline:
        good, broken = pipelines.read()
        for error in broken:
            typer.echo(f"tidegate: warning: no figures: {error}", err=True)
        if not good and once:
            raise UsageError("there is no pipeline", where=str(pipelines.folder()), remedy="see docs/pipeline.md")
    figures = exporting.Figures(
        pipeline or (),
        from_environment,
        state_dir or state_folder(),
        per_table=per_table,
        look_seconds=None if once else METRICS_LOOK_SECONDS,
    )
    if once:
        print(exporting.prometheus_text(figures), end="")
        return
    ends = [exporting.serve(figures, host, port)]
    try:
        print(f"figures at http://{host}:{port}/metrics; Ctrl-C ends it", flush=True)
        if otlp:
            ends.append(exporting.push(figures))
        threading.Event().wait()
    finally:
        for end in ends:
            end()
