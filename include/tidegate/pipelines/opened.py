"""A pipeline's lake and sources, opened with whoever's connections.

In:  a pipeline as `load` gives it; a function from a connection's id to the connection.
Out: its LakeFiles, a source's ConnectionInfo; ConfigError where a connection is missing or can't be used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.lake.storage import delta_options, store_keys

if TYPE_CHECKING:
    from tidegate.config import Lake, Pipeline
    from tidegate.connections import Connections
    from tidegate.lake.files import LakeFiles
    from tidegate.mysql.connection import ConnectionInfo


def storage_options(lake: Lake, connections: Connections) -> dict[str, str]:
    """A lake's own options, and those of its connection over them, as delta-rs names them; they may hold keys."""
    return delta_options(lake.storage_options, store_keys(connections(lake.conn_id)) if lake.conn_id else {})


def open_lake(pipeline: Pipeline, connections: Connections) -> LakeFiles:
    """Raises ConfigError."""
    from tidegate.lake.files import LakeFiles

    return LakeFiles(pipeline.lake.path, storage_options(pipeline.lake, connections))


def source_info(pipeline: Pipeline, source: str, connections: Connections) -> ConnectionInfo:
    """How to reach a source of the pipeline. Raises ConfigError."""
    from tidegate.mysql.connection import ConnectionInfo

    return ConnectionInfo.of(connections(pipeline.sources[source].conn_id))
