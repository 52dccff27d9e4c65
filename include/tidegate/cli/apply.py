"""`tidegate apply PIPELINE`: the job that <pipeline>__apply submits, without Airflow.

In:  a pipeline file; an object store's keys in the lake's connection (AIRFLOW_CONN_<ID>).
Out: silver; spark-submit's exit code, the job's last line on stderr.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from tidegate import config, spark_settings
from tidegate.cli.capture import lake_secrets
from tidegate.cli.main import pipeline_path
from tidegate.config import ApplyMode


def apply(
    pipeline: Annotated[str, typer.Argument(help="Pipeline: its name, or its file")],
    mode: Annotated[ApplyMode | None, typer.Option(help="apply.mode of the pipeline file when empty")] = None,
    run_for: Annotated[int | None, typer.Option(help="micro_batch: seconds to go on for", min=5)] = None,
    master: Annotated[str, typer.Option(help="Spark master")] = "local[2]",
) -> None:
    """Apply bronze to silver."""
    root = spark_settings.home()
    path = pipeline_path(pipeline, root)
    loaded = config.load(path)
    conf = spark_settings.submit_conf(loaded, root)
    command = [str(Path(sys.executable).parent / "spark-submit"), "--master", master]
    for name, value in conf.items():
        command += ["--conf", f"{name}={value}"]
    command += [str(spark_settings.application("apply", root)), "--pipeline", str(path)]
    if mode is not None:
        command += ["--mode", mode.value]
    if run_for is not None:
        command += ["--run-for-seconds", str(run_for)]
    environment = os.environ | spark_settings.driver_environment(root)
    if secrets := lake_secrets(loaded.lake.conn_id):
        environment[spark_settings.STORAGE_OPTIONS_ENV] = json.dumps(secrets)
    done = subprocess.run(command, env=environment, check=False)
    raise typer.Exit(done.returncode)
