"""`make topology`: Postgres, Celery, a Spark cluster and an S3 server run a pipeline; each is killed, is silver equal?

In:  --image (made by docker/install.sh where it isn't there), --only PART,PART (all when empty).
Out: on stdout a line per part that died, then `topology: n parts killed, silver equal` and exit code 0; else what is
     wrong, and exit code 1. State is in a temporary folder, removed when all was well, else named.

It is docker/compose.yaml without containers: the image's own steps make the environment, and each part is a process.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.kit.part import PartError
from tests.support.servers import ROOT
from tests.topology.world import SOURCE, Topology, UnequalError
from tidegate.errors import TidegateError


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make topology", description=__doc__)
    parser.add_argument("--image", type=Path, default=ROOT / ".tidegate" / "image")
    parser.add_argument("--only", default="", help="names of parts, with commas between them")
    return parser.parse_args()


def _install(image: Path) -> None:
    if not (image / "dags" / "tidegate.py").exists():
        print(f"installing what the image holds into {image}", flush=True)
        subprocess.run([str(ROOT / "docker" / "install.sh"), str(ROOT), str(image)], check=True)


def _run(image: Path, folder: Path, only: list[str]) -> int:
    """How many parts were killed."""
    with Topology(image, folder) as topology:
        print(f"{len(topology.parts)} parts run; silver equal after {topology.first():.0f} s", flush=True)
        if not (tasks := topology.on_executors()):
            raise UnequalError("no executor finished a task of a large window")
        print(f"a large window was written by {tasks} tasks of Spark's workers", flush=True)
        names = only or [*topology.parts, SOURCE]
        for name in names:
            print(f"{name} was killed and came back; silver equal after {topology.kill(name):.0f} s", flush=True)
        if not topology.verify():
            raise UnequalError("tidegate's own verify says: different")
        return len(names)


def main() -> int:
    """Exit code 0, or 1: something is wrong."""
    given = _arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    _install(given.image)
    folder = Path(tempfile.mkdtemp(prefix="tidegate-topology-"))
    print(f"state in {folder}", flush=True)
    try:
        killed = _run(given.image.resolve(), folder, [name for name in given.only.split(",") if name])
    except (UnequalError, PartError, TidegateError) as error:
        print(f"{type(error).__name__}: {error}\nstate in {folder}")
        return 1
    shutil.rmtree(folder)
    print(f"topology: {killed} parts killed, silver equal")
    return 0


if __name__ == "__main__":
    sys.exit(main())
