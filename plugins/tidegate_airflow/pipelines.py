"""The pipeline files that DAGs are made from.

In:  TIDEGATE_PIPELINES, a folder of *.yaml; include/pipelines of the project when it isn't set.
Out: the good ones, and one ConfigError per file that can't be used.

A broken file must not take the others' DAGs away, so reading never raises: dags/capture.py and
dags/apply.py make DAGs of the good files, dags/pipeline_files.py reports the broken ones.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tidegate import config
from tidegate.config import Pipeline
from tidegate.errors import ConfigError
from tidegate.home import home
from tidegate.lake import storage

PIPELINES_ENV = "TIDEGATE_PIPELINES"


@dataclass(frozen=True, slots=True)
class PipelineFile:
    """A pipeline and where it was read from."""

    path: Path
    pipeline: Pipeline


def folder() -> Path:
    """Where pipeline files lie."""
    configured = os.environ.get(PIPELINES_ENV)
    return Path(configured) if configured else home() / "include" / "pipelines"


def read() -> tuple[list[PipelineFile], list[ConfigError]]:
    """Every *.yaml of the folder, by file name: those that can be run, and why the others can't."""
    good: list[PipelineFile] = []
    broken: list[ConfigError] = []
    for path in sorted(folder().glob("*.yaml")):
        try:
            pipeline = config.load(path)
            _refuse_clash(path, pipeline, good)
        except ConfigError as error:
            broken.append(error)
        else:
            good.append(PipelineFile(path=path, pipeline=pipeline))
    return good, broken


def good_files() -> list[PipelineFile]:
    """The pipelines that DAGs are made from."""
    return read()[0]


def _refuse_clash(path: Path, pipeline: Pipeline, others: list[PipelineFile]) -> None:
    """Two files of one name would be one DAG, and two pipelines in one lake would overwrite each other."""
    for other in others:
        if other.pipeline.pipeline == pipeline.pipeline:
            raise ConfigError(
                f"pipeline: {pipeline.pipeline} is already the pipeline of {other.path.name}",
                where=str(path),
                remedy="give it a name of its own",
            )
        if other.pipeline.lake.path.rstrip("/") == pipeline.lake.path.rstrip("/"):
            raise ConfigError(
                f"lake.path: {pipeline.lake.path} is already the lake of {other.path.name}",
                where=str(path),
                remedy="a lake belongs to one pipeline: give it a path of its own",
            )


def lake_root(pipeline: Pipeline) -> str:
    """The lake's URL, or its absolute path: a relative one is taken from the project's root."""
    return storage.lake_root(pipeline.lake.path, home())
