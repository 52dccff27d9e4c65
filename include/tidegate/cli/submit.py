"""Run one of tidegate's Spark jobs by spark-submit, as the DAGs do.

In:  a job's name, a pipeline file, the job's own arguments.
Out: spark-submit's exit code; an object store's keys travel in the environment, never in argv.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tidegate import config, spark_settings
from tidegate.cli.capture import lake_secrets
from tidegate.cli.main import pipeline_path


def submit(job: str, pipeline: str, arguments: Sequence[str], master: str) -> int:
    """pipeline: its name, or its file. Raises UsageError, ConfigError."""
    root = spark_settings.home()
    path = pipeline_path(pipeline, root)
    loaded = config.load(path)
    command = [str(Path(sys.executable).parent / "spark-submit"), "--master", master]
    for name, value in spark_settings.submit_conf(loaded, root).items():
        command += ["--conf", f"{name}={value}"]
    command += [str(spark_settings.application(job, root)), "--pipeline", str(path), *arguments]
    environment = os.environ | spark_settings.driver_environment(root)
    if secrets := lake_secrets(loaded.lake.conn_id):
        environment[spark_settings.STORAGE_OPTIONS_ENV] = json.dumps(secrets)
    return subprocess.run(command, env=environment, check=False).returncode
