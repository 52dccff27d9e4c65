"""Tables unreadable by SQL at their source: of a changefeed without a named TiDB, or without a grant for us.

In:  a lake, a pipeline, its sources.
Out: their tables, by what the schema history says is there.

Each of them is named as not verified. No verification then ends well with one of them left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from tidegate.commit_ts import FOREVER
from tidegate.config import Pipeline
from tidegate.lake.files import LakeFiles
from tidegate.lake.schema_history.schema_rows import needed_rows
from tidegate.mysql.start.recorded import newest_statuses
from tidegate.schema.model.columns import VersionStatus
from tidegate.table_names import Physical
from tidegate.verify.source_side import SourceSide
from tidegate.verify.under_way import TableUnderWay

WHY: Final = (
    "source {source} is a changefeed, and its files say nothing of what its TiDB has;"
    " give the source sql_conn_id, a connection of that TiDB's SQL port"
)


def unread_tables(lake: LakeFiles, pipeline: Pipeline, sources: Collection[str]) -> list[TableUnderWay]:
    """The unread tables, by source and name. Raises LakeUnavailable."""
    return list(_tables(lake, pipeline, sources)) if sources else []


def _tables(lake: LakeFiles, pipeline: Pipeline, sources: Collection[str]) -> Iterator[TableUnderWay]:
    # From forever on: no version of a table is asked for.
    for source, rows in sorted(needed_rows(lake, sources, lambda *_: FOREVER).items()):
        for database, table in sorted(rows.standing):
            if table and pipeline.tables.keeps(database, table):
                to_database, to_table, _ = pipeline.tables.logical(database, table)
                yield TableUnderWay(source, database, table, f"{to_database}.{to_table}", ())


def hidden_tables(
    lake: LakeFiles,
    pipeline: Pipeline,
    sources: Mapping[str, SourceSide],
    shown: Collection[Physical],
    followed: Callable[[str, str], bool],
) -> Iterator[TableUnderWay]:
    """Followed tables hidden from our account by the server, each with the reason. shown: the others.

    Raises LakeUnavailable.
    """
    for source, side in sources.items():
        for name, status in sorted(newest_statuses(lake, source).items()):
            if status is VersionStatus.DROPPED or Physical(source, *name) in shown or not followed(*name):
                continue
            if refusal := side.refusal(*name):
                yield TableUnderWay(source, *name, pipeline.tables.logical(*name).name, (), refused=refusal)
