"""The two jars that Spark needs for Delta, in .tidegate/jars.

In:  nothing (`python -m tidegate.demo.jars` from the Makefile), or a root folder.
Out: the folder for spark.driver.extraClassPath; fetched once, then offline.

Only these two: `spark.jars.packages` would pull 33 jars with older duplicates of Spark's own.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from tidegate.demo import ivy
from tidegate.errors import TidegateError
from tidegate.spark_settings import home

DELTA: Final = (
    ivy.Artifact(
        "io.delta",
        "delta-spark_4.2_2.13",
        "4.4.0",
        "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    ),
    ivy.Artifact(
        "io.delta", "delta-storage", "4.4.0", "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc"
    ),
)


def ensure(root: Path) -> Path:
    """Folder with the Delta jars. Raises DownloadFailed or HostLacks."""
    folder = root / ".tidegate" / "jars"
    for artifact in DELTA:
        ivy.fetch(artifact, folder, cache=root / ".tidegate" / "ivy")
    return folder


if __name__ == "__main__":
    try:
        ensure(home())
    except TidegateError as error:
        sys.exit(f"tidegate: {error}")
