"""A table's first TIMESTAMP column on a server without explicit_defaults_for_timestamp.

In:  a table's columns after CREATE or ALTER.
Out: the same columns; the first TIMESTAMP has the default of the server.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tidegate.schema.model.columns import Column
from tidegate.schema.replay.context import Context


def with_first_timestamp(columns: list[Column], before: Iterable[Column], context: Context) -> list[Column]:
    """Without explicit_defaults_for_timestamp a table's first TIMESTAMP is the time of each change.

    In sql_table.cc promote_first_timestamp_column: the first one alone, and when nothing else is written.
    """
    first = next((column for column in columns if column.type.startswith("timestamp")), None)
    if first is None or not context.implicit_timestamps or any(column.id == first.id for column in before):
        return columns
    plain = not (first.nullable or first.on_update or first.generated or first.generation_expression)
    if not plain or first.default is not None:
        return columns
    now = first.type.replace("timestamp", "CURRENT_TIMESTAMP")
    promoted = replace(first, default=now, default_is_expression=True, on_update=now)
    return [promoted if column.id == first.id else column for column in columns]
