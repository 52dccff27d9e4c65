"""`make size ROWS=10000000`: a database that holds much is snapshotted by itself, written to and disturbed meanwhile.

In:  --rows of a table with a skewed key, --bag: rows of one without a key, --small: how many small tables; --flavour,
     --seed, --per-second (row changes), --bytes-per-second (of the reader; by itself so slow that each disturbance
     meets it), --times (each disturbance; 0: none), --plant (differences of each kind), --folder (a temporary one
     when empty).
Out: on stderr what happens; on stdout the figures and one line, `size: R rows in T tables, ...`, exit code 0; else what
     is wrong, and exit code 1. All state is in the folder, removed when all was well, else named.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.size.disturbed import disturbances
from tests.size.tables import Size
from tests.size.world import Pace, World
from tests.soak.witness import Wrong
from tests.support.servers import ROOT

_DISTURBED_SECONDS = 10  # of reading for each disturbance: the world looks once a second, and a kill takes some


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make size", description=__doc__)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--bag", type=int, default=50_000)
    parser.add_argument("--small", type=int, default=50)
    parser.add_argument("--flavour", choices=("mariadb", "mysql9"), default="mariadb")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--per-second", type=float, default=500.0)
    parser.add_argument("--bytes-per-second", type=int, help="of the reader; 0: as fast as it can")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--plant", type=int, default=20)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--keep", action="store_true", help="keep the folder when all was well, too")
    return parser.parse_args()


def _run(given: argparse.Namespace, folder: Path) -> str:
    """Raises Wrong."""
    size, disturb = Size(given.rows, given.bag, given.small), disturbances(random.Random(given.seed), given.times)
    read_bytes = given.bytes_per_second
    if read_bytes is None:
        read_bytes = size.read_bytes // (_DISTURBED_SECONDS * len(disturb)) if disturb else 0
    with World(folder, given.flavour, size, given.seed, Pace(given.per_second, read_bytes)) as world:
        figures = world.snapshotted(disturb)
        world.say(figures)
        equal = world.compared()
        world.say(equal)
        repaired = "nothing planted"
        if given.plant:
            repaired = world.repaired(given.plant)
            world.say(repaired)
            equal = world.compared()
            world.say(equal)
        print(figures, world.peaks(), sep="\n", flush=True)
        return f"{equal}; {repaired}"


def main() -> int:
    """Exit code 0, 1 (something is wrong) or 130 (interrupted)."""
    given = _arguments()
    os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".tidegate" / "numba"))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if given.folder:
        given.folder.mkdir(parents=True)
    folder = given.folder.resolve() if given.folder else Path(tempfile.mkdtemp(prefix="tidegate-size-"))
    print(f"seed {given.seed}, {given.flavour}, in {folder}", file=sys.stderr, flush=True)
    try:
        line = _run(given, folder)
    except KeyboardInterrupt:
        print(f"interrupted; state in {folder}", file=sys.stderr)
        return 130
    except Wrong as error:
        print(f"{type(error).__name__}: {error}\nstate in {folder}\nsize: 1 wrong")
        return 1
    if not given.keep:
        shutil.rmtree(folder)
    print(f"size: {line}; 0 wrong")
    return 0


if __name__ == "__main__":
    sys.exit(main())
