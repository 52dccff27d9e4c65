"""The command line of every job: its pipeline and lake, one of a kind at a time, errors as a line and a code.

In:  a pipeline file and settings over it; an error.
Out: the pipeline, its lake, a held lease; the line on stderr and the exit code that tidegate_airflow maps to fail or
     retry.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tidegate import pipelines
from tidegate.config import Pipeline
from tidegate.delta.leases.lease import Lease
from tidegate.errors import ConfigError, Terminal, TidegateError
from tidegate.home import EXIT_ERROR, EXIT_TRANSIENT, EXIT_USAGE, STORAGE_OPTIONS_ENV
from tidegate.lake.files import LakeFiles
from tidegate.lake.jobs.leases import take_lease
from tidegate.lake.standing.followed import check_owner
from tidegate.lake.storage.storage_options import delta_options
from tidegate.log_lines import known, of_error

log = logging.getLogger(__name__)


def parser_of(job: str, description: str) -> argparse.ArgumentParser:
    """A parser with what every job takes: --pipeline, and --set for its part of the pipeline file."""
    parser = argparse.ArgumentParser(prog=f"{job}.py", description=description)
    parser.add_argument("--pipeline", required=True, type=Path, help="pipeline file")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=f"overrides a key of {job}")
    return parser


def configured(file: Path, job: str, settings: Sequence[str]) -> Pipeline:
    """The pipeline file with `--set` settings on top of its part for the job. Raises ConfigError."""
    return pipelines.with_settings(pipelines.load(file), job, settings)


def lake_of(pipeline: Pipeline) -> LakeFiles:
    """The pipeline's lake, an object store's keys taken from the environment."""
    options = json.loads(os.environ.get(STORAGE_OPTIONS_ENV, "{}"))
    return LakeFiles(pipeline.lake.path, delta_options(pipeline.lake.storage_options, options))


@contextmanager
def sole(lake: LakeFiles, pipeline: str, job: str) -> Iterator[Lease]:
    """Hold the lease of this job for the block. A second run names the holder, and ends.

    Raises LeaseHeld, LakeUnavailable; LakeRefused, also for another pipeline's lake: its jobs have
    leases of another name, and other settings.
    """
    lease = take_lease(lake, pipeline, job, report=lambda line: log.warning("%s", line))
    with known(lambda: {"pipeline": pipeline}), lease as held:
        check_owner(lake, pipeline)
        yield held


def failed(error: Exception) -> int:
    """Log the job's last line and return its exit code."""
    kind = type(error).__name__ if isinstance(error, TidegateError) else "Transient"
    log.error("%s: %s", kind, error, extra=of_error(error))
    if isinstance(error, ConfigError):
        return EXIT_USAGE
    return EXIT_ERROR if isinstance(error, Terminal) else EXIT_TRANSIENT
