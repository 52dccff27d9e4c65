"""Check silver's types before rows are written. Another writer may have dropped a column and added one of the same
name: no DDL of the source explains its type, and values would be cast to it unnoticed.

In:  a table's shape where its window begins, silver's own schema.
Out: SchemaMismatch, with what gives the table its columns back.

Two differences are allowed. A routed table has the widest type of its shards. And silver's owner may have widened a
column by Delta's ALTER COLUMN ... TYPE: the schema records the former type, and every value stays the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from tidegate import tables
from tidegate.delta.table.arrow_types import delta_json, sql_type, type_changes
from tidegate.delta.table.state import TableState
from tidegate.errors import SchemaMismatch, UnsupportedValue
from tidegate.merge.silver_sql import SilverShape
from tidegate.merge.widening import wider
from tidegate.remedy import REFILL, Remedy

REBUILD: Final = "run `tidegate rebuild --swap` for it"
_OR_READ: Final = "or `tidegate snapshot start`, where bronze no longer reaches back to its beginning"
_PAST_GOES: Final = " (if bronze has lost its beginning, its past can't be had again: see docs/history.md)"
_FROM: Final = "fromType"


class OtherType(NamedTuple):
    """held, due: Spark SQL types."""

    name: str
    held: str
    due: str


def made_anew(shape: SilverShape, section: str) -> str:
    """The remedy for a hold by a changed rule. A snapshot changes neither rows of the past nor rows of other shards."""
    ends = REBUILD
    if shape.past.rows_stay:
        ends += _PAST_GOES
    elif not shape.routed:
        ends += " (`tidegate snapshot start` reads it anew, too)"
    return f"{ends}; or take the change in {section} back, then `tidegate release`"


def read_anew(shape: SilverShape) -> Remedy:
    """The remedy for a fault in silver's columns. A snapshot keeps rows of the past as they are (merge/retype.py)."""
    return Remedy(f"{REBUILD}; {_OR_READ}") if shape.past.rows_stay and not shape.routed else REFILL


def check_stamped(shape: SilverShape, state: TableState) -> None:
    """Raise SchemaMismatch if another writer dropped the column of commit_ts."""
    if state.created and not is_stamped(state):
        lost = f"silver lacks column {tables.COMMIT_TS}, which each of its tables has"
        raise SchemaMismatch(lost, where=state.place, remedy=read_anew(shape))


def is_stamped(state: TableState) -> bool:
    """Whether silver's rows have their commit_ts."""
    return any(str(field["name"]).lower() == tables.COMMIT_TS for field in state.schema["fields"])


def check_types(shape: SilverShape, state: TableState, due: Collection[str]) -> None:
    """Raise SchemaMismatch for a column of another type. due: names of the source's columns that silver must have by
    now; none where nothing is known of them. System columns are asked with them.
    """
    if not state.created or not due or (shape.routed and not state.files):
        return  # a routed table without rows gets its shards' types
    other = [f"{name} ({held}, not {wanted})" for name, held, wanted in other_types(shape, state, due)]
    if other:
        raise SchemaMismatch(
            f"silver has another type of column {', '.join(other)}: another writer changed it",
            where=state.place,
            remedy=read_anew(shape),
        )


def other_types(shape: SilverShape, state: TableState, due: Collection[str]) -> Iterator[OtherType]:
    """The columns named by check_types."""
    fields = {str(field["name"]).lower(): field for field in state.schema["fields"]}  # Delta: case is nothing
    for column in shape.all_columns:
        field = fields.get(column.name.lower())
        if field is None or (column in shape.columns and column.name not in due):
            continue
        held = _sql(field["type"])
        if held == column.type or (shape.routed and wider(held, column.type) is not None):
            continue
        if not _was_widened(field, column.type):
            yield OtherType(column.name, held, column.type)


def _sql(delta: str | Mapping[str, Any]) -> str:
    """A type's name for people; also of one that silver never has."""
    try:
        return sql_type(delta)
    except UnsupportedValue:
        return delta if isinstance(delta, str) else str(delta.get("type"))


def _was_widened(field: Mapping[str, Any], wanted: str) -> bool:
    """Whether Delta's metadata says that the column was widened from the due type."""
    return any(change.get(_FROM) == delta_json(wanted) for change in type_changes(field))
