"""Rows of silver that lie in partitions: statements about partitions write no row event, so silver moves them itself.

In:  silver's rows, the version before the statement, the one that it made.
Out: SQL of one Delta commit without those rows, or with them marked where deleted rows stay; which rows a table gives
     to another one, and which of its own they replace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.window.window import Move
from tidegate.errors import SchemaMismatch
from tidegate.merge.past import past_of
from tidegate.remedy import REFILL
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.partition_rows import RowsWhere, rows_where
from tidegate.schema.model.partitions import EXCHANGED, GIVEN, GROWN, SPLIT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def delete_statement(rows: DataFrame, target: str, shard: str, old: TableVersion, new: TableVersion) -> str:
    """The SQL that deletes or marks them. rows, target: silver, read and as SQL names it. shard: "true" when unrouted.

    Raises SchemaMismatch unless the partition of every row is certain.
    """
    assert new.moved is not None, "asked of statements that delete rows"
    where = rows_where(old.columns, old.partitioning, new.moved.partitions)
    past = past_of(rows.columns)
    own = f"{shard} AND {past.live}" if past.rows_stay else shard
    refuse_doubts(rows.where(own), where, new)
    if past.rows_stay:
        return f"UPDATE {target} SET {past.assigned(new.commit_ts)} WHERE {own} AND {where.condition}"
    return f"DELETE FROM {target} WHERE {own} AND {where.condition}"


def refuse_doubts(rows: DataFrame, where: RowsWhere, new: TableVersion) -> None:
    """Raise SchemaMismatch if a row may lie in another partition than its values say."""
    if where.doubt != "(false)" and rows.where(where.doubt).limit(1).collect():
        raise SchemaMismatch(
            f"{new.ddl[:120]}: the partition of some rows isn't certain: values of the partitioning columns are"
            " null dates, or texts with an unknown order",
            where=new.where,
            remedy=REFILL,
        )


def partition_given(rows: DataFrame, move: Move) -> DataFrame:
    """A giver's live and marked rows that the taker gets: all, or a partition's.

    Raises SchemaMismatch when it isn't certain where each of them lies, at the giver's or at the taker's.
    """
    moved = move.moved
    if moved is None:
        return rows
    if moved.how in (GIVEN, SPLIT):
        where = rows_where(move.old.columns, move.old.partitioning, moved.partitions)
        refuse_doubts(rows, where, move.new)
        return rows.where(where.condition)
    # The server checks each row. WITHOUT VALIDATION it doesn't, so a row may lie in a wrong partition.
    where = rows_where(move.new.columns, move.new.partitioning, moved.partitions)
    refuse_doubts(rows, where, move.new)
    if rows.where(f"NOT {where.condition}").limit(1).collect():
        raise SchemaMismatch(
            f"{move.new.ddl[:120]}: rows came that don't belong in the partition",
            where=move.new.where,
            remedy=REFILL,
        )
    return rows


def partial_taker(version: TableVersion) -> bool:
    """Whether a table got rows beside those that it keeps."""
    return version.moved is not None and version.moved.how in (EXCHANGED, GROWN)


def partition_replaced(version: TableVersion) -> str:
    """SQL condition: the rows of the taker's own partition, which go. A new partition has none."""
    assert version.moved is not None, "a partial taker"
    return rows_where(version.columns, version.partitioning, version.moved.partitions).condition
