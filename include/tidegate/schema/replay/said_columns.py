"""Whether a table after a statement has the columns reported by the source.

In:  the tables replayed from the statement; the columns of one of them, as the source reports them.
Out: DDLError if these differ.

Replay follows a text, and a text says less than a server knows: the database of a session, or the
table of a LIKE. If the source also reports the columns (a changefeed's schema files), another table
passes only if it has the same names, types and primary key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from tidegate.errors import DDLError, UnsupportedValue
from tidegate.remedy import RECREATE
from tidegate.schema.ddl.reader import touched_tables
from tidegate.schema.ddl.statement import EventSaid, SaidColumn
from tidegate.schema.ddl.tree import Statement
from tidegate.schema.model.columns import Column, IndexKind
from tidegate.schema.model.types import canonical
from tidegate.schema.replay.shape import Shape
from tidegate.schema.replay.work import Work

# TiDB has a column of its own for each part of an index that is an expression; no statement names it.
_OF_EXPRESSION: Final = "_v$_"


def check_said(parsed: Statement, work: Work, said: EventSaid) -> None:
    """Raises DDLError. A table that the statement dropped, or isn't about, isn't compared."""
    if not said.columns or said.of not in touched_tables(parsed) or not work.lives(said.of):
        return
    shape = work.shape(said.of)
    other = next(
        _differences(shape, [column for column in said.columns if not column.name.lower().startswith(_OF_EXPRESSION)]),
        "",
    )
    if other:
        what = f"`{said.of[0]}.{said.of[1]}` isn't what its statement makes of the table that is known: {other}"
        raise DDLError(what, remedy=RECREATE)


def _differences(shape: Shape, said: Sequence[SaidColumn]) -> Iterator[str]:
    columns = [column for column in shape.columns if not column.name.lower().startswith(_OF_EXPRESSION)]
    if [column.name.lower() for column in columns] != [said_column.name.lower() for said_column in said]:
        yield f"it has columns {_listed(said)}, replayed are {_listed(columns)}"
        return
    for column, other in zip(columns, said, strict=True):
        if not _same_type(column, other):
            yield f"its column {other.name} is {other.type}, replayed is {column.type}"
    primary = next((index for index in shape.indexes if index.kind is IndexKind.PRIMARY), None)
    replayed = [column for column in columns if primary and column.id in primary.parts]
    key = [said_column for said_column in said if said_column.primary]
    if [column.name.lower() for column in replayed] != [said_column.name.lower() for said_column in key]:
        yield f"its primary key is of ({_listed(key)}), replayed is of ({_listed(replayed)})"


def _listed(columns: Sequence[Column] | Sequence[SaidColumn]) -> str:
    return ", ".join(column.name for column in columns)


def _same_type(column: Column, other: SaidColumn) -> bool:
    """Whether both have the same values: a CHAR and a TEXT have."""
    if not other.type:
        return True
    try:
        return canonical(replace(column, type=other.type)).delta == canonical(column).delta
    except UnsupportedValue:
        return other.type == column.type
