"""The columns that CREATE TABLE ... SELECT takes from a query.

In:  a Query, the shapes of its tables.
Out: the new table's columns: those of the query are as their origin is, without its keys; auto-increment becomes
     DEFAULT 0.

Rules: sql/sql_insert.cc, create_table_from_items; seen on MariaDB 11.4 and MySQL 9.7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidegate.errors import DDLError
from tidegate.schema.columns import Column, Generated
from tidegate.schema.ddl_statements import Query, QueryItem, QuerySource
from tidegate.schema.ddl_tokens import Server
from tidegate.schema.table_indexes import find

_REMEDY = "write the columns' types into the statement"
# Grouped rows pass through a temporary table, which has other types for these.
_CHANGED_BY_GROUPS = ("bit", "tinytext", "text", "mediumtext", "longtext", "tinyblob", "blob", "mediumblob", "longblob")


def query_columns(query: Query, shapes: Sequence[Sequence[Column]], server: Server) -> list[Column]:
    """shapes: the columns of each source in order. The ids are those of the sources' columns; 0 for a literal's."""
    pairs = list(zip(query.sources, shapes, strict=True))
    found: list[Column] = []
    for item in query.items:
        if item.literal:
            if not server.mariadb:
                raise DDLError("CREATE TABLE ... SELECT of a literal", remedy=_REMEDY)
            found.append(Column(0, item.name, item.literal, nullable=item.nullable))
        elif item.name == "*" and not item.column:
            found += _all(item, pairs)
        else:
            found.append(_taken(item, pairs))
    if query.groups and any(column.type.startswith(_CHANGED_BY_GROUPS) for column in found):
        raise DDLError("CREATE TABLE ... SELECT groups rows by temporary columns", remedy=_REMEDY)
    names = {column.name.lower() for column in found}
    if len(names) != len(found):
        raise DDLError("CREATE TABLE ... SELECT gives two columns one name", remedy=_REMEDY)
    return found


def _all(item: QueryItem, pairs: list[tuple[QuerySource, Sequence[Column]]]) -> list[Column]:
    """`*` or `source.*`: all but the invisible ones."""
    chosen = [pair for pair in pairs if not item.source or pair[0].name.lower() == item.source.lower()]
    if not chosen:
        raise DDLError(f"the query has no table {item.source!r}", remedy=_REMEDY)
    return [
        _derived(column, column.name, source)
        for source, columns in chosen
        for column in columns
        if not column.invisible
    ]


def _taken(item: QueryItem, pairs: list[tuple[QuerySource, Sequence[Column]]]) -> Column:
    for source, columns in pairs:
        if item.source and item.source.lower() != source.name.lower():
            continue
        column = find(columns, item.column)
        if column is not None:
            return _derived(column, item.name, source)
    raise DDLError(f"the query has no column {item.column!r} that we know", remedy=_REMEDY)


def _derived(column: Column, name: str, source: QuerySource) -> Column:
    if column.generation_expression.startswith("ROW "):
        raise DDLError("CREATE TABLE ... SELECT takes the period of a system-versioned table", remedy=_REMEDY)
    default = "0" if column.auto_increment else column.default
    return replace(
        column,
        name=name,
        nullable=column.nullable or source.outer,
        default=None if column.generated is not Generated.NO else default,
        no_default=column.no_default or (source.outer and not column.nullable),
        generated=Generated.NO,
        generation_expression="",
        auto_increment=False,
        invisible=False,
        comment=column.comment,
    )
