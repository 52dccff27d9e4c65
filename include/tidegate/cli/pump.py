"""`tidegate pump PIPELINE [SOURCE]`: a Pump that TiDB writes its binlog to, until it is told to stop; or --ask of one.

In:  a pipeline file; the connection of TiDB's SQL port in AIRFLOW_CONN_<ID>, the lake's keys likewise.
Out: bronze, continued. A passing trouble (a full disk, a lake that is down) doesn't end it: TiDB gets an error
     meanwhile.
"""

from __future__ import annotations

import logging
import math
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from tidegate import pipelines
from tidegate.cli.stop_signals import set_by_signals
from tidegate.config import TidbSource
from tidegate.connections import from_environment
from tidegate.errors import Transient, UsageError
from tidegate.home import state_folder
from tidegate.limits import PUMP_RESTART_SECONDS
from tidegate.log_lines import are_json
from tidegate.pump.asked import Wish, asked
from tidegate.pump.etcd import etcd_of


def pump(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline, or path of its file")],
    source: Annotated[str | None, typer.Argument(help="Source of the pipeline. Required if it has several")] = None,
    state_dir: Annotated[Path | None, typer.Option(help="Folder of the value log. Default: .tidegate")] = None,
    ask: Annotated[
        Wish | None, typer.Option(help="Ask the running Pump, by PD, to pause or to close; or reopen it")
    ] = None,
) -> None:
    """Serve as a Pump: TiDB up to 8.3 writes its binlog to it, and it lands in bronze."""
    from tidegate.cli.lake import source_named

    loaded = pipelines.load(pipelines.find(pipeline))
    name = source_named(loaded, source)
    entry = loaded.sources[name]
    if not isinstance(entry, TidbSource):
        raise UsageError(
            f"source {name} is no Pump", remedy=f"`tidegate capture {loaded.pipeline} --source {name}` reads it"
        )
    if ask is not None:
        _ask(entry, name, ask)
        return
    run = pipelines.capture_run(
        loaded, name, state_dir or state_folder(), sources=from_environment, lakes=from_environment
    )
    stop = threading.Event()
    set_by_signals(stop)
    if not are_json():  # then the command's own lines are
        logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(message)s", level=logging.WARNING)
    typer.echo(f"{name}: TiDB may write to {', '.join(entry.listen)}", err=True)
    while not stop.is_set():
        try:
            result = run.run(math.inf, stop=stop)
        except Transient as error:
            typer.echo(f"tidegate: {error}", err=True)
            stop.wait(PUMP_RESTART_SECONDS)
        else:
            typer.echo(str(result))


def _ask(entry: TidbSource, source: str, wish: Wish) -> None:
    if not entry.pd:
        raise UsageError(
            f"source {source} isn't registered in PD",
            remedy="give the source `pd` in the pipeline file, or end the Pump's process",
        )
    for line in asked(etcd_of(entry), entry.node or source, wish):
        typer.echo(line)
