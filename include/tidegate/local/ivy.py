"""Fetch files from Maven's public repository with the Ivy that pyspark ships.

In:  Maven coordinates and the SHA-256 that the file must have.
Out: the file, checked; nothing is fetched when it is there already, so later runs are offline.

Ivy knows the public repository and honours a user's own settings (~/.ivy2, -Divy.*), so this project names no address.
A file is renamed into its place after its checksum was checked.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tidegate.errors import DownloadFailed, HostLacks

_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Artifact:
    """A jar in Maven's repository."""

    group: str
    name: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.version}.jar"

    def __str__(self) -> str:
        return f"{self.group}:{self.name}:{self.version}"


def fetch(artifact: Artifact, folder: Path, *, cache: Path) -> Path:
    """The artifact as a file in folder. Raises DownloadFailed or HostLacks."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / artifact.file_name
    stamp = folder / f".{artifact.file_name}.sha256"
    if _known_good(target, stamp, artifact):
        return target
    with locked(folder / ".lock"):
        if target.exists() and _sha256(target) == artifact.sha256:
            stamp.write_text(artifact.sha256)
            return target
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            retrieved = _retrieve(artifact, Path(scratch), cache)
            if (got := _sha256(retrieved)) != artifact.sha256:
                raise DownloadFailed(
                    f"SHA-256 is {got}, not {artifact.sha256}",
                    where=str(artifact),
                    remedy=f"remove {cache} and try again; if it stays, the file was tampered with",
                )
            retrieved.replace(target)
        stamp.write_text(artifact.sha256)
    return target


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file: one process at a time downloads and unpacks."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _known_good(target: Path, stamp: Path, artifact: Artifact) -> bool:
    """Whether this very file was checked before: hashing 150 MB at each start would cost half a second."""
    try:
        return stamp.read_text() == artifact.sha256 and target.stat().st_mtime_ns <= stamp.stat().st_mtime_ns
    except FileNotFoundError:
        return False


def _retrieve(artifact: Artifact, scratch: Path, cache: Path) -> Path:
    command = [
        *("java", "-jar", str(_ivy_jar())),
        *("-cache", str(cache), "-notransitive", "-types", "jar", "bundle"),
        *("-dependency", artifact.group, artifact.name, artifact.version),
        *("-retrieve", str(scratch / "[artifact]-[revision].[ext]")),
    ]
    if shutil.which("java") is None:
        raise HostLacks("no java on the PATH", remedy="apt-get install openjdk-17-jre-headless")
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"LC_ALL": "C"})
    file = scratch / artifact.file_name
    if not file.exists():
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        reason = next((line for line in reversed(lines) if "ERROR" in line or "FAILED" in line.upper()), "")
        raise DownloadFailed(
            f"Ivy found no such file ({reason or f'exit code {done.returncode}'})",
            where=str(artifact),
            remedy="check the network, or put the file there yourself: " + str(scratch.parent / artifact.file_name),
        )
    return file


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")  # finds it without importing it
    if spec is None or spec.origin is None:
        raise HostLacks("pyspark is not installed", remedy="run make, which makes the environment")
    return next((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while chunk := handle.read(_READ_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
