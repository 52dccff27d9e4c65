"""The lake of a pipeline, for the commands that read it.

In:  a pipeline's name, or its file; the lake's connection in AIRFLOW_CONN_<ID>, where it has one.
Out: the pipeline, and its lake; one of its sources by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate import config
from tidegate.cli.capture import lake_secrets
from tidegate.cli.main import pipeline_path
from tidegate.errors import UsageError
from tidegate.home import home

if TYPE_CHECKING:
    from tidegate.lake.files import LakeFiles


def open_lake(pipeline: str) -> tuple[config.Pipeline, LakeFiles]:
    """Raises UsageError and ConfigError."""
    from tidegate.lake.files import lake_files

    root = home()
    loaded = config.load(pipeline_path(pipeline, root))
    lake = lake_files(loaded.lake.path, root, loaded.lake.storage_options | lake_secrets(loaded.lake.conn_id))
    return loaded, lake


def source_named(pipeline: config.Pipeline, source: str | None) -> str:
    """The source that an option names; without one the only one there is. Raises UsageError."""
    known = ", ".join(pipeline.sources)
    if source is None and len(pipeline.sources) > 1:
        raise UsageError(
            "the pipeline has several sources", where=pipeline.pipeline, remedy=f"give --source, one of {known}"
        )
    name = source or next(iter(pipeline.sources))
    if name not in pipeline.sources:
        raise UsageError(f"there is no source {name!r}", where=pipeline.pipeline, remedy=f"sources: {known}")
    return name
