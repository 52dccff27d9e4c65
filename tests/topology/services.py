"""The services beside Airflow that nothing else needs: Postgres and Redis. The others are in tests/kit/services.py.

In:  a folder for data and logs.
Out: a Part for each, and its address. HostLacks names what this machine doesn't have.

The versions differ from docker/compose.yaml's where this machine's packages are others; the commands are the same.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from tests.kit.part import Part
from tests.kit.services import listens, program
from tidegate.errors import HostLacks
from tidegate.local.server import free_port

_POSTGRES_FOLDER: Final = Path("/usr/lib/postgresql")


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
    server = program("redis-server", "install the package redis-server")
    data, port = folder / "redis", free_port()
    data.mkdir()
    settings = data / "redis.conf"
    settings.write_text(
        f"bind 127.0.0.1\nport {port}\ndir {data}\nappendonly yes\nappendfsync always\nrequirepass {password}\n"
    )
    settings.chmod(0o600)
    return Part("redis", [server, str(settings)], folder, {}, listens(port)), f"redis://:{password}@127.0.0.1:{port}/0"
