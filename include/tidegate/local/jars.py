"""The jars that Spark needs: two for Delta, and three more when the lake is on S3. In .tidegate/jars.

In:  nothing (`python -m tidegate.local.jars [--s3]` from the Makefile), or a root folder.
Out: the folder for spark.driver.extraClassPath; fetched once, then offline. The command makes an archive of all
     classes that Spark loads, too.

Only these: `spark.jars.packages` would pull 33 jars with older duplicates of Spark's own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tidegate import spark_settings
from tidegate.errors import TidegateError
from tidegate.home import home
from tidegate.local import class_archive, ivy

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


# Of Spark's own Hadoop version. The bundle is Amazon's SDK (690 MB), which hadoop-aws needs.
S3: Final = (
    ivy.Artifact(
        "org.apache.hadoop", "hadoop-aws", "3.5.0", "66bd9eefb938b1a1657487324b63c13df2d8b17164a1dd24e0ef37b905bc5baa"
    ),
    ivy.Artifact(
        "software.amazon.awssdk", "bundle", "2.35.4", "db4b55f24ad1b4e70f17eb1717a4de76a8dadc5a27d764be7c44ff67b2c1c677"
    ),
    ivy.Artifact(
        "software.amazon.s3.analyticsaccelerator",
        "analyticsaccelerator-s3",
        "1.3.1",
        "4959a9747cbb479c73c3ffbcd479bee5b014f8b2880994585a8693fb9d24675e",
    ),
)


def ensure(root: Path, *, s3: bool = False) -> Path:
    """Folder with the Delta jars, and with those for S3. Raises DownloadFailed or HostLacks."""
    folder = root / ".tidegate" / "jars"
    for artifact in (*DELTA, *(S3 if s3 else ())):
        ivy.fetch(artifact, folder, cache=root / ".tidegate" / "ivy")
    return folder


@contextmanager
def at_hand(root: Path) -> Iterator[Path]:
    """Like ensure, and while the block runs an archive of Spark's classes is made, where there is none."""
    folder = ensure(root)
    with class_archive.made_beside(root):
        yield folder


if __name__ == "__main__":
    try:
        ensure(home(), s3="--s3" in sys.argv[1:])
        if not spark_settings.class_archive(home()).exists():
            sys.stdout.write("tidegate: archiving Spark's classes, once: a minute or two\n")
            sys.stdout.flush()
        if not class_archive.ensure(home()):
            sys.stderr.write("tidegate: without an archive of its classes Spark takes twice the CPU to start\n")
    except TidegateError as error:
        sys.exit(f"tidegate: {error}")
