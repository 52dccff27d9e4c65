"""Tables whose source nobody can read by SQL: a changefeed's, of which no TiDB is named.

In:  a lake, a pipeline, the sources that can't be read.
Out: their tables, by what the schema history says is there.

They are named as not verified, each by itself, so a good end of a verification never leaves one out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from tidegate.config import Pipeline
from tidegate.lake.files import LakeFiles
from tidegate.lake.schema_rows import needed_rows
from tidegate.verify.under_way import TableUnderWay

WHY: Final = (
    "source {source} is a changefeed, and its files say nothing of what its TiDB has;"
    " give the source sql_conn_id, a connection of that TiDB's SQL port"
)
_NO_ROWS: Final = (1 << 63) - 1  # above every commit_ts: no version of a table is asked for


def unread_tables(lake: LakeFiles, pipeline: Pipeline, sources: Collection[str]) -> list[TableUnderWay]:
    """The unread tables, by source and name. Raises LakeUnavailable."""
    return list(_tables(lake, pipeline, sources)) if sources else []


def _tables(lake: LakeFiles, pipeline: Pipeline, sources: Collection[str]) -> Iterator[TableUnderWay]:
    for source, rows in sorted(needed_rows(lake, sources, lambda *_: _NO_ROWS).items()):
        for database, table in sorted(rows.standing):
            if table and pipeline.tables.keeps(database, table):
                to_database, to_table, _ = pipeline.tables.logical(database, table)
                yield TableUnderWay(source, database, table, f"{to_database}.{to_table}", ())
