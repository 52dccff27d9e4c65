"""The declaration of a lake's Delta table: its place, meaning and columns.

In:  nothing; the other files of this room make values of it.
Out: Table; fields with their sentences as comments.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Table:
    """One Delta table: where it lies under the lake's path, what a row means, its columns."""

    path: str
    doc: str
    schema: pa.Schema
    key: tuple[str, ...]
    partition_by: tuple[str, ...] = ()


def field(name: str, kind: pa.DataType, doc: str, *, nullable: bool = False) -> pa.Field:
    """A column and its sentence."""
    return pa.field(name, kind, nullable=nullable, metadata={"comment": doc})
