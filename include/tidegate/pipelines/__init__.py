"""The only door to a pipeline: commands, Airflow's tasks and Spark's jobs find, load and open it here.

In:  a pipeline's name or file, settings over it, a function that gives connections.
Out: the pipeline with its paths resolved; its lake; its sources' connections, and runs that capture them.

    file = find("shop")                        its file: TIDEGATE_PIPELINES, else include/pipelines
    pipeline = load(file)                      checked, and relative paths taken from the project's root
    pipeline = with_settings(pipeline, ...)    what a form, or an argument of a job, says instead of the file
    lake = open_lake(pipeline, connections)
    reader = PipelineReaders(...).of(pipeline) how pipelines do, however many look
    cut = open_cut("shop")                     all its tables at one instant of the sources (tidegate/query)

Nothing heavy (pyarrow, numba, PyMySQL) is imported before a lake or a connection is needed: Airflow reads pipeline
files every few seconds.
"""

from typing import Any

from tidegate.pipelines.file_watch import FileWatch
from tidegate.pipelines.files import PipelineFile, find, folder, good_files, load, read, resolved
from tidegate.pipelines.opened import (
    asking,
    capture_run,
    changefeed_options,
    load_readers,
    need_connections,
    open_cut,
    open_lake,
    replica_info,
    seen_standing,
    source_info,
    sql_info,
    sql_infos,
    storage_options,
    subscribe,
)
from tidegate.pipelines.settings import decoded, encoded, overlay, with_settings
from tidegate.pipelines.watching import RANGES, PipelineReader, PipelineReaders, PipelineView, look, recent

__all__ = [
    "RANGES",
    "FileWatch",
    "PipelineFile",
    "PipelineReader",
    "PipelineReaders",
    "PipelineView",
    "as_json",
    "asking",
    "capture_run",
    "changefeed_options",
    "decoded",
    "encoded",
    "find",
    "folder",
    "good_files",
    "load",
    "load_readers",
    "look",
    "need_connections",
    "open_cut",
    "open_lake",
    "overlay",
    "read",
    "recent",
    "replica_info",
    "resolved",
    "seen_standing",
    "source_info",
    "sql_info",
    "sql_infos",
    "storage_options",
    "subscribe",
    "with_settings",
]


def as_json(view: PipelineView) -> dict[str, Any]:
    """A look as JSON's own types: plain.py, whose imports are heavy."""
    from tidegate.pipelines.plain import plain

    return plain(view)
