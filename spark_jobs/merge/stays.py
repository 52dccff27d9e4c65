"""Rows of the past in silver, where a rename gives their name other rows.

In:  the name's new rows, and its silver as it is.
Out: both as one: of the name's own rows those that don't come back stay, ended.

Ended rows belong to the name: they are still there after the cut-over of an online schema change. Live rows end as at a
DROP TABLE. Ended rows can stay only if the key and the types are as before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spark_jobs.merge.moves import only_shards, replaced_rows
from spark_jobs.merge.silver_writer import SilverWriter
from spark_jobs.merge.values import numbered
from tidegate import tables
from tidegate.errors import SchemaMismatch
from tidegate.merge.past import Past
from tidegate.merge.silver_sql import SilverShape
from tidegate.schema.model.columns import TableVersion
from tidegate.spark_sql import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_ended(
    writer: SilverWriter,
    shape: SilverShape,
    rows: DataFrame,
    own: DataFrame,
    replaced: Sequence[TableVersion],
    *,
    carried: bool,
) -> DataFrame:
    """The new rows, and the name's own rows that aren't among them. carried: the live rows continue under another name.

    replaced: versions from the rename on; of a routed table the shards whose rows go. Raises SchemaMismatch when rows
    that silver alone has would have to go.
    """
    fits_key = _same_key(writer, shape, own, replaced[0])
    if shape.routed:
        own = own.where(only_shards(replaced))
    past = shape.past
    is_ended = f"NOT ({past.live})" if past.mark in own.columns else "false"
    lost = own.where(is_ended) if carried else own
    if not (fits_key and (shape.key or _fits(own, shape))):
        _refuse(lost, replaced[0], past)
        return rows
    if not _fits(own, shape):
        _refuse(lost.join(rows.select(*map(quote, shape.key)), on=list(shape.key), how="left_anti"), replaced[0], past)
        return rows
    ends = past.ended(replaced[0].commit_ts)
    select = []
    for column in shape.all_columns:
        if column.name not in (tables.ROW_HASH, tables.OCCURRENCE):
            value = quote(column.name) if column.name in own.columns else "NULL"
            if column.name in ends:
                value = f"CASE WHEN {is_ended} THEN {value} ELSE {ends[column.name]} END"
            select.append(f"CAST({value} AS {column.type}) AS {quote(column.name)}")
    merge_key = list(shape.merge_key)
    kept = numbered(own.selectExpr(*select), shape).join(
        rows.select(*map(quote, merge_key)), on=merge_key, how="left_anti"
    )
    return rows.unionByName(kept)


def with_versions(
    writer: SilverWriter, shape: SilverShape, rows: DataFrame, own: DataFrame, replaced: Sequence[TableVersion]
) -> DataFrame:
    """rows, and all versions of a plain table's own: the replaced ones end there.

    replaced: as take_rows has it. Raises SchemaMismatch when they have another key or other types.
    """
    new = replaced[0]
    if not (_same_key(writer, shape, own, new) and _fits(own, shape)):
        if count := own.count():
            raise SchemaMismatch(
                f"{new.ddl[:120]}: silver keeps {count} versions of rows of this name, with another key or other types",
                where=new.where,
                remedy="delete them, then release the table",
            )
        return rows
    ends = f"{shape.past.live} AND ({replaced_rows(replaced, routed=False)})"
    fixed = {name: f"if({ends}, {value}, {name})" for name, value in shape.past.ended(new.commit_ts).items()}
    select = []
    for column in shape.all_columns:
        known = quote(column.name) if column.name in own.columns else shape.past.begun.get(column.name, "NULL")
        select.append(f"CAST({fixed.get(column.name, known)} AS {column.type}) AS {quote(column.name)}")
    return rows.unionByName(own.selectExpr(*select))


def _same_key(writer: SilverWriter, shape: SilverShape, own: DataFrame, new: TableVersion) -> bool:
    history = writer.app.histories[new.source]
    old = history.version_at(new.database, new.table, new.commit_ts - 1)
    return old is not None and writer.shape_of(old).key == shape.key and _fits(own, shape, shape.key)


def _fits(own: DataFrame, shape: SilverShape, names: Sequence[str] | None = None) -> bool:
    """Whether silver has each of these columns of the shape (all by default) with the same type, or lacks it."""
    types = {field.name: field.dataType.simpleString() for field in own.schema.fields}
    wanted = [column for column in shape.all_columns if names is None or column.name in names]
    return all(types.get(column.name, column.type) == column.type for column in wanted)


def _refuse(lost: DataFrame, new: TableVersion, past: Past) -> None:
    if count := lost.count():
        raise SchemaMismatch(
            f"{new.ddl[:120]}: silver keeps {count} rows of this name, which have another key or other types",
            where=new.where,
            remedy=f"delete the rows that {past.mark} marks, then release the table",
        )
