"""Airflow standalone for one laptop: start, wait until healthy, unpause, stop.

In:  a folder of pipeline files, connections as AIRFLOW_CONN_* values, a folder for AIRFLOW_HOME.
Out: Airflow's scheduler, DAG processor, triggerer and API server on 127.0.0.1, with one admin whose
     password is generated once and kept in a file of mode 0600.

A start makes a fresh Airflow, its database copied from a template, unless history is kept. Then runs that a killed
Airflow left "running" are queued again, so they block nothing. Connections are in the environment of Airflow's own
processes only. The user's settings for another Airflow or Spark are left out, but not those of lineage.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import shutil
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from tidegate.errors import ConfigError, ProcessFailed
from tidegate.home import HOME_ENV, PIPELINES_ENV, folder_of
from tidegate.local.processes import end_all
from tidegate.local.server import free_port
from tidegate.pipelines import load

# 20 s on an idle laptop; a machine that is busy otherwise may need minutes.
_HEALTHY_SECONDS: Final = 600.0
_SAY_SECONDS: Final = 30.0
_CALL_SECONDS: Final = 30.0
_ADMIN: Final = "admin"
# Apply, maintain, snapshot, verify, and two for what a person starts.
_TASKS_BESIDE: Final = 6
_PARTS: Final = ("metadatabase", "scheduler", "triggerer", "dag_processor")
# A user's HTTP proxy doesn't reach this computer's ports.
_DIRECT: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Airflow:
    """One Airflow; a context manager."""

    def __init__(
        self, home: Path, root: Path, pipelines: Path, connections: Mapping[str, str], port: int | None = None
    ) -> None:
        """root: the project's; pipelines: folder of the pipeline files to make DAGs of; port: any free one if None."""
        self.home = home.resolve()
        self.user = _ADMIN
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = self.home / "standalone.log"
        self._root = root
        self._process: subprocess.Popen[bytes] | None = None
        self._token = ""
        self._environment = _inherited() | self._settings(pipelines) | _named(connections)

    @property
    def password(self) -> str:
        passwords: dict[str, str] = json.loads(self._passwords.read_text())
        return passwords[_ADMIN]

    def start(self, *, keep: bool = False) -> None:
        """Start it; keep: with the runs and logs of before, if this version of Airflow wrote them.

        wait_healthy() is a step of its own, so that a caller can do something useful meanwhile.
        """
        self.stop()  # what an earlier run left behind, if it was killed
        self.home.mkdir(parents=True, exist_ok=True)
        if not self._passwords.exists():
            self._passwords.touch(mode=0o600)
            self._passwords.write_text(json.dumps({_ADMIN: secrets.token_urlsafe(12)}))
        if not (keep and self._database_goes_on()):
            shutil.rmtree(self.home / "logs", ignore_errors=True)
            self._fresh_database()
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [_airflow(), "standalone"],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_healthy(self, say: Callable[[str], None] = lambda _: None) -> None:
        """Wait until all four parts are healthy. say: takes lines that name those that aren't yet. Raises ProcessFailed
        with the log's place.
        """
        began = said = time.monotonic()
        while (now := time.monotonic()) < began + _HEALTHY_SECONDS:
            self.check_running()
            if not (ailing := self.ailing()):
                return
            if now > said + _SAY_SECONDS:
                said = now
                say(f"Airflow starts, since {now - began:.0f} s; still without an answer: {', '.join(ailing)}")
            time.sleep(0.3)
        raise ProcessFailed(
            f"Airflow was not healthy in {_HEALTHY_SECONDS:.0f} s",
            where=str(self.log),
            remedy="see its log; where it only started slowly, try again",
        )

    def ailing(self) -> list[str]:
        """The parts that aren't healthy; all, where Airflow doesn't answer."""
        health = self._try("GET", "/api/v2/monitor/health") or {}
        return [part for part in _PARTS if (health.get(part) or {}).get("status") != "healthy"]

    def check_running(self) -> None:
        """Raises ProcessFailed when Airflow has ended."""
        if self._process is None or self._process.poll() is not None:
            raise ProcessFailed("Airflow ended", where=str(self.log), remedy="see its log")

    def check_runs(self, dag_id: str) -> None:
        """Raises ProcessFailed, with the task log's place, when a run of the DAG has failed for good."""
        failed = self._try("GET", f"/api/v2/dags/{dag_id}/dagRuns?state=failed&limit=1")
        if failed and failed["dag_runs"]:
            run = failed["dag_runs"][0]["dag_run_id"]
            place = self.home / "logs" / f"dag_id={dag_id}" / f"run_id={run}"
            raise ProcessFailed(f"{dag_id} failed", where=str(place), remedy="see its log")

    def unpause(self, dag_id: str) -> None:
        """Let a DAG run, once Airflow has parsed it. Raises ProcessFailed, with the import error if there is one."""
        end = time.monotonic() + _HEALTHY_SECONDS
        while time.monotonic() < end:
            self.check_running()
            if (dag := self._try("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": False})) is not None:
                # Its watchers start when its file is parsed again; by itself Airflow does so half a minute later.
                self._try("PUT", f"/api/v2/parseDagFile/{dag['file_token']}")
                return
            time.sleep(0.3)
        errors = self.call("GET", "/api/v2/importErrors")["import_errors"]
        reason = errors[0]["stack_trace"].strip().splitlines()[-1] if errors else "its DAG processor found no such DAG"
        raise ProcessFailed(f"Airflow has no DAG {dag_id}: {reason}", where=str(self.log), remedy="see its log")

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """A call of Airflow's REST API, as its admin. Raises OSError."""
        headers = {"Content-Type": "application/json"}
        if path != "/auth/token" and not path.endswith("/health"):
            if not self._token:
                login = {"username": self.user, "password": self.password}
                self._token = self.call("POST", "/auth/token", login)["access_token"]
            headers["Authorization"] = f"Bearer {self._token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=headers)  # noqa: S310 - our own
        with _DIRECT.open(request, timeout=_CALL_SECONDS) as answer:
            reply: dict[str, Any] = json.load(answer)
            return reply

    def stop(self) -> None:
        """End it with all its children: SIGTERM to standalone alone leaves some."""
        end_all(self._process, f"AIRFLOW_HOME={self.home}")
        self._process = None

    @property
    def _passwords(self) -> Path:
        return self.home / "passwords.json"

    def _try(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any] | None:
        try:
            return self.call(method, path, body)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None
        except (http.client.HTTPException, ValueError):  # the answer broke off, or is a web page: a part starts or ends
            return None

    @property
    def _template(self) -> Path:
        return self.home / f"template-{version('apache-airflow')}.db"

    def _database_goes_on(self) -> bool:
        """Whether there is a database of this version. Tasks in it without a process are set to start again."""
        database = self.home / "airflow.db"
        if not database.exists() or not self._template.exists():
            return False
        with contextlib.closing(sqlite3.connect(database)) as connection, connection:
            connection.execute(
                "UPDATE task_instance SET state = NULL WHERE state IN ('running', 'queued', 'scheduled', 'restarting')"
            )
        return True

    def _fresh_database(self) -> None:
        template = self._template
        database = self.home / "airflow.db"
        for name in ("airflow.db", "airflow.db-wal", "airflow.db-shm"):
            (self.home / name).unlink(missing_ok=True)
        if not template.exists():
            done = subprocess.run(
                [_airflow(), "db", "migrate"], env=self._environment, capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                self.log.write_text(done.stdout + done.stderr)
                raise ProcessFailed("airflow db migrate failed", where=str(self.log), remedy="see its log")
            database.rename(template)
        shutil.copyfile(template, database)

    def _settings(self, pipelines: Path) -> dict[str, str]:
        root = self._root
        return {
            "AIRFLOW_HOME": str(self.home),
            # standalone starts its parts, and tasks start spark-submit, by name.
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath))),
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
            HOME_ENV: str(root),
            PIPELINES_ENV: str(pipelines.resolve()),
            "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", str(root / ".tidegate" / "numba")),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{self.home}/airflow.db",
            "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
            "AIRFLOW__CORE__DAGS_FOLDER": str(folder_of("dags")),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(folder_of("plugins")),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__PARALLELISM": str(_sources_in(pipelines) + _TASKS_BESIDE),
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{_ADMIN}:admin",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self._passwords),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__API__WORKERS": "1",
            # On a busy machine Airflow's own 5, 30 and 50 s are too short: a task's request isn't answered yet, or its
            # DAG isn't parsed yet. Airflow then kills the task and begins it again, in vain.
            "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
            "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "240",
            "AIRFLOW__DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": "300",
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "30",
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.3",
            "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        }


def _sources_in(folder: Path) -> int:
    """The number of sources in all pipeline files. Each has a capture task, which runs nearly all
    the time.
    """
    count = 0
    for path in folder.glob("*.yaml"):
        with contextlib.suppress(ConfigError):  # it becomes an import error, which Airflow shows
            count += len(load(path).sources)
    return count


def _airflow() -> str:
    return str(Path(sys.executable).parent / "airflow")


def _inherited() -> dict[str, str]:
    """This process's environment, connections included, without settings for another Airflow or Spark. Settings of
    lineage stay: they are a person's choice (docs/lineage.md).
    """
    foreign, ours = ("AIRFLOW__", "AIRFLOW_HOME", "SPARK_", "PYSPARK_"), "AIRFLOW__OPENLINEAGE__"
    return {name: value for name, value in os.environ.items() if name.startswith(ours) or not name.startswith(foreign)}


def _named(connections: Mapping[str, str]) -> dict[str, str]:
    return {f"AIRFLOW_CONN_{conn_id.upper()}": text for conn_id, text in connections.items()}
