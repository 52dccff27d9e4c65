"""Many new tables in one window of a new application: CPU for each, and what its processes take in memory.

In:  how many tables; the demo's MariaDB, capture and apply as processes of their own, apply's memory as by default.
Out: rows that only the report shows. CPU seconds are those of all of apply's processes until the window is done, less
     those of an application whose first window makes one table.

`python -m benchmarks.new_tables 2400`: minutes.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.figures import Row
from benchmarks.sizes import Sizes

CPU_MS_AIM: Final = 20
DRIVER_MB_AIM: Final = 1000
_SECONDS_MAX: Final = 1800.0


def measure(sizes: Sizes) -> list[Row]:
    """Rows for CPU, memory and time."""
    found = window(sizes.new_tables)
    what = f"{sizes.new_tables} new tables with a row each in one window"
    note = ", ".join(f"{name} {value:.3g}" for name, value in found.items() if name.startswith("cpu_"))
    memory = ", ".join(f"{name} {value:.3g}" for name, value in found.items() if name.endswith("_mb"))
    return [
        Row("new_tables_cpu", f"{what}: CPU (asked: {CPU_MS_AIM})", "ms a table", [found["ms_a_table"]], note=note),
        Row(
            "new_tables_memory",
            f"{what}: the driver's most resident memory (asked: {DRIVER_MB_AIM})",
            "MB",
            [found["driver_mb"]],
            note=memory,
        ),
        Row("new_tables_seconds", f"{what}: from apply's start until they are visible", "seconds", [found["seconds"]]),
    ]


def window(count: int) -> dict[str, float]:
    """ms_a_table, seconds; by process: CPU seconds (cpu_) and MB (_mb)."""
    from benchmarks import bench_quiet
    from benchmarks.micro_batch import Workload

    with tempfile.TemporaryDirectory() as folder, bench_quiet.running(Path(folder)) as bench:
        for table in ("t0", "t1"):  # the first of them may compile kernels
            bench.start([table])
            assert bench.apply is not None
            alone = bench.apply.cpu()
            bench.stop_apply()
        names = [f"new_{number}" for number in range(count)]
        Workload.create(bench.server, bench_quiet.NAME, names)
        seconds = bench.start(names, seconds_max=_SECONDS_MAX)
        assert bench.apply is not None
        spent, memory = bench.apply.cpu(), bench.apply.memory_mb()
        windows = bench.windows_of(names)
        assert windows == 1, f"{windows} windows: {bench.apply.lines[-5:]}"
    more = sum(spent.values()) - sum(alone.values())
    found = {"ms_a_table": 1000 * more / count, "seconds": seconds}
    found |= {f"cpu_{role}": spent[role] - alone.get(role, 0.0) for role in sorted(spent)}
    return found | {f"{role}_mb": size for role, size in sorted(memory.items())}


if __name__ == "__main__":
    print(*(f"{name} {value:.4g}" for name, value in window(int(sys.argv[1])).items()), sep="\n")
