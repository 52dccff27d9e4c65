"""The columns that CREATE TABLE ... SELECT takes from a query.

In:  a Query, the columns of its tables.
Out: the new table's columns: those of the query are as their origin is, without its keys; auto-increment becomes
     DEFAULT 0.

Rules: sql/sql_insert.cc, create_table_from_items; seen on MariaDB 11.4 and MySQL 9.7.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Final

from tidegate.errors import DDLError
from tidegate.schema.columns import Column, Generated
from tidegate.schema.ddl_statements import Query, QueryItem, QuerySource, TableName
from tidegate.schema.select_collations import Session
from tidegate.schema.select_expressions import Doubt, Expression
from tidegate.schema.select_functions import result
from tidegate.schema.select_types import Result, column_type, of_column
from tidegate.schema.table_indexes import find

_REMEDY = "write the columns' types into the statement"
# Grouped rows pass through a temporary table, which has other types for these.
_CHANGED_BY_GROUPS = ("bit", "tinytext", "text", "mediumtext", "longtext", "tinyblob", "blob", "mediumblob", "longblob")


Columns = Callable[[TableName], Sequence[Column]]


def query_columns(query: Query, columns: Columns, session: Session, defined: Collection[str] = ()) -> list[Column]:
    """columns: those of a table, in order. defined: names in small letters of columns whose type the statement gives:
    what the query says of it has no bearing.

    The ids are those of the sources' columns; 0 for an expression's. Raises DDLError.
    """
    try:
        found = _columns(query, columns, session, defined)
    except Doubt as error:
        raise DDLError("CREATE TABLE ... SELECT of an expression whose type isn't certain", remedy=_REMEDY) from error
    names = {column.name.lower() for column in found}
    if len(names) != len(found):
        raise DDLError("CREATE TABLE ... SELECT gives two columns one name", remedy=_REMEDY)
    return found


def _columns(query: Query, columns: Columns, session: Session, defined: Collection[str] = ()) -> list[Column]:
    pairs: list[tuple[QuerySource, Sequence[Column]]] = []
    for source in query.sources:
        if source.query:
            inner = _columns(source.query, columns, session)
            pairs.append((source, [replace(c, default=None, no_default=not c.nullable) for c in inner]))
        else:
            pairs.append((source, columns(source.table)))
    found: list[Column] = []
    for item in query.items:
        if item.expression:
            found.append(_computed(item, item.expression, pairs, session, defined))
            if query.groups and (found[-1].charset or item.expression.name == "cast"):
                raise Doubt  # a temporary table's column may be another
        elif item.name == "*" and not item.column:
            found += _all(item, pairs)
        else:
            found.append(_taken(item, pairs))
    if query.groups and any(column.type.startswith(_CHANGED_BY_GROUPS) for column in found):
        raise Doubt
    for union in query.unions:
        found = _united(found, _columns(union, columns, session))
    return found


def _computed(
    item: QueryItem,
    expression: Expression,
    pairs: list[tuple[QuerySource, Sequence[Column]]],
    session: Session,
    defined: Collection[str],
) -> Column:
    if item.name.lower() in defined:
        return Column(0, item.name, "binary(0)")
    if not session.server.mariadb:
        raise Doubt
    value = result(expression, lambda field: of_column(_named(field.text, field.source, field.text, pairs)), session)
    return _column(item.name, value)


def _column(name: str, value: Result) -> Column:
    kind = column_type(value)
    texts = value.kind in ("string", "own") and not value.binary
    charset, collation = (value.charset, value.collation) if texts else ("", "")
    return Column(0, name, kind, nullable=value.nullable, charset=charset, collation=collation)


def _united(first: list[Column], second: list[Column]) -> list[Column]:
    """Columns of a UNION of queries that take columns of the same types from tables."""
    if not all(column.id for column in (*first, *second)):
        raise Doubt
    if [(c.type, c.charset, c.collation) for c in first] != [(c.type, c.charset, c.collation) for c in second]:
        raise Doubt
    if any(column.type.startswith(("enum(", "set(")) for column in first):
        raise Doubt  # MariaDB makes texts of them
    return [
        replace(one, id=0, nullable=one.nullable or other.nullable, default=None, no_default=False, comment="")
        for one, other in zip(first, second, strict=True)
    ]


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
    return _named(item.column, item.source, item.name, pairs)


def _named(column: str, of: str, name: str, pairs: list[tuple[QuerySource, Sequence[Column]]]) -> Column:
    """A column of the sources, under this name."""
    for source, columns in pairs:
        if of and of.lower() != source.name.lower():
            continue
        found = find(columns, column)
        if found is not None:
            return _derived(found, name, source)
    raise DDLError(f"the query has no column {column!r} that we know", remedy=_REMEDY)


# Defaults that CREATE TABLE ... SELECT doesn't take over: of other columns, or of a value that is never the same.
_LOST: Final = re.compile(r"`|\b(?:uuid|uuid_short|sys_guid|rand|sysdate|version)\(")


def _derived(column: Column, name: str, source: QuerySource) -> Column:
    if column.generation_expression.startswith("ROW "):
        raise DDLError("CREATE TABLE ... SELECT takes the period of a system-versioned table", remedy=_REMEDY)
    default = "0" if column.auto_increment else column.default
    if column.generated is not Generated.NO or (column.default_is_expression and _LOST.search(default or "")):
        default = None
    return replace(
        column,
        name=name,
        nullable=column.nullable or source.outer,
        default=default,
        default_is_expression=column.default_is_expression and default is not None,
        no_default=column.no_default or (source.outer and not column.nullable),
        generated=Generated.NO,
        generation_expression="",
        auto_increment=False,
        invisible=False,
        comment=column.comment,
    )
