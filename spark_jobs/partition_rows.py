"""Rows of silver that lie in partitions: DROP and TRUNCATE PARTITION write no row event, so silver deletes them itself.

In:  silver's rows, the version before the statement, the one that it made.
Out: SQL of one Delta commit without those rows, or with them marked where deleted rows stay.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from tidegate import tables
from tidegate.errors import SchemaMismatch
from tidegate.schema.columns import TableVersion
from tidegate.schema.partition_rows import RowsWhere, rows_where


def delete_statement(rows: DataFrame, target: str, shard: str, old: TableVersion, new: TableVersion) -> str:
    """The SQL that deletes or marks them. rows, target: silver, read and as SQL names it. shard: "true" when unrouted.

    Raises SchemaMismatch when it isn't certain of every row where it lies.
    """
    assert new.moved is not None, "asked of statements that delete rows"
    where = rows_where(old.columns, old.partitioning, new.moved.partitions)
    marks = tables.DELETED in rows.columns
    own = f"{shard} AND NOT {tables.DELETED}" if marks else shard
    refuse_doubts(rows.where(own), where, new)
    if marks:
        assign = f"{tables.DELETED} = true, {tables.COMMIT_TS} = {new.commit_ts}"
        return f"UPDATE {target} SET {assign} WHERE {own} AND {where.condition}"
    return f"DELETE FROM {target} WHERE {own} AND {where.condition}"


def refuse_doubts(rows: DataFrame, where: RowsWhere, new: TableVersion) -> None:
    """Raise SchemaMismatch when a row may lie elsewhere than it seems."""
    if where.doubt != "(false)" and rows.where(where.doubt).limit(1).collect():
        raise SchemaMismatch(
            f"{new.ddl[:120]}: in which partition some rows lie isn't certain: values of the partitioning columns are"
            " null dates, or texts that compare in ways that aren't known here",
            where=new.where,
            remedy="take a snapshot of the table",
        )
