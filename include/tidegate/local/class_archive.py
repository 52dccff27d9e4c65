"""An archive of the classes of Spark and Delta: a JVM that maps it starts Spark for half the CPU.

In:  Spark, Delta's jars, a JVM of 13 or newer.
Out: .tidegate/spark.jsa (150 MB), which submit_conf names when it is there. It takes one Spark start of its own.

The JVM itself checks whether the archive fits its version and every jar of the class path, by size and time, and starts
without it where it doesn't. A failure here is harmless: without an archive Spark's start takes 5 CPU seconds, not
2.5. Run as a module, this file is the process of `made_beside`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tidegate import config, spark_settings
from tidegate.home import HOME_ENV, home
from tidegate.local.ivy import locked

_SECONDS_MAX: Final = 900
_NICE: Final = 10
_PIPELINE: Final = """
pipeline: classes
lake: {path: unused}
sources: {s: {conn_id: none, flavour: mysql}}
tables: {include: ['*.*']}
"""


def ensure(root: Path) -> bool:
    """Make the archive if there is none for these jars and this JVM; False when that failed, a harmless case."""
    archive, made_of = spark_settings.class_archive(root), _made_of(root)
    stamp = archive.with_suffix(".made")
    archive.parent.mkdir(parents=True, exist_ok=True)
    with locked(archive.with_suffix(".lock")):
        if archive.exists() and stamp.exists() and stamp.read_text() == made_of:
            return True
        for old in (archive, stamp):
            old.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
            fresh = Path(scratch) / archive.name
            if not _make(root, fresh):
                return False
            fresh.replace(archive)
        stamp.write_text(made_of)
    return True


@contextmanager
def made_beside(root: Path) -> Iterator[None]:
    """Make the archive, where there is none yet, while the block runs, in a process of the lowest priority.

    Nobody waits for it. It ends with the block, and leaves nothing half made.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "tidegate.local.class_archive"],
        env=os.environ | {HOME_ENV: str(root)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _make(root: Path, archive: Path) -> bool:
    """Run one Spark that does what jobs do; the JVM writes its classes at its end."""
    pipeline = config.parse(_PIPELINE, where="classes.yaml")
    conf = spark_settings.submit_conf(pipeline, root)
    conf["spark.driver.extraJavaOptions"] += f" -XX:ArchiveClassesAtExit={archive} -Xlog:cds=off -Xlog:cds+dynamic=off"
    command = [str(Path(sys.executable).parent / "spark-submit"), "--master", "local[2]"]
    for name, value in conf.items():
        command += ["--conf", f"{name}={value}"]
    command += [str(spark_settings.application("session/load_classes")), str(archive.parent)]
    environment = os.environ | spark_settings.submit_environment(root) | {"SPARK_LOCAL_IP": "127.0.0.1"}
    try:
        done = subprocess.run(command, env=environment, timeout=_SECONDS_MAX, check=False, capture_output=True)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and archive.exists()


def _made_of(root: Path) -> str:
    """A digest of the JVM and of all jars, by what the JVM itself compares."""
    digest = hashlib.blake2b(digest_size=16)
    for path in _parts(root):
        stat = path.stat()
        digest.update(f"{path} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _parts(root: Path) -> Iterator[Path]:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is not None:
        yield Path(java).resolve()
    yield from sorted((root / ".tidegate" / "jars").glob("*.jar"))
    spec = importlib.util.find_spec("pyspark")
    if spec is not None and spec.origin is not None:
        yield from sorted((Path(spec.origin).parent / "jars").glob("*.jar"))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # then its half-made files are removed
    os.nice(_NICE)
    ensure(home())
