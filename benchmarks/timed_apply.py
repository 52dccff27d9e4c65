"""Apply as spark_jobs/apply.py runs it, which also notes what its packing of silver costs.

In:  apply's own arguments; a file's name in the environment.
Out: in that file the CPU seconds that the driver has spent in compact_silver so far.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Final

from spark_jobs import apply
from spark_jobs.apply_steps.compact_silver import compact_silver

FILE_ENV: Final = "TIDEGATE_BENCH_PACKING"


class Timed:
    """The step, and what it has cost up to now."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seconds = 0.0

    def __call__(self, *given: object) -> None:
        before = time.process_time()
        compact_silver(*given)  # type: ignore[arg-type]  # whatever apply gives it
        self._seconds += time.process_time() - before
        self._file.write_text(f"{self._seconds:.6f}")


if __name__ == "__main__":
    vars(apply)["compact_silver"] = Timed(Path(os.environ[FILE_ENV]))
    sys.exit(apply.main(sys.argv[1:]))
