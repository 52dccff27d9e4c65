"""All rows of one shard are removed, by a TRUNCATE of the shard or by a snapshot that reads it again.

In:  a routed table's writer, the version of the shard that begins without rows.
Out: one commit, recorded under the statement. Without Spark where the driver can look through the files: a statement of
     Spark's costs seconds, and a table may have a hundred shards that are read anew in one window. Rows of no shard go
     with them: silver has some where a table of its own name was brought there before routes named it.
"""

from __future__ import annotations

from spark_jobs.merge.silver_writer import SilverWriter
from tidegate import config, tables
from tidegate.delta.log import Change
from tidegate.delta.table.actions import moved
from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import TableState
from tidegate.errors import SchemaMismatch
from tidegate.lake.silver.as_published import EMPTIED
from tidegate.lake.silver.silver_tables import empty_silver, has_shards
from tidegate.limits import SHARD_DRIVER_ROWS_MAX
from tidegate.merge.silver_sql import SilverShape
from tidegate.schema.model.columns import TableVersion
from tidegate.spark_sql import quote
from tidegate.upsert.fitness import why_not
from tidegate.upsert.group import Group


def empty_shard(writer: SilverWriter, version: TableVersion) -> None:
    """Delete the rows of its shard, once."""
    shard = dict(zip(tables.SHARDS, version.physical, strict=True))
    group, done = Group(shard), (writer.ddl_id(EMPTIED, version), version.commit_ts)
    state = writer.log.state()
    if not _by_position(writer, state, group.files(state.files)):
        writer.once(EMPTIED, version, lambda private: f"DELETE FROM {private.target}{writer.only(version)}")
        return

    def decide(read: TableState) -> Change | None:
        if read.transaction(done[0]) >= done[1]:
            return None
        writer.check(read)
        without_shard = group.deleted(writer.app.lake, writer.path, group.files(read.files))
        return Change(moved(without_shard.removes, without_shard.adds, data_change=True), "DELETE", dict([done]))

    writer.log.update(decide)


def empty_of_no_shard(writer: SilverWriter, version: TableVersion, shape: SilverShape) -> bool:
    """Remove rows of silver that belong to no shard: those of an unrouted table of the same name. True if silver had no
    others; then it has the shape now.
    """
    state, done = writer.log.state(), (writer.ddl_id(EMPTIED, version), version.commit_ts)
    if not state.live:
        return False
    if has_shards(state):
        if any(file.nulls(tables.SHARD_SOURCE) != 0 for file in state.files):
            condition = f"{quote(tables.SHARD_SOURCE)} IS NULL"
            writer.once("no shard's", version, lambda private: f"DELETE FROM {private.target} WHERE {condition}")
        return False
    if writer.work.plan.past.rows_stay:
        raise SchemaMismatch(
            f"{writer.entry.name}: silver keeps deleted rows of a table that no route named",
            where=version.where,
            remedy="give the route another table (to), and release it",
        )
    empty_silver(writer.log, done, shape)
    return True


def _by_position(writer: SilverWriter, state: TableState, files: list[LiveFile]) -> bool:
    if writer.app.pipeline.apply.writer == config.Writer.MERGE or why_not(state) is not None:
        return False
    return sum(file.rows or SHARD_DRIVER_ROWS_MAX for file in files) <= SHARD_DRIVER_ROWS_MAX
