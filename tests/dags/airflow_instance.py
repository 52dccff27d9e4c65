"""A real Airflow of a test's own: the demo's, whose DAG files are parsed when it asks, and questions that a test asks.

In:  a folder for AIRFLOW_HOME, a folder of pipeline files, connections as AIRFLOW_CONN_* values.
Out: a running scheduler, DAG processor, triggerer and API server; every process ended at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from http.client import HTTPException
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.error import HTTPError

from tests.support.servers import ROOT
from tidegate.local.airflow import Airflow

_ANSWERS_SECONDS = 300


class AirflowInstance(Airflow):
    """`with AirflowInstance(home, pipelines, connections) as airflow: airflow.get("/dags")`."""

    def __init__(self, home: Path, pipelines: Path, connections: Mapping[str, str]) -> None:
        super().__init__(home, ROOT, pipelines, connections)
        self._environment |= {
            # At the start, and when a DAG was unpaused: each time takes a CPU second a file.
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "300",
        }

    def __enter__(self) -> Self:
        self.start()
        try:
            self.wait_healthy()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def get(self, path: str) -> dict[str, Any]:
        """A GET of the public API, below /api/v2. A server too busy to answer in time is asked again."""
        end = time.monotonic() + _ANSWERS_SECONDS
        while True:
            try:
                return self.call("GET", f"/api/v2{path}")
            except HTTPError:
                raise
            except (OSError, HTTPException):
                self.check_running()
                if time.monotonic() > end:
                    raise

    def pause(self, *dag_ids: str) -> None:
        """Let no further run of them begin."""
        for dag_id in dag_ids:
            self.call("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": True})

    def wait_for(self, done: Callable[[], Any], seconds: float, what: str) -> Any:
        """The first true answer; AssertionError with Airflow's last log lines when none comes in time. An error of its
        server, whose database may be locked for the moment, is none.
        """
        end, error = time.monotonic() + seconds, ""
        while time.monotonic() < end:
            self.check_running()
            try:
                if found := done():
                    return found
            except HTTPError as failed:
                error = f", {failed}"
            time.sleep(0.5)
        tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-40:])
        raise AssertionError(f"{what}: not within {seconds} s{error}\n{tail}")

    def task_log(self, dag_id: str) -> str:
        """The log of the newest task instance of a DAG."""
        found = sorted((self.home / "logs").glob(f"dag_id={dag_id}/**/*.log"), key=lambda path: path.stat().st_mtime)
        return found[-1].read_text(errors="replace") if found else ""
