"""The services beside Airflow: Postgres, Redis, an S3 server with its objects on disk, a Spark master and its workers.

In:  the folder of an image (docker/install.sh), a folder for data and logs.
Out: a Part for each, and its address. HostLacks names what this machine doesn't have.

The versions differ from docker/compose.yaml's where this machine's packages are others; the commands are the same.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.topology.part import Part
from tidegate.errors import HostLacks
from tidegate.local.server import free_port

BUCKET: Final = "lake"
KEY_ID: Final = "someone"
_POSTGRES_FOLDER: Final = Path("/usr/lib/postgresql")
_WORKER_CORES: Final = "1"
_WORKER_MEMORY: Final = "1g"


def listens(port: int) -> Callable[[], bool]:
    """A question: does anybody take connections there?"""

    def ask() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    return ask


def postgres(folder: Path, password: str) -> tuple[Part, str]:
    """Airflow's database; and its address without a scheme, `airflow:<password>@127.0.0.1:<port>/airflow`.

    It runs as the user postgres where we are root, since Postgres refuses root.
    """
    initdb = next(iter(sorted(_POSTGRES_FOLDER.glob("*/bin/initdb"), reverse=True)), None)
    if initdb is None:
        raise HostLacks("there is no Postgres", where=str(_POSTGRES_FOLDER), remedy="install the package postgresql")
    user = "postgres" if os.geteuid() == 0 else None
    data = folder / "postgres"
    data.mkdir()
    if user:
        _let_through(folder)
        shutil.chown(data, user)
    secret = data / "password"
    secret.write_text(password)
    secret.chmod(0o644)
    command = [str(initdb), "-D", str(data / "data"), "-U", "airflow", "--auth=scram-sha-256", f"--pwfile={secret}"]
    subprocess.run(command, check=True, capture_output=True, user=user, cwd="/")
    secret.unlink()
    port = free_port()
    single = ["--single", "-D", str(data / "data"), "postgres"]
    subprocess.run(
        [str(initdb.parent / "postgres"), *single],
        input=b"CREATE DATABASE airflow\n",
        check=True,
        capture_output=True,
        user=user,
        cwd="/",
    )
    serve = [str(initdb.parent / "postgres"), "-D", str(data / "data"), "-p", str(port), "-k", str(data)]
    part = Part("postgres", [*serve, "-c", "listen_addresses=127.0.0.1"], folder, {}, listens(port), user)
    return part, f"airflow:{password}@127.0.0.1:{port}/airflow"


def _let_through(folder: Path) -> None:
    """Another user may pass through the folder and its parents that are ours."""
    for path in (folder, *folder.parents):
        if path.stat().st_uid == os.geteuid() and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o011)


def redis(folder: Path, password: str) -> tuple[Part, str]:
    """Celery's broker; and its URL. Each write is on disk before it is answered."""
    server = _program("redis-server", "install the package redis-server")
    data, port = folder / "redis", free_port()
    data.mkdir()
    settings = data / "redis.conf"
    settings.write_text(
        f"bind 127.0.0.1\nport {port}\ndir {data}\nappendonly yes\nappendfsync always\nrequirepass {password}\n"
    )
    settings.chmod(0o600)
    return Part("redis", [server, str(settings)], folder, {}, listens(port)), f"redis://:{password}@127.0.0.1:{port}/0"


def store(folder: Path, password: str) -> tuple[Part, Mapping[str, str]]:
    """VersityGW: S3's protocol over a folder; and the options for a lake in it, by delta-rs' names."""
    server = _program("versitygw", "go install github.com/versity/versitygw/cmd/versitygw@v1.8.0")
    port = free_port()
    objects, beside = folder / "objects", folder / "beside"
    (objects / BUCKET).mkdir(parents=True)
    beside.mkdir()
    keys = {"ROOT_ACCESS_KEY": KEY_ID, "ROOT_SECRET_KEY": password}
    command = [server, "--port", f"127.0.0.1:{port}", "--quiet", "posix", "--sidecar", str(beside), str(objects)]
    options = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": KEY_ID,
        "AWS_SECRET_ACCESS_KEY": password,
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
        "aws_conditional_put": "etag",
    }
    return Part("store", command, folder, keys, listens(port)), options


@dataclass(frozen=True)
class Cluster:
    """parts: the master, then its workers. host, port: the master's, as a Spark connection has them."""

    parts: list[Part]
    host: str
    port: int


def spark(image: Path, folder: Path) -> Cluster:
    """A master and two workers."""
    environment = {
        "PATH": os.pathsep.join((str(image / "venv" / "bin"), os.environ.get("PATH", os.defpath))),
        "TIDEGATE_HOME": str(image),
        "NUMBA_CACHE_DIR": str(image / ".tidegate" / "numba"),
    }
    spark_class = str(image / "venv" / "bin" / "spark-class")
    port, page = free_port(), free_port()
    here = ["--host", "127.0.0.1", "--webui-port"]
    master = [spark_class, "org.apache.spark.deploy.master.Master", *here, str(page), "--port", str(port)]
    parts = [Part("spark-master", master, folder, environment, listens(port))]
    for number in (1, 2):
        own, page = free_port(), free_port()
        worker = [spark_class, "org.apache.spark.deploy.worker.Worker", *here, str(page), "--port", str(own)]
        size = ["--cores", _WORKER_CORES, "--memory", _WORKER_MEMORY, "--work-dir", str(folder / f"work-{number}")]
        command = [*worker, *size, f"spark://127.0.0.1:{port}"]
        parts.append(Part(f"spark-worker-{number}", command, folder, environment, listens(own)))
    return Cluster(parts, "127.0.0.1", port)


def _program(name: str, remedy: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise HostLacks(f"there is no {name}", where="PATH", remedy=remedy)
    return path
