"""Which rows of a routed silver table are a shard's, by the shard columns that each row has.

In:  source, database and table of rows, perhaps NULL.
Out: those of no table that the lake has ever known. Rows of no shard came by another writer.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.lake.files import LakeFiles
from tidegate.lake.schema_rows import known_tables

ShardCells = tuple[str | None, str | None, str | None]


def of_no_shard(lake: LakeFiles, rows: Iterable[ShardCells]) -> list[ShardCells]:
    """A table that is gone, or left out by now, is known. One look at the lake for all. Raises LakeUnavailable."""
    listed = list(rows)
    known = known_tables(lake) if listed else set()
    return [cells for cells in listed if cells not in known]
