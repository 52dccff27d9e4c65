"""Which rows of a routed silver table are a shard's, by the shard columns that each row has.

In:  source, database and table of a row, perhaps NULL.
Out: whether the lake has ever known such a table. Rows of no shard came by another writer.
"""

from __future__ import annotations

from tidegate.lake.files import LakeFiles
from tidegate.lake.schema_rows import table_rows

ShardCells = tuple[str | None, str | None, str | None]


def is_shard(lake: LakeFiles, cells: ShardCells) -> bool:
    """Also of one that is gone, or left out by now. Raises LakeUnavailable."""
    source, database, table = cells
    if source is None or database is None or table is None:
        return False
    return any(row["source"] == source for row in table_rows(lake, database, table))
