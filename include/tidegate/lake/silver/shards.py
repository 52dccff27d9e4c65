"""To which shard rows of a routed silver table belong, by their shard columns.

In:  source, database and table of rows, perhaps NULL; the pipeline file.
Out: shards the lake has never known: another writer wrote their rows. Shards the pipeline file now
     brings into another silver table.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.config import Pipeline
from tidegate.lake.files import LakeFiles
from tidegate.lake.schema_history.schema_rows import known_tables

ShardCells = tuple[str | None, str | None, str | None]


def of_no_shard(lake: LakeFiles, pipeline: Pipeline, name: str, rows: Iterable[ShardCells]) -> list[ShardCells]:
    """The shards among these that don't belong into the silver table `name`.

    A table that is gone, or no longer included, does belong. All rows together cost one look at the
    lake. Raises LakeUnavailable.
    """
    listed = list(rows)
    known = known_tables(lake) if listed else set()
    return [cells for cells in listed if cells not in known or flows_elsewhere(pipeline, name, cells)]


def flows_elsewhere(pipeline: Pipeline, name: str, cells: ShardCells) -> bool:
    """Whether the pipeline file keeps a table, and brings its rows into another silver table."""
    source, database, table = cells
    if source not in pipeline.sources or database is None or table is None:
        return False
    return pipeline.tables.keeps(database, table) and pipeline.tables.logical(database, table).name != name
