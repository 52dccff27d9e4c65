"""`tidegate latency PIPELINE`: measure, on the running pipeline, how soon a commit is visible in silver.

In:  a pipeline file whose tables include tidegate.latency_marker; its sources' connections (AIRFLOW_CONN_<ID>), whose
     accounts may create and write that table; capture and apply, running.
Out: markers at the source for some seconds, and percentiles on stdout; exit code 1 when some did not become visible.
"""

from __future__ import annotations

import time
from typing import Annotated

import typer

from tidegate import pipelines
from tidegate.cli.lake import open_lake, source_named
from tidegate.connections import from_environment
from tidegate.errors import ConfigError
from tidegate.home import EXIT_ERROR
from tidegate.limits import MARKER_WAIT_SECONDS


def latency(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline, or path of its file")],
    seconds: Annotated[float, typer.Option(help="Seconds to write markers", min=1)] = 30.0,
    rate: Annotated[float, typer.Option(help="Markers per second", min=0.1, max=100)] = 2.0,
    source: Annotated[str | None, typer.Option(help="Source of the pipeline. Default: the first")] = None,
) -> None:
    """Write markers at a source, and print the time until they are visible in silver."""
    from tidegate import tables
    from tidegate.lake.figures import latency as measured
    from tidegate.mysql.connecting.connection import connect
    from tidegate.mysql.looking.marker import MarkerWriter

    loaded, lake = open_lake(pipeline)
    name = source_named(loaded, source or next(iter(loaded.sources)))
    if not loaded.tables.keeps(tables.MARKER_DATABASE, tables.MARKER_TABLE):
        raise ConfigError(
            f"tables.include doesn't match {tables.MARKER}", where=loaded.pipeline, remedy=f'add "{tables.MARKER}"'
        )
    connection = connect(pipelines.source_info(loaded, name, from_environment, lake))
    try:
        writer = MarkerWriter(connection)
        writer.create()
        typer.echo(f"the source's clock is {writer.ahead_us / 1000:.1f} ms ahead of this machine's; taken off")
        started, written = time.time(), 0
        while (due := started + written / rate) < started + seconds:
            time.sleep(max(0.0, due - time.time()))
            writer.write()
            written += 1
    finally:
        connection.close()
    since = int(started * 1e6) + writer.ahead_us
    visible = measured.written_since(lake, since)
    end = time.monotonic() + MARKER_WAIT_SECONDS
    while (visible is None or visible.markers < written) and time.monotonic() < end:
        time.sleep(0.5)
        visible = measured.written_since(lake, since)
    typer.echo(f"{visible.markers if visible else 0} of {written} markers are visible: {visible or 'none'}")
    raise typer.Exit(0 if visible and visible.markers >= written else EXIT_ERROR)
