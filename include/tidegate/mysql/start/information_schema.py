"""information_schema, asked for the tables that are wanted.

In:  a cursor, names of tables.
Out: what the server says of them, by (database, table).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidegate.mysql.sql_text.catalog import Ask, Name, rows_of
from tidegate.schema.model.unlogged import SEQUENCE, engine_kept

_BASE: Final = frozenset({"BASE TABLE", "SYSTEM VERSIONED"})
_PARTITIONED: Final = "partitioned"  # a word of create_options, on every server


@dataclass(frozen=True, slots=True)
class ListedTable:
    """A table's row in information_schema.tables."""

    collation: str
    engine: str
    partitioned: bool
    comment: str


@dataclass(frozen=True, slots=True)
class InformationSchema:
    """Answers of information_schema. ask: runs a statement at the server."""

    ask: Ask

    def listed_tables(self, names: Iterable[Name]) -> dict[Name, ListedTable]:
        """Every base table, and MariaDB's sequences; no views."""
        asked = "table_schema, table_name, table_collation, table_type, engine, create_options, table_comment"
        select = f"SELECT {asked} FROM information_schema.tables"
        listed = dict[Name, ListedTable]()
        for database, table, collation, kind, engine, options, comment in rows_of(self.ask, select, names):
            if kind in _BASE or kind == SEQUENCE.upper():
                listed[str(database), str(table)] = ListedTable(
                    str(collation or ""),
                    engine_kept(str(engine or "")) if kind in _BASE else SEQUENCE,
                    _PARTITIONED in str(options or "").lower().split(),
                    comment.decode() if isinstance(comment, bytes) else str(comment or ""),
                )
        return listed

    def columns_of(self, names: Iterable[Name]) -> dict[Name, list[Mapping[str, Any]]]:
        """Their rows in information_schema.columns, in the table's order."""
        cells: tuple[str, ...] = ("column_name", "column_type", "is_nullable", "character_set_name", "collation_name")
        cells += ("column_default", "extra", "generation_expression", "column_comment")
        asked = ", ".join(cells)
        if not self._knows_generated():
            asked = asked.replace("generation_expression", "'' AS generation_expression")
        select = f"SELECT table_schema, table_name, {asked} FROM information_schema.columns"
        columns: dict[Name, list[Mapping[str, Any]]] = defaultdict(list)
        for row in rows_of(self.ask, select, names, order=", ordinal_position"):
            values = (cell.decode() if isinstance(cell, bytes) else cell for cell in row[2:])
            columns[str(row[0]), str(row[1])].append(dict(zip(cells, values, strict=True)))
        return columns

    def _knows_generated(self) -> bool:
        """Whether information_schema has the expressions of generated columns. MariaDB before
        10.2.5 hasn't them, nor has MySQL 5.6, which has no such columns.
        """
        statement = (
            "SELECT 1 FROM information_schema.columns WHERE table_schema = 'information_schema'"
            " AND table_name = 'COLUMNS' AND column_name = 'GENERATION_EXPRESSION'"
        )
        return bool(self.ask(statement, ()))

    def indexes_of(self, names: Iterable[Name]) -> dict[Name, dict[str, list[tuple[Any, ...]]]]:
        """(database, table) -> index name -> [(non_unique, column or None, prefix or None), ...] in key order."""
        asked = "table_schema, table_name, index_name, non_unique, column_name, sub_part"
        select = f"SELECT {asked} FROM information_schema.statistics"
        indexes: dict[Name, dict[str, list[tuple[Any, ...]]]] = defaultdict(lambda: defaultdict(list))
        order = ", index_name, seq_in_index"
        for database, table, index, *part in rows_of(self.ask, select, names, order=order):
            indexes[str(database), str(table)][str(index)].append(tuple(part))
        return indexes
