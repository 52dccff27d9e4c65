"""`python -m tests.readers LAKE`: every Delta table of a lake on this disk by Spark, DuckDB, Polars and delta-rs.

In:  the lake's folder; --history: also kept versions, and, on a copy, OPTIMIZE, VACUUM and MERGE by Spark.
Out: what differs, and a line that counts; exit code 1 when something does.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.kit.spark import session
from tests.readers.lake import TABLES_MAX, check, report


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.readers", description=__doc__)
    parser.add_argument("lake", type=Path)
    parser.add_argument("--history", action="store_true", help="also each kept version, and statements on a copy")
    parser.add_argument("--versions-max", type=int, default=40, help="of each table, spread over those that are there")
    parser.add_argument("--tables-max", type=int, default=TABLES_MAX, help="that are copied, some of each kind")
    given = parser.parse_args()
    with session() as spark, tempfile.TemporaryDirectory(prefix="tidegate-readers-") as scratch:
        copy = Path(scratch) / "lake" if given.history else None
        most = {"versions_max": given.versions_max, "tables_max": given.tables_max}
        return int(report(check(given.lake.resolve(), spark, copy=copy, **most)) > 0)


if __name__ == "__main__":
    sys.exit(main())
