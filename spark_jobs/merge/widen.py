"""Silver of a routed table gets types that the values of all its shards fit; never narrower ones than it had.

In:  a table's share of a window, the shape that its rows are about to have.
Out: silver rewritten, with the first shard that is wider; SchemaMismatch where no type holds the values of both.

A shard becomes wider by an ALTER, or is wider when it joins: created, created again, or read by a snapshot. Therefore
silver's types are also checked before any rows are written. No transaction version records this step: silver's own
types show that it is done.
"""

from __future__ import annotations

from dataclasses import replace

from spark_jobs.merge.reshaping import reshape
from spark_jobs.merge.rewrite import rewrite, types_of
from spark_jobs.merge.silver_writer import SilverWriter
from tidegate.delta.table.state import TableState
from tidegate.errors import SchemaMismatch
from tidegate.lake.silver.silver_tables import reshaped
from tidegate.merge.column import SilverColumn
from tidegate.merge.silver_sql import SilverShape
from tidegate.merge.widening import wider
from tidegate.remedy import REFILL
from tidegate.tables import ROW_HASH
from tidegate.upsert.reshape import Reshape


def widen(writer: SilverWriter, shape: SilverShape) -> None:
    """Does nothing for an unrouted table. Raises SchemaMismatch."""

    def decide(state: TableState) -> Reshape | None:
        wide = widened(writer, shape)
        if wide is None:
            return None
        in_silver = {name for name, _ in types_of(state)}
        missing = [column.name for column in wide.columns if column.name not in in_silver]
        return Reshape(
            lambda read: reshaped(read, wide, frozenset()), wide.key or (ROW_HASH,), added=dict.fromkeys(missing)
        )

    wide = widened(writer, shape)
    if wide is not None and not reshape(writer, decide, None):
        writer.change(lambda private: rewrite(private, [], wide, {}))


def widened(writer: SilverWriter, shape: SilverShape) -> SilverShape | None:
    """The wanted form of silver; None: it has room for the shape's values. Raises SchemaMismatch."""
    if not writer.entry.routed or writer.columns() is None:
        return None
    in_silver = dict(types_of(writer.log.state()))
    types = {column.name: (in_silver.get(column.name, column.type), column.type) for column in shape.columns}
    both = {name: wider(*pair) for name, pair in types.items()}
    if all(both[name] == known for name, (known, _) in types.items()):
        return None
    if not writer.has_rows():
        return shape
    for name, (known, wanted) in types.items():
        if both[name] is None or (both[name] != known and not shape.key):
            raise SchemaMismatch(
                f"column {name} is {wanted} in a shard, and {known} in silver",
                where=writer.entry.name,
                remedy=REFILL.after("bring all shards to one shape"),
            )
    columns = [replace(column, type=both[column.name] or column.type) for column in shape.columns]
    ours = {column.name for column in shape.all_columns}
    # Columns of shards that wait, or of dropped shards whose deleted rows stay.
    fields = {field["name"]: field for field in writer.log.state().schema["fields"]}
    others = [SilverColumn(name, in_silver[name], _comment(fields[name])) for name in in_silver if name not in ours]
    return replace(shape, columns=(*columns, *others))


def _comment(field: dict[str, dict[str, str]]) -> str:
    return (field.get("metadata") or {}).get("comment", "")
