"""Pipeline files: their places, their names, and the ones that can run together.

In:  TIDEGATE_PIPELINES, a folder of *.yaml; include/pipelines of the project when it isn't set.
Out: pipelines whose paths are absolute; one ConfigError per file that can't be used.

A broken file must not take the others' DAGs away, so `read` never raises.
"""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tidegate import config
from tidegate.config import AnySource, Pipeline
from tidegate.errors import ConfigError, UsageError
from tidegate.home import PIPELINES_ENV, home, pipelines_folder
from tidegate.lake.storage.storage_options import lake_root

_OTHER_SUFFIX: Final = ".yml"


@dataclass(frozen=True, slots=True)
class PipelineFile:
    """A pipeline and where it was read from."""

    path: Path
    pipeline: Pipeline


def folder() -> Path:
    """Where pipeline files lie."""
    configured = os.environ.get(PIPELINES_ENV)
    return Path(configured) if configured else pipelines_folder()


def find(name: str) -> Path:
    """A pipeline file given as a path, or by its name in the folder. Raises UsageError."""
    given = Path(name)
    if given.suffix in (".yaml", ".yml") or given.is_file():
        return given
    if given.name != name:
        raise UsageError("there is no such pipeline file", where=name, remedy="give a pipeline's name, or its file")
    path = folder() / f"{name}.yaml"
    if not path.exists():
        known = sorted(file.stem for file in path.parent.glob("*.yaml"))
        close = difflib.get_close_matches(name, known, n=1)
        if (other := path.with_suffix(_OTHER_SUFFIX)).exists():
            close = [str(other)]
        remedy = f"did you mean {close[0]}? " if close else ""
        remedy += f"known: {', '.join(known)}; or give a file" if known else "give a pipeline file"
        raise UsageError(f"no pipeline {name!r}", where=str(path.parent), remedy=remedy)
    return path


def load(path: Path) -> Pipeline:
    """A file as it is now; its relative paths are the project's, wherever a command was started. Raises ConfigError."""
    pipeline = config.load(path)
    try:
        return resolved(pipeline)
    except ConfigError as error:  # it has the path, and not the file
        raise ConfigError(f"{error.where}: {error.what}", where=str(path), remedy=error.remedy) from error


def resolved(pipeline: Pipeline) -> Pipeline:
    """The pipeline with absolute paths; what is absolute stays."""
    lake = pipeline.lake.model_copy(update={"path": lake_root(pipeline.lake.path, home())})
    capture = pipeline.capture
    if capture.value_log_path:
        capture = capture.model_copy(update={"value_log_path": str(home() / capture.value_log_path)})
    sources = {name: _resolved_source(source) for name, source in pipeline.sources.items()}
    return pipeline.model_copy(update={"lake": lake, "capture": capture, "sources": sources})


def _resolved_source(source: AnySource) -> AnySource:
    paths: dict[str, Any] = {key: lake_root(getattr(source, key), home()) for key in source.traits.paths}
    for key in source.traits.files:
        if (file := getattr(source, key)) is not None:
            paths[key] = home() / file
    return source.model_copy(update=paths)


def read() -> tuple[list[PipelineFile], list[ConfigError]]:
    """Every *.yaml of the folder, by file name: those that can be run, and why others can't."""
    good: list[PipelineFile] = []
    broken: list[ConfigError] = []
    for path in sorted(folder().glob("*.yaml")):
        try:
            pipeline = load(path)
            _refuse_clash(path, pipeline, good)
        except ConfigError as error:
            broken.append(error)
        except Exception as error:  # noqa: BLE001 - of this file alone, too
            broken.append(ConfigError(f"can't be read: {type(error).__name__}: {error}", where=str(path)))
        else:
            good.append(PipelineFile(path=path, pipeline=pipeline))
    if os.environ.get(PIPELINES_ENV) and not folder().is_dir():  # mistyped: no DAG, and no error
        what = "no folder of pipeline files is here"
        broken.append(ConfigError(what, where=str(folder()), remedy=f"make it, or correct {PIPELINES_ENV}"))
    for path in sorted(folder().glob(f"*{_OTHER_SUFFIX}")):
        remedy = f"rename it to {path.stem}.yaml"
        broken.append(ConfigError("a pipeline file's name ends with .yaml", where=str(path), remedy=remedy))
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
        if other.pipeline.lake.path == pipeline.lake.path:
            raise ConfigError(
                f"lake.path: {pipeline.lake.path} is already the lake of {other.path.name}",
                where=str(path),
                remedy="a lake belongs to one pipeline: give it a path of its own",
            )
