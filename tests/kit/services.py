"""Services as processes of their own: an S3 server with its objects on disk, a Spark master and its workers.

In:  a folder for data and logs; for Spark the folder of an environment's programs, and the project's home.
Out: a Part for each, and its address. HostLacks names what this machine doesn't have.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.kit.part import Part
from tidegate.errors import HostLacks
from tidegate.local.server import free_port

BUCKET: Final = "lake"
KEY_ID: Final = "someone"
_WORKER_CORES: Final = "1"
_WORKER_MEMORY: Final = "1g"


def listens(port: int) -> Callable[[], bool]:
    """A question: does anybody take connections there?"""

    def ask() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    return ask


def store(folder: Path, password: str, access_log: Path | None = None) -> tuple[Part, Mapping[str, str]]:
    """VersityGW: S3's protocol over a folder; and the options for a lake in it, by delta-rs' names.

    access_log: where it writes a line for each request, in the form of S3's server access logs.
    """
    server = program("versitygw", "go install github.com/versity/versitygw/cmd/versitygw@v1.8.0")
    port = free_port()
    objects, beside = folder / "objects", folder / "beside"
    (objects / BUCKET).mkdir(parents=True)
    beside.mkdir()
    keys = {"ROOT_ACCESS_KEY": KEY_ID, "ROOT_SECRET_KEY": password}
    logs = ["--access-log", str(access_log)] if access_log else []
    front = [server, "--port", f"127.0.0.1:{port}", "--quiet", "--keep-alive", *logs]
    command = [*front, "posix", "--sidecar", str(beside), str(objects)]
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


def spark(programs: Path, home: Path, folder: Path, *, memory: str = _WORKER_MEMORY) -> Cluster:
    """A master and two workers. programs: of an environment with Spark and the project in it."""
    environment = {
        "PATH": os.pathsep.join((str(programs), os.environ.get("PATH", os.defpath))),
        "TIDEGATE_HOME": str(home),
        "NUMBA_CACHE_DIR": str(home / ".tidegate" / "numba"),
    }
    spark_class = str(programs / "spark-class")
    port, page = free_port(), free_port()
    here = ["--host", "127.0.0.1", "--webui-port"]
    master = [spark_class, "org.apache.spark.deploy.master.Master", *here, str(page), "--port", str(port)]
    parts = [Part("spark-master", master, folder, environment, listens(port))]
    for number in (1, 2):
        own, page = free_port(), free_port()
        worker = [spark_class, "org.apache.spark.deploy.worker.Worker", *here, str(page), "--port", str(own)]
        size = ["--cores", _WORKER_CORES, "--memory", memory, "--work-dir", str(folder / f"work-{number}")]
        command = [*worker, *size, f"spark://127.0.0.1:{port}"]
        parts.append(Part(f"spark-worker-{number}", command, folder, environment, listens(own)))
    return Cluster(parts, "127.0.0.1", port)


def program(name: str, remedy: str) -> str:
    """Where a program is. Raises HostLacks."""
    path = shutil.which(name)
    if path is None:
        raise HostLacks(f"there is no {name}", where="PATH", remedy=remedy)
    return path
