"""What every job's command line needs: one of a kind at a time, and an error as one line and an exit code.

In:  a pipeline's name; an error.
Out: a held lock; the line on stderr and the exit code that tidegate_airflow maps to fail or retry.
"""

from __future__ import annotations

import fcntl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidegate import spark_settings
from tidegate.errors import ConfigError, LakeUnavailable, Terminal, TidegateError


@contextmanager
def sole(root: Path, pipeline: str, job: str) -> Iterator[None]:
    """Two runs of one job of a pipeline would only get into each other's way; the second says so and goes."""
    folder = root / ".tidegate" / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{pipeline}.{job}.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise LakeUnavailable(
                f"another {job} of this pipeline is running", where=pipeline, remedy="wait for it to end"
            ) from error
        yield


def failed(error: Exception) -> int:
    """Print the job's last line and return its exit code."""
    kind = type(error).__name__ if isinstance(error, TidegateError) else "Transient"
    print(f"tidegate: {kind}: {error}", file=sys.stderr, flush=True)
    if isinstance(error, ConfigError):
        return spark_settings.EXIT_USAGE
    return spark_settings.EXIT_TERMINAL if isinstance(error, Terminal) else spark_settings.EXIT_TRANSIENT
