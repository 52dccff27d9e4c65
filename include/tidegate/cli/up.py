"""`tidegate up PIPELINE`: Airflow on this computer, with the DAGs of one pipeline.

In:  a pipeline file; connections as AIRFLOW_CONN_<ID> in the environment.
Out: Airflow standalone until Ctrl-C; its state under .tidegate/up/<pipeline>.
"""

from __future__ import annotations

import shutil
import signal
import sys
import time
from typing import Annotated

import typer

from tidegate import config, spark_settings
from tidegate.cli.main import EXIT_ERROR, pipeline_path


def up(pipeline: Annotated[str, typer.Argument(help="Pipeline: its name, or its file")]) -> None:
    """Start Airflow on this computer for a pipeline."""
    from tidegate.demo import jars
    from tidegate.demo.airflow import Airflow
    from tidegate.wire.connection import ConnectionInfo

    root = spark_settings.home()
    path = pipeline_path(pipeline, root).resolve()
    loaded = config.load(path)
    for source in loaded.sources.values():
        ConnectionInfo.from_env(source.conn_id)  # a missing one is better told now than by a red task
    state = root / ".tidegate" / "up" / loaded.pipeline
    shutil.rmtree(state / "pipelines", ignore_errors=True)
    (state / "pipelines").mkdir(parents=True)
    (state / "pipelines" / path.name).symlink_to(path)
    jars.ensure(root)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_ERROR))
    airflow = Airflow(state / "airflow", root, state / "pipelines", {})
    try:
        airflow.start()
        print("tidegate: Airflow starts", flush=True)
        airflow.wait_healthy()
        for part in ("capture", "apply", "maintain", *(["approve"] if loaded.ddl.asks else [])):
            airflow.unpause(f"{loaded.pipeline}__{part}")
        print(f"tidegate: {airflow.url} login {airflow.user} password {airflow.password}; Ctrl-C ends it", flush=True)
        while True:
            airflow.check_running()
            time.sleep(1)
    finally:
        airflow.stop()
