"""What every job's command line needs: its pipeline and lake, one of a kind at a time, errors as a line and a code.

In:  a pipeline file and settings over it; an error.
Out: the pipeline, its lake, a held lease; the line on stderr and the exit code that tidegate_airflow maps to fail or
     retry.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ValidationError

from tidegate import config
from tidegate.delta.lease import Lease
from tidegate.errors import ConfigError, Terminal, TidegateError
from tidegate.home import EXIT_ERROR, EXIT_TRANSIENT, EXIT_USAGE, STORAGE_OPTIONS_ENV
from tidegate.lake.files import LakeFiles, lake_files
from tidegate.lake.leases import take_lease


def parser_of(job: str, description: str) -> argparse.ArgumentParser:
    """A parser with what every job takes: --pipeline, and --set for its part of the pipeline file."""
    parser = argparse.ArgumentParser(prog=f"{job}.py", description=description)
    parser.add_argument("--pipeline", required=True, type=Path, help="pipeline file")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=f"overrides a key of {job}")
    return parser


def configured(file: Path, job: str, settings: list[str], given: Mapping[str, object] | None = None) -> config.Pipeline:
    """The pipeline file with KEY=VALUE settings, then `given`, on top of its part for the job.

    A value is JSON, as Airflow's operator writes it, so that null is nothing; what isn't JSON is the text itself.

    Raises ConfigError for a setting that doesn't fit.
    """
    pipeline = config.load(file)
    part: BaseModel = getattr(pipeline, job)
    if odd := [item for item in settings if "=" not in item]:
        raise ConfigError(f"--set {odd[0]} has no value", where="command line", remedy="write KEY=VALUE")
    chosen = {name: _value(text) for name, text in (item.split("=", 1) for item in settings)}
    try:
        changed = type(part).model_validate(part.model_dump() | chosen | dict(given or {}))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(step) for step in first["loc"])
        raise ConfigError(
            f"--set {key}: {first['msg']}", where="command line", remedy="give a value that fits"
        ) from error
    return pipeline.model_copy(update={job: changed})


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def lake_of(pipeline: config.Pipeline, root: Path) -> LakeFiles:
    """The pipeline's lake, an object store's keys taken from the environment."""
    options = json.loads(os.environ.get(STORAGE_OPTIONS_ENV, "{}"))
    return lake_files(pipeline.lake.path, root, pipeline.lake.storage_options | options)


@contextmanager
def sole(lake: LakeFiles, pipeline: str, job: str) -> Iterator[Lease]:
    """Two runs of one job of a pipeline would only get into each other's way; the second says who runs, and goes.

    Raises LeaseHeld, LakeUnavailable, LakeRefused.
    """
    with take_lease(lake, pipeline, job, report=lambda line: print(f"tidegate: warning: {line}", flush=True)) as lease:
        yield lease


def failed(error: Exception) -> int:
    """Print the job's last line and return its exit code."""
    kind = type(error).__name__ if isinstance(error, TidegateError) else "Transient"
    print(f"tidegate: {kind}: {error}", file=sys.stderr, flush=True)
    if isinstance(error, ConfigError):
        return EXIT_USAGE
    return EXIT_ERROR if isinstance(error, Terminal) else EXIT_TRANSIENT
