"""The lake of a pipeline, for the commands that read it.

In:  a pipeline's name, or its file; the lake's connection in AIRFLOW_CONN_<ID>, where it has one.
Out: the pipeline, and its lake; the desk of this user at it; one of its sources by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate import config, pipelines
from tidegate.connections import from_environment
from tidegate.errors import UsageError

if TYPE_CHECKING:
    from tidegate.actions.desk import Desk
    from tidegate.lake.files import LakeFiles


def open_lake(pipeline: str) -> tuple[config.Pipeline, LakeFiles]:
    """Raises UsageError and ConfigError."""
    loaded = pipelines.load(pipelines.find(pipeline))
    return loaded, pipelines.open_lake(loaded, from_environment)


def open_desk(pipeline: str) -> Desk:
    """The desk at which this process's user acts on the pipeline. Raises UsageError and
    ConfigError.
    """
    loaded, lake = open_lake(pipeline)
    from tidegate.actions.desk import Desk
    from tidegate.lake.people.audit import Author

    return Desk(loaded, lake, from_environment, Author.of_process())


def source_named(pipeline: config.Pipeline, source: str | None) -> str:
    """The source that an option names; without the option the only source. Raises UsageError."""
    known = ", ".join(pipeline.sources)
    if source is None and len(pipeline.sources) > 1:
        raise UsageError(
            "the pipeline has several sources", where=pipeline.pipeline, remedy=f"give --source, one of {known}"
        )
    name = source or next(iter(pipeline.sources))
    if name not in pipeline.sources:
        raise UsageError(f"there is no source {name!r}", where=pipeline.pipeline, remedy=f"sources: {known}")
    return name
