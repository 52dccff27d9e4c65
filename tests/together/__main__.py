"""`make together MINUTES=n STORE=local|s3`: everybody writes to one lake at once, and is silver equal all the same?

In:  --minutes, --store, --seed (a random one when empty), --flavour, --every (minutes between two comparisons).
Out: on stdout what everybody did and one line, `together: n comparisons, 0 wrong`, exit code 0; else what is wrong, and
     exit code 1. All state is in a temporary folder, removed when all was well, else named.

Apply, maintain and rebuild, each a process of its own that starts again and again; verify, every few minutes; a person
with Spark and one with delta-rs, who OPTIMIZE and DELETE. The store is a local disk, or moto's S3 (`make jars-s3`).
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.soak.witness import Wrong
from tests.support.servers import ROOT
from tests.together.world import World


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make together", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--store", choices=("local", "s3"), default="local")
    parser.add_argument("--flavour", choices=("mariadb", "mysql9"), default="mariadb")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--every", type=float, default=3.0, help="minutes between two comparisons")
    parser.add_argument(
        "--readers", action="store_true", help="read the lake by all readers in the end (tests/readers)"
    )
    return parser.parse_args()


def _run(given: argparse.Namespace, folder: Path) -> tuple[int, int]:
    """How often silver was compared, and how many tables readers read differently. Raises Wrong."""
    began, compared = time.monotonic(), 0
    with World(folder, given.seed, given.flavour, given.store) as world:
        try:
            while (left := given.minutes * 60 - (time.monotonic() - began)) > 0:
                world.run(min(left, given.every * 60))
                print(f"{time.monotonic() - began:.0f} s: {world.compare()}", file=sys.stderr, flush=True)
                compared += 1
        finally:
            print(world.told(), flush=True)
        return compared, world.read() if given.readers else 0


def main() -> int:
    """Exit code 0, 1 (something is wrong) or 130 (interrupted)."""
    given = _arguments()
    os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".tidegate" / "numba"))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="tidegate-together-"))
    print(f"seed {given.seed}, {given.flavour}, {given.store}, in {folder}", file=sys.stderr, flush=True)
    try:
        compared, differ = _run(given, folder)
    except KeyboardInterrupt:
        print(f"interrupted; state in {folder}", file=sys.stderr)
        return 130
    except Wrong as error:
        print(f"{type(error).__name__}: {error}\nstate in {folder}")
        print("together: 1 wrong")
        return 1
    if differ:
        print(f"state in {folder}")
    else:
        shutil.rmtree(folder)
    print(f"together: {compared} comparisons, {differ} wrong")
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
