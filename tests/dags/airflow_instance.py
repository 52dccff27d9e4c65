"""A real Airflow of a test's own: standalone, in a folder and on a port of its own, without a user's settings.

In:  a folder for AIRFLOW_HOME, a folder of pipeline files, connections as AIRFLOW_CONN_* values.
Out: a running scheduler, DAG processor, triggerer and API server; its REST API; every process ended at the end.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.servers import ROOT

START_SECONDS_MAX = 120


class AirflowInstance:
    """`with AirflowInstance(home, pipelines, connections) as airflow: airflow.get("/dags")`."""

    def __init__(self, home: Path, pipelines: Path, connections: Mapping[str, str]) -> None:
        self.home = home
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment = _clean_environment() | {
            "PATH": os.pathsep.join((scripts_folder(), os.environ.get("PATH", os.defpath))),  # standalone starts `airflow`
            "AIRFLOW_HOME": str(home),
            "TIDEGATE_PIPELINES": str(pipelines),
            "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__CORE__PARALLELISM": "6",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "5",
            "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
        } | {f"AIRFLOW_CONN_{name.upper()}": value for name, value in connections.items()}
        self._process: subprocess.Popen[bytes] | None = None
        self._token = ""

    def __enter__(self) -> Self:
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "standalone.log").open("wb") as log:
            self._process = subprocess.Popen(
                [f"{scripts_folder()}/airflow", "standalone"],
                env=self._environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        try:
            self.wait_for(self._healthy, START_SECONDS_MAX, "Airflow is healthy")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def get(self, path: str) -> dict[str, Any]:
        """A GET of the public API, below /api/v2."""
        return self._call("GET", path, None)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._call("POST", path, body)

    def patch(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._call("PATCH", path, body)

    def wait_for(self, done: Callable[[], Any], seconds: float, what: str) -> Any:
        """The first true answer; AssertionError with Airflow's last log lines when none comes in time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert self._process is not None
            assert self._process.poll() is None, f"Airflow ended: {self.log_tail()}"
            if found := done():
                return found
            time.sleep(0.5)
        raise AssertionError(f"{what}: not within {seconds} s\n{self.log_tail()}")

    def log_tail(self, lines: int = 40) -> str:
        text = (self.home / "standalone.log").read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def task_log(self, dag_id: str) -> str:
        """The log of the newest task instance of a DAG."""
        found = sorted((self.home / "logs").glob(f"dag_id={dag_id}/**/*.log"), key=lambda path: path.stat().st_mtime)
        return found[-1].read_text(errors="replace") if found else ""

    def stop(self) -> None:
        """End every process that carries this AIRFLOW_HOME: standalone's children outlive its SIGTERM."""
        for sign, patience in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0)):
            end = time.monotonic() + patience
            for pid in self._pids():
                _signal(pid, sign)
            while self._pids() and time.monotonic() < end:
                if self._process is not None:
                    self._process.poll()
                time.sleep(0.1)
        if self._process is not None:
            self._process.wait(10)

    def _healthy(self) -> bool:
        try:
            health = self._call("GET", "/monitor/health", None)
        except OSError:
            return False
        return all(health[part]["status"] == "healthy" for part in ("metadatabase", "scheduler", "triggerer", "dag_processor"))

    def _call(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        if not self._token:
            with urllib.request.urlopen(f"{self.url}/auth/token", timeout=30) as answer:
                self._token = json.load(answer)["access_token"]
        request = urllib.request.Request(
            f"{self.url}/api/v2{path}",
            data=json.dumps(body).encode() if body is not None else None,
            method=method,
            headers={"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    def _pids(self) -> list[int]:
        mark = f"AIRFLOW_HOME={self.home}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if mark in (entry / "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
                except OSError:
                    continue  # ended meanwhile, or not ours
        return found


def scripts_folder() -> str:
    return str(Path(sys.executable).parent)


def _clean_environment() -> dict[str, str]:
    """This process's environment without what a user may have set for an Airflow, a Spark or a tidegate of their own."""
    ours = ("AIRFLOW", "TIDEGATE_", "SPARK_", "PYSPARK_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def _signal(pid: int, sign: int) -> None:
    try:
        os.kill(pid, sign)
    except ProcessLookupError:
        return
