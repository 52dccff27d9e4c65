"""A table of the source as it is compared, and the prints of its rows.

In:  its columns, each with its way of comparing.
Out: SourceTable, frozen, with the SQL of a row's key and hash; Prints, a chunk of rows as text.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.mysql.sql_text.sql import quote_name
from tidegate.verify.columns.cells import Cell
from tidegate.verify.columns.forms import ColumnForm, FormKind, source_hash


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table of the source. key: indexes into cells; () when it has none. index: the key's. where: SQL that is true of
    the rows that silver has, in parentheses; "" for all. unasked: why these can't be asked for; "" where they can.
    """

    database: str
    table: str
    cells: tuple[Cell, ...]
    forms: tuple[ColumnForm, ...]
    key: tuple[int, ...]
    index: str = ""
    where: str = ""
    unasked: str = ""

    @property
    def name(self) -> str:
        return f"{self.database}.{self.table}"

    @property
    def place(self) -> str:
        return quote_name(self.database, self.table)

    @property
    def key_forms(self) -> tuple[ColumnForm, ...]:
        return tuple(self.forms[n] for n in self.key)

    @property
    def hashed(self) -> tuple[ColumnForm, ...]:
        """Columns of the row's hash: all but the key's, and but numbers."""
        return tuple(
            column for n, column in enumerate(self.forms) if n not in self.key and column.kind is not FormKind.NUMBER
        )

    @property
    def numbers(self) -> tuple[ColumnForm, ...]:
        """Columns that are compared as numbers, beside the hash."""
        return tuple(
            column for n, column in enumerate(self.forms) if n not in self.key and column.kind is FormKind.NUMBER
        )

    @property
    def source_hash(self) -> str:
        """`?` where the server can't say the whole row within max_allowed_packet."""
        parts = ", ".join(column.source_hashed for column in self.hashed)
        digest = source_hash(f"CONCAT_WS(',', {parts})")
        return f"IFNULL({digest}, '?')" if parts else "'0'"

    @property
    def source_keys(self) -> list[str]:
        """The name of a row; in a table without a key its hash."""
        return [column.source_key for column in self.key_forms] or [self.source_hash]


@dataclass(frozen=True, slots=True)
class Prints:
    """A chunk of rows: their keys, hashes and numbers as lines of text.

    after, upto: literals of the key's columns, between which the rows lie; None at the table's ends.
    """

    after: tuple[str, ...] | None
    upto: tuple[str, ...] | None
    rows: int
    text: bytes
