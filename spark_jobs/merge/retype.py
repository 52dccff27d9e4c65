"""Give silver's columns the right types when a snapshot begins a table whose earlier rows stay.

In:  a table's writer, a snapshot's version and its shape.
Out: silver rewritten with the shape's types; SchemaMismatch if a kept value would have another text then.

No DDL explains these types: another writer dropped a column and added one of the same name
(window/shape/silver_types.py). Live rows are read anew. Rows of the past, and of shards that aren't read, keep that
writer's values if both types give the same text; often they are NULL. No transaction version records this step:
silver's own types show that it is done.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from spark_jobs.merge.private.log import PrivateLog
from spark_jobs.merge.rewrite import rewrite
from spark_jobs.merge.silver_writer import SilverWriter
from spark_jobs.window.shape.shapes import goes_on_beside
from spark_jobs.window.shape.silver_types import OtherType, check_stamped, check_types, is_stamped, other_types
from tidegate import tables
from tidegate.delta.table.arrow_types import sql_type
from tidegate.delta.table.state import TableState
from tidegate.errors import SchemaMismatch
from tidegate.merge import silver_sql
from tidegate.merge.column import SilverColumn
from tidegate.merge.silver_sql import SilverShape
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.replay.history import SNAPSHOT
from tidegate.spark_sql import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def retype(writer: SilverWriter, version: TableVersion, shape: SilverShape) -> None:
    """Nothing for a statement of the source, and for a table without rows from before. Raises SchemaMismatch."""
    if version.kind != SNAPSHOT or not (writer.entry.routed or shape.past.rows_stay):
        return
    due = {column.name: column for column in shape.columns}
    retyped = writer.has_rows() and any(other_types(shape, writer.state, due))
    if is_stamped(writer.state) and not retyped:
        return
    if goes_on_beside(writer.app, writer.entry, version.commit_ts):
        check_stamped(shape, writer.state)  # the other shards have lost values, too
        check_types(shape, writer.state, due)
    stays = _stays(writer, shape)

    def work(private: PrivateLog) -> bool:
        values: dict[str, str] = {}
        for other in other_types(shape, private.state, due):
            values[other.name] = _value(private, stays, other)
        if not is_stamped(private.state):
            values[tables.COMMIT_TS] = shape.past.stamp
        if values:
            rewrite(private, [], replace(shape, columns=_as_held(due, private.state, values)), values)
        return bool(values)

    writer.change(work)


def _as_held(due: Mapping[str, SilverColumn], state: TableState, others: Collection[str]) -> tuple[SilverColumn, ...]:
    """With silver's own types of the other columns: a routed table may have wider ones."""
    columns = dict(due)
    for field in state.schema["fields"]:
        name = str(field["name"])
        if name in columns and name not in others:
            columns[name] = replace(columns[name], type=sql_type(field["type"]))
    return tuple(columns.values())


def _stays(writer: SilverWriter, shape: SilverShape) -> str:
    """SQL condition of the rows that a snapshot doesn't read anew. In a table with a past these are all rows: a live
    one may become a row of the past.
    """
    if shape.past.rows_stay:
        return "true"
    shards = sorted(writer.app.names.flows().get(writer.entry.name, ()))
    ours = " OR ".join(f"({silver_sql.shard_is(shard)})" for shard in shards)
    return f"NOT ({ours or 'false'})"


def _value(private: PrivateLog, stays: str, other: OtherType) -> str:
    """SQL of the column's value by its due type."""
    column, rows = quote(other.name), private.rows()
    value = f"try_cast({column} AS {other.due})"
    again = f"try_cast({value} AS {other.held})"
    odd = f"NOT ({again} <=> {column})"
    if not _is_known(rows, again):  # no value is of both types
        value, odd = "NULL", f"{column} IS NOT NULL"
    if count := rows.where(f"({stays}) AND {odd}").count():
        raise SchemaMismatch(
            f"column {other.name} is {other.held} in silver, and {other.due} at the source: {count} kept values"
            " don't read the same",
            where=private.state.place,
            remedy="set them to NULL in silver, or delete these rows; then `tidegate release`",
        )
    return value


def _is_known(rows: DataFrame, expression: str) -> bool:
    """Whether Spark has such a conversion."""
    from pyspark.errors import AnalysisException

    try:
        rows.selectExpr(expression)
    except AnalysisException:
        return False
    return True
