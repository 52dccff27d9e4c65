"""Which rows of a routed silver table are a shard's, by the shard columns that each row has.

In:  source, database and table of rows, perhaps NULL; the pipeline file.
Out: those of no table that the lake has ever known, which came by another writer; and those of tables that the file
     brings into another silver table by now.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.config import Pipeline
from tidegate.lake.files import LakeFiles
from tidegate.lake.schema_history.schema_rows import known_tables

ShardCells = tuple[str | None, str | None, str | None]


def of_no_shard(lake: LakeFiles, pipeline: Pipeline, name: str, rows: Iterable[ShardCells]) -> list[ShardCells]:
    """The shards, among those of some rows, that don't belong into the silver table `name`.

    A table that is gone, or left out by now, does belong. All rows together cost one look at the lake.
    Raises LakeUnavailable.
    """
    listed = list(rows)
    known = known_tables(lake) if listed else set()
    return [cells for cells in listed if cells not in known or flows_elsewhere(pipeline, name, cells)]


def flows_elsewhere(pipeline: Pipeline, name: str, cells: ShardCells) -> bool:
    """Whether the file keeps a table, and its rows flow into another silver table than this one."""
    source, database, table = cells
    if source not in pipeline.sources or database is None or table is None:
        return False
    return pipeline.tables.keeps(database, table) and pipeline.tables.logical(database, table).name != name
