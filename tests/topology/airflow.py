"""Airflow in its parts, as docker/compose.yaml has them: each a process, on Postgres, with Celery's workers.

In:  the image's folder, the pipelines' folder, connections, the addresses of Postgres and Redis.
Out: Parts: the six parts in the order of their start, and Airflow's API.
"""

from __future__ import annotations

import base64
import os
import secrets
import subprocess
import urllib.error
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.kit.part import Part
from tests.kit.services import listens
from tidegate.local.airflow import Airflow
from tidegate.local.server import free_port

# After this long without a sign of life a task of a lost worker is given to another; Airflow's own value is 300.
_HEARTBEAT_SECONDS: Final = "30"
_QUEUED_SECONDS: Final = "60"
_SLOTS: Final = "8"


class Parts(Airflow):
    """`parts` are started by the caller; migrate() comes before them."""

    def __init__(
        self,
        folder: Path,
        image: Path,
        pipelines: Path,
        connections: Mapping[str, str],
        *,
        database: str,
        broker: str,
    ) -> None:
        super().__init__(image / "airflow", image, pipelines, connections)
        self._folder, self._image = folder, image
        self._environment |= _settings(image, database, broker)
        self._passwords.unlink(missing_ok=True)
        self._passwords.touch(mode=0o600)
        self._passwords.write_text(f'{{"{self.user}": "{secrets.token_urlsafe(12)}"}}')
        self.parts = [
            self._part("api-server", ["api-server", "--host", "127.0.0.1", "--port", str(self.port)], self._answers),
            self._part("scheduler", ["scheduler"], self._healthy("scheduler")),
            self._part("dag-processor", ["dag-processor"], self._healthy("dag_processor")),
            self._part("triggerer", ["triggerer", "--skip-serve-logs"], self._healthy("triggerer")),
            self._worker("capture"),
            self._worker("default"),
        ]

    def migrate(self) -> None:
        """Make Airflow's tables in Postgres."""
        log = self._folder / "migrate.log"
        with log.open("wb") as output:
            subprocess.run(
                [self._airflow, "db", "migrate"], env=self._environment, stdout=output, stderr=output, check=True
            )

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment of all parts."""
        return self._environment

    def check_running(self) -> None:
        """Raises PartError when a part has ended."""
        for part in self.parts:
            part.check()

    @property
    def _airflow(self) -> str:
        return str(self._image / "venv" / "bin" / "airflow")

    def _part(self, name: str, arguments: list[str], is_ready: Callable[[], bool]) -> Part:
        return Part(name, [self._airflow, *arguments], self._folder, self._environment, is_ready)

    def _worker(self, queue: str) -> Part:
        """It is ready when it serves its tasks' logs."""
        port = free_port()
        arguments = ["celery", "worker", "--queues", queue, "--concurrency", _SLOTS, "--celery-hostname", f"{queue}@%h"]
        environment = {**self._environment, "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(port)}
        return Part(f"worker-{queue}", [self._airflow, *arguments], self._folder, environment, listens(port))

    def _answers(self) -> bool:
        return self._health() is not None

    def _healthy(self, name: str) -> Callable[[], bool]:
        def ask() -> bool:
            health = self._health()
            return health is not None and health[name]["status"] == "healthy"

        return ask

    def _health(self) -> dict[str, dict[str, str]] | None:
        try:
            return self.call("GET", "/api/v2/monitor/health")
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None


def _settings(image: Path, database: str, broker: str) -> dict[str, str]:
    """Settings that differ from Airflow standalone. Keys are made here, as all parts must have the same."""
    return {
        "PATH": os.pathsep.join((str(image / "venv" / "bin"), os.environ.get("PATH", os.defpath))),
        "NUMBA_CACHE_DIR": str(image / ".tidegate" / "numba"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg2://{database}",
        "AIRFLOW__CORE__DAGS_FOLDER": str(image / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(image / "plugins"),
        "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
        "AIRFLOW__CORE__PARALLELISM": "16",
        "AIRFLOW__CORE__FERNET_KEY": base64.urlsafe_b64encode(os.urandom(32)).decode(),
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_urlsafe(32),
        "AIRFLOW__API__SECRET_KEY": secrets.token_urlsafe(32),
        "AIRFLOW__CELERY__BROKER_URL": broker,
        "AIRFLOW__CELERY__RESULT_BACKEND": f"db+postgresql+psycopg2://{database}",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": _HEARTBEAT_SECONDS,
        "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT": _QUEUED_SECONDS,
    }
