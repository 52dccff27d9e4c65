"""A driver in a process of its own: it applies lakes, one after the other, in one warm Spark application.

In:  --master MASTER; on stdin a line of JSON for each lake: its pipeline file, where the lake is, the store's options.
Out: on stdout a line of JSON for each: windows, and the seconds that it took. All else goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, TextIO

from spark_jobs.apply import run as run_apply
from spark_jobs.session.background import BackgroundSession
from spark_jobs.session.spark import application_session
from spark_jobs.window.application import Application
from tidegate import config, spark_settings
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.files import LakeFiles
from tidegate.tables import State

ROOT = Path(__file__).resolve().parents[1]
# Of a cluster on this machine: its workers have one core each.
_CLUSTER = {
    "spark.executor.cores": "1",
    "spark.executor.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Driver:
    """sessions: none before the first lake that needs one."""

    def __init__(self, master: str) -> None:
        self._master = master
        self._background: BackgroundSession | None = None

    def apply(self, asked: dict[str, Any]) -> dict[str, Any]:
        """One lake, until nothing is left."""
        pipeline = config.parse(asked["pipeline"], where="bench.yaml")
        lake = LakeFiles(asked["lake"], asked["options"])
        if self._background is None:
            conf = {"spark.master": self._master} | spark_settings.submit_conf(pipeline, ROOT)
            conf |= {} if self._master.startswith("local") else _CLUSTER
            conf |= asked["spark_options"]
            self._background = BackgroundSession(lambda: application_session("tidegate bench", conf))
            _ = self._background.session  # a long-running application has it
        began = time.monotonic()
        app = Application(self._background, pipeline, lake, BronzeIndex(lake))
        windows = run_apply(app, report=_say)
        held = [f"{name}: {standing.reason}" for name, standing in app.states.of(State.HELD)]
        assert not held, held[0]
        return {"windows": windows, "seconds": time.monotonic() - began}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--master", required=True)
    given = options.parse_args()
    os.environ.update(spark_settings.driver_environment(ROOT))
    answers: TextIO = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the JVM's lines, too
    driver = Driver(given.master)
    for line in sys.stdin:
        print(json.dumps(driver.apply(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
