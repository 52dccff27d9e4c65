"""All benchmarks: `make bench`, `make bench QUICK=1`, or `python -m benchmarks --help`.

In:  --sizes formal | quick | tiny; --only SECTION...; --minutes of upserts in the section readers
Out: .tidegate/bench/report.md, report.json and plot.svg; exit code 0, or 1 when a section failed (what it should
     have measured is missing from the report, by name), 2 for wrong arguments.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    options = argparse.ArgumentParser(prog="benchmarks", description=__doc__.splitlines()[0])
    options.add_argument("--sizes", choices=["formal", "quick", "tiny"], default="formal")
    options.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="SECTION",
        help="capture decode road apply history sources snapshot latency quiet large flink commit columns tidb cluster",
    )
    options.add_argument("--minutes", type=float, help="of upserts before the section readers reads; by the sizes")
    options.add_argument("--publish", action="store_true", help="measure nothing: the last report into the README here")
    chosen = options.parse_args()
    os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".tidegate" / "numba"))
    os.environ.setdefault("TIDEGATE_HOME", str(ROOT))

    from benchmarks import report as report_page
    from benchmarks import sections, sizes

    cache = ROOT / ".tidegate" / "bench"
    cache.mkdir(parents=True, exist_ok=True)
    if chosen.publish:
        report_page.publish(cache / "report.md", Path(__file__).parent / "README.md")
        return 0
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="scratch-", dir=cache) as folder:
        wanted = tuple(chosen.only) or sections.ALL
        asked = sizes.BY_NAME[chosen.sizes]
        if chosen.minutes is not None:
            asked = replace(asked, upserted_minutes=chosen.minutes)
        report = sections.run(ROOT, cache, Path(folder), asked, wanted)
    report.seconds = time.monotonic() - started
    report.write(cache)
    print(f"\n{report.markdown()}\nwritten: {cache / 'report.md'}, report.json, plot.svg", flush=True)
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
