"""Deleted rows that stay (soft delete) in a silver table: its mark comes and goes, and a statement marks all.

In:  a table that soft_delete names, or named.
Out: the mark's column, rows marked; SchemaMismatch where marked rows can't stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from spark_jobs.merge.private.log import PrivateLog
from spark_jobs.merge.rewrite import rewrite, types_of
from spark_jobs.merge.silver_writer import SilverWriter
from tidegate import tables
from tidegate.delta.state import TableState
from tidegate.errors import SchemaMismatch
from tidegate.merge.silver_sql import SilverShape
from tidegate.schema.model.columns import TableVersion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def follow_soft_delete(writer: SilverWriter, shape: SilverShape) -> None:
    """Give silver the mark when soft_delete names the table from now on; take it back when nothing is marked."""

    def fits(columns: Sequence[str] | None) -> bool:
        return columns is None or (tables.DELETED in columns) == shape.keeps_deleted

    def work(private: PrivateLog) -> bool:
        rows = private.rows()
        if fits(rows.columns):
            return False
        if not shape.keeps_deleted and (count := _marked(rows)):
            raise SchemaMismatch(
                f"silver keeps {count} deleted rows, and soft_delete doesn't name the table any more",
                where=writer.entry.name,
                remedy=f"name it again, or delete the rows that {tables.DELETED} marks; then release it",
            )
        rewrite(private, (), shape, {})
        return True

    if not fits(writer.columns()):
        writer.change(work)


def mark_all(writer: SilverWriter, old: TableVersion | None, version: TableVersion, shape: SilverShape | None) -> None:
    """TRUNCATE and DROP TABLE delete every row (of this shard); those that are gone already keep their time.

    They are marked even when silver can't take the shape then: whoever is told to delete marked rows finds them so.
    """
    assign = f"{tables.DELETED} = true, {tables.COMMIT_TS} = {version.commit_ts}"
    where = f"{writer.only(version) or ' WHERE true'} AND NOT {tables.DELETED}"
    writer.once("marks", version, lambda private: f"UPDATE {private.target} SET {assign}{where}")
    if shape is None:
        return

    def work(private: PrivateLog) -> bool:
        check_marked(writer, private.rows, private.state, old, version, shape)
        fits = writer.is_as(shape, private.state)
        if not fits:
            rewrite(private, (), shape, {}, sources=writer.sources_of(old))
        return not fits

    state = writer.log.state()
    check_marked(writer, writer.rows, state, old, version, shape)
    if not writer.is_as(shape, state):
        writer.change(work, (writer.ddl_id("shape", version), version.commit_ts))


def check_marked(
    writer: SilverWriter,
    rows: Callable[[], DataFrame | None],
    state: TableState,
    old: TableVersion | None,
    new: TableVersion,
    shape: SilverShape,
) -> None:
    """Raises SchemaMismatch when marked rows can't stay beside rows of another key or of other types.

    rows, state: silver's, the rows read only when there is a doubt.
    """
    if not shape.keeps_deleted:
        return
    fits = old is not None and writer.shape_of(old).key == shape.key
    if new.kind != "alter":
        types = dict(types_of(state))
        fits = fits and all(types.get(column.name, column.type) == column.type for column in shape.columns)
    if not fits and (own := rows()) is not None and (count := _marked(own)):
        raise SchemaMismatch(
            f"{new.ddl[:120]}: silver keeps {count} deleted rows, which have another key or other types",
            where=new.where,
            remedy=f"delete the rows that {tables.DELETED} marks, then release the table",
        )


def _marked(rows: DataFrame) -> int:
    return rows.where(tables.DELETED).count() if tables.DELETED in rows.columns else 0
