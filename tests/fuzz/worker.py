"""A process that decodes damaged files and survives, or says which one it didn't survive.

In:  a seed, a number of files or of seconds; the golden cases as what is damaged.
Out: exit code 0 when every file ended as target.py demands. Else a line that names seed and number of the file, and
     what happened; a crash leaves the number in PROGRESS. `--only N` decodes that one file, `--keep FILE` writes it.

    python -m tests.fuzz.worker --seed 1 --count 1000
    python -m tests.fuzz.worker --atheris -- CORPUS_DIR -max_total_time=600    (where atheris is installed)
"""

from __future__ import annotations

import argparse
import faulthandler
import inspect
import mmap
import random
import resource
import sys
import time
import traceback
from pathlib import Path

from tests.fuzz.mutate import mutated
from tests.fuzz.target import Versions, decode_everything, fence_buffers
from tests.unit.binlog.golden import CASES, versions_of
from tidegate.schema.model.columns import TableVersion

SECONDS_PER_FILE = 300  # a file takes milliseconds; the first one compiles or loads the kernels, on a busy machine
_ADDRESS_SPACE = 12 << 30  # generous room is reserved, not used
_RESIDENT_MAX = 1 << 30  # of all files together: 410 MiB were seen, most of them libraries and kernels


def corpus() -> list[tuple[bytes, Versions]]:
    """The golden cases: files, and the versions of their tables."""
    found = []
    for case in CASES:
        versions: dict[tuple[str, str], list[TableVersion]] = {}
        for version in versions_of(case):
            versions.setdefault((version.database, version.table), []).append(version)
        found.append(((case / "events.binlog").read_bytes(), versions))
    return found


def run(options: argparse.Namespace) -> int:
    cases = corpus()
    files = [file for file, _ in cases]
    fence_buffers()
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    end, failed = time.monotonic() + options.seconds, 0
    numbers = [options.only] if options.only is not None else range(options.count)
    progress = _progress(options.progress)
    for number in numbers:
        if time.monotonic() > end:
            break
        r = random.Random(f"{options.seed}/{number}")
        file, versions = r.choice(cases)
        content = mutated(file, files, r)
        if options.keep:
            Path(options.keep).write_bytes(content)
        progress[:8] = number.to_bytes(8, "little")
        faulthandler.dump_traceback_later(SECONDS_PER_FILE, exit=True)
        try:
            decode_everything(content, versions)
        except Exception as error:  # noqa: BLE001 - every kind is a finding
            failed += 1
            place = traceback.extract_tb(error.__traceback__)[-1]
            told = f"{type(error).__name__}: {error}"[:700]
            print(f"seed {options.seed} file {number}: {told} ({Path(place.filename).name}:{place.lineno})", flush=True)
            if failed >= options.failures:
                break
        faulthandler.cancel_dump_traceback_later()
    resident = _resident_peak()
    print(f"{number + 1} files, {resident >> 20} MiB", flush=True)
    return 1 if failed or resident > _RESIDENT_MAX else 0


def _resident_peak() -> int:
    """Bytes that this program held at most. Not ru_maxrss, which begins at what the process that started us holds."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) << 10


def _progress(path: str) -> mmap.mmap | bytearray:
    """Eight bytes that survive a crash."""
    if not path:
        return bytearray(8)
    Path(path).write_bytes(bytes(8))
    with Path(path).open("r+b") as file:
        return mmap.mmap(file.fileno(), 8)


def run_atheris(arguments: list[str]) -> None:
    """Guided by coverage: of Python only, for kernels can't be instrumented."""
    import atheris  # type: ignore[import-not-found,unused-ignore]

    versions = {name: listed for _, versions in corpus() for name, listed in versions.items()}
    fence_buffers()
    for name, module in list(sys.modules.items()):
        if name.startswith("tidegate."):
            for found in vars(module).values():
                if inspect.isfunction(found) and found.__module__ == name:
                    atheris.instrument_func(found)
    atheris.Setup([sys.argv[0], *arguments], lambda data: decode_everything(data, versions))
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--only", type=int)
    parser.add_argument("--keep", default="")
    parser.add_argument("--failures", type=int, default=20, help="stop after so many")
    parser.add_argument("--progress", default="")
    parser.add_argument("--atheris", action="store_true")
    parser.add_argument("rest", nargs="*")
    options = parser.parse_args()
    if options.atheris:
        run_atheris(options.rest)
        return 0
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
