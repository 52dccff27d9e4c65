"""`tidegate up PIPELINE`: Airflow on this computer, with the DAGs of one pipeline.

In:  a pipeline file; connections as AIRFLOW_CONN_<ID> in the environment.
Out: Airflow standalone until Ctrl-C; its state under .tidegate/up/<pipeline>.
"""

from __future__ import annotations

import shutil
import signal
import socket
import sys
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from tidegate import config, pipelines
from tidegate.connections import from_environment
from tidegate.errors import UsageError
from tidegate.home import EXIT_ERROR, home
from tidegate.limits import UP_LOOK_SECONDS


def up(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline, or path of its file")],
    *,
    port: Annotated[
        int | None, typer.Option(help="Port of Airflow's pages. Default: the last one", min=1024, max=65535)
    ] = None,
    keep_history: Annotated[
        bool, typer.Option("--keep-history", help="Keep the runs and logs of the last time")
    ] = False,
) -> None:
    """Start Airflow on this computer for one pipeline, until Ctrl-C.

    It needs about 1.5 GB of memory, 2.8 GB while Spark works. Each start is a fresh Airflow, without the runs and logs
    of before (tables and progress are in the lake), unless --keep-history is given; a fresh one runs maintain at once.
    For several pipelines in one Airflow use an Airflow of your own: see docs/how-to/own-airflow.md.
    """
    from tidegate.local import jars
    from tidegate.local.ailing import Ailing
    from tidegate.local.airflow import Airflow
    from tidegate.local.processes import sole

    root = home()
    path = pipelines.find(pipeline).resolve()
    loaded = pipelines.load(path)
    pipelines.need_connections(loaded, from_environment)  # better reported now than by a failed task
    state = root / ".tidegate" / "up" / loaded.pipeline
    with sole(state, f"tidegate up {loaded.pipeline}"), jars.at_hand(root):
        shutil.rmtree(state / "pipelines", ignore_errors=True)
        (state / "pipelines").mkdir(parents=True)
        (state / "pipelines" / path.name).symlink_to(path)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_ERROR))
        airflow = Airflow(state / "airflow", root, state / "pipelines", {}, _port(state, port))
        try:
            airflow.start(keep=keep_history)
            print(f"tidegate: Airflow starts on port {airflow.port}: a minute or more", flush=True)
            airflow.wait_healthy(lambda text: print(f"tidegate: {text}", flush=True))
            for part in (*loaded.captures, "apply", "maintain", "snapshot", *_optional(loaded)):
                airflow.unpause(f"{loaded.pipeline}__{part}")
            print(
                f"tidegate: {airflow.url} login {airflow.user} password {airflow.password}; Ctrl-C ends it", flush=True
            )
            (state / "port").write_text(f"{airflow.port}\n")
            watched = Ailing(str(airflow.log))
            for second in count():
                airflow.check_running()
                if second % UP_LOOK_SECONDS == 0:
                    for line in watched.look(airflow.ailing(), time.monotonic()):
                        print(f"tidegate: {line}", file=sys.stderr, flush=True)
                time.sleep(1)
        finally:
            with suppress(OSError):  # the terminal may be closed
                print("tidegate: Airflow ends: up to a minute", file=sys.stderr, flush=True)
            airflow.stop()


def _port(state: Path, wanted: int | None) -> int | None:
    """The wanted port, else the last one; None: any. Raises UsageError if the wanted port is taken."""
    if wanted is not None:
        if not _free(wanted):
            raise UsageError(f"port {wanted} is taken", where="--port", remedy="give another, or none")
        return wanted
    last = (state / "port").read_text().strip() if (state / "port").exists() else ""
    return int(last) if last.isdigit() and _free(int(last)) else None


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _optional(pipeline: config.Pipeline) -> list[str]:
    """The DAGs that a pipeline has only if its file asks for them."""
    return [
        *(["approve"] if pipeline.asks else []),
        *(["verify"] if pipeline.verify.each_table_hours else []),
        *(["complete"] if pipeline.completeness.hourly else []),
        *(["progress"] if pipeline.completeness.each_minute else []),
        *(f"alerts_{name}" for name in pipeline.alerts.notifiers),
    ]
