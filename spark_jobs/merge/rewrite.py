"""Rewrite a silver table with other columns, on a private log. The result is plain Delta, so every reader can read it.

In:  a private log, what changes about its columns.
Out: the table's rows and columns replaced in the private log; it commits them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from spark_jobs.merge.private.log import PrivateLog
from spark_jobs.merge.values import literals, numbered
from tidegate import tables
from tidegate.delta.table.actions import clustering
from tidegate.delta.table.arrow_types import sql_type
from tidegate.delta.table.state import TableState
from tidegate.lake.silver.silver_tables import check_constraints, features_added, owners_columns
from tidegate.merge.silver_sql import SilverShape
from tidegate.schema.follow.silver_change import AddSilverColumn, RenameSilverColumn, SilverAction, ValuesRewritten
from tidegate.schema.model.types import canonical
from tidegate.spark_sql import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rewrite(
    private: PrivateLog,
    actions: Sequence[SilverAction],
    shape: SilverShape,
    recasts: Mapping[str, str],
    own: str = "true",
    sources: AbstractSet[str] | None = frozenset(),
) -> None:
    """The rows that it has, with the shape's columns and those of silver's owner. recasts: SQL text of new values, by
    column. own: SQL condition of the rows that the actions are about; those of other shards keep what they have.
    sources: columns that the source had until now; None: nobody knows, and all that the shape lacks go.
    """
    rows = private.rows()
    more = owners_columns(private.inside, shape, sources)
    check_constraints(private.inside, {*more, *(column.name for column in shape.all_columns)})
    renamed = {a.new_name: a.old_name for a in actions if isinstance(a, RenameSilverColumn)}
    added = literals([a for a in actions if isinstance(a, AddSilverColumn)])
    select = []
    for column in shape.columns:
        old_name = renamed.get(column.name, column.name)
        known = quote(old_name) if old_name in rows.columns else "NULL"
        value = recasts.get(column.name) or known
        if column.name in added:
            value = f"CASE WHEN {own} THEN {added[column.name]} ELSE {known} END"
        select.append(f"CAST({value} AS {column.type}) AS {quote(column.name)}")
    for column in shape.system:
        if column.name not in (tables.ROW_HASH, tables.OCCURRENCE):
            begun = None if column.name in rows.columns else shape.past.begun.get(column.name)
            value = recasts.get(column.name) or begun or column.name
            select.append(f"CAST({value} AS {column.type}) AS {column.name}")
    select += map(quote, more)
    overwrite(private, numbered(rows.selectExpr(*select), shape), shape, more)


def overwrite(private: PrivateLog, rows: DataFrame, shape: SilverShape, more: Sequence[str] = ()) -> None:
    """Replace the table's rows by these, with the shape's columns and `more`. An overwrite drops the clustering
    columns, so they are set again.
    """
    private.apply(features_added(private.inside, shape))
    rows = rows.select(*(quote(name) for name in (*(c.name for c in shape.all_columns), *more)))
    for column in shape.all_columns:
        rows = rows.withMetadata(column.name, column.metadata)
    rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(private.uri)
    if shape.cluster_by:
        private.apply([clustering(shape.cluster_by)])


def keeps_values(state: TableState, action: SilverAction, recasts: Mapping[str, str]) -> bool:
    """Whether silver has the values and their type already, as with a shorter VARCHAR whose texts all fit."""
    if not isinstance(action, ValuesRewritten) or recasts.get(action.column.silver) != quote(action.old_name):
        return False
    return (action.old_name, canonical(action.column).delta) in types_of(state)


def has_columns(state: TableState, shape: SilverShape) -> bool:
    """Whether silver has the shape's columns, in any order, and no others."""
    return dict(types_of(state)) == {column.name: column.type for column in shape.all_columns}


def types_of(state: TableState) -> list[tuple[str, str]]:
    """Name and Spark SQL type of each column."""
    return [(field["name"], sql_type(field["type"])) for field in state.schema["fields"]]
