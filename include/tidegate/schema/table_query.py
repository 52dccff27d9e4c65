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
from tidegate.schema.ddl.tree import Query, QueryItem, QuerySource, TableName
from tidegate.schema.model.columns import Column, Generated
from tidegate.schema.replay.indexes import find
from tidegate.schema.select_collations import Session
from tidegate.schema.select_expressions import Doubt, Expression
from tidegate.schema.select_functions import result, united
from tidegate.schema.select_types import Result, column_type, of_column

_REMEDY = "write the columns' types into the statement"
# Grouped rows pass through a temporary table, which has other types for these.
_CHANGED_BY_GROUPS = ("bit", "tinytext", "text", "mediumtext", "longtext", "tinyblob", "blob", "mediumblob", "longblob")
_GEOMETRIES = ("geometry", "point", "linestring", "polygon", "multi")

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


# A column of the new table, and the value that it is made from; None where that has no bearing.
_Pair = tuple[Column, Result | None]


def _columns(query: Query, columns: Columns, session: Session, defined: Collection[str] = ()) -> list[Column]:
    found = _pairs(query, columns, session, defined)
    if query.unions:
        others = [_pairs(union, columns, session, ()) for union in query.unions]
        if any(len(other) != len(found) for other in others):
            raise Doubt
        rows = zip(found, *others, strict=True)
        return [pair[0] if pair[1] is None else _united([pair, *rest], session) for pair, *rest in rows]
    return [column for column, _ in found]


def _pairs(query: Query, columns: Columns, session: Session, defined: Collection[str]) -> list[_Pair]:
    """The columns of one SELECT."""
    sources: list[tuple[QuerySource, Sequence[Column]]] = []
    for source in query.sources:
        if source.query:
            inner = _columns(source.query, columns, session)
            sources.append((source, [replace(c, default=None, no_default=not c.nullable) for c in inner]))
        else:
            sources.append((source, columns(source.table)))
    found: list[_Pair] = []
    for item in query.items:
        if item.expression:
            found.append(_computed(item, item.expression, sources, session, defined))
            if query.groups and (found[-1][0].charset or item.expression.name == "cast"):
                raise Doubt  # a temporary table's column may be another
        else:
            all_of = item.name == "*" and not item.column
            taken = _all(item, sources) if all_of else [_taken(item, sources)]
            found += [(column, of_column(column)) for column in taken]
    if query.groups and any(column.type.startswith(_CHANGED_BY_GROUPS) for column, _ in found):
        raise Doubt
    return found


def _computed(
    item: QueryItem,
    expression: Expression,
    pairs: list[tuple[QuerySource, Sequence[Column]]],
    session: Session,
    defined: Collection[str],
) -> _Pair:
    if item.name.lower() in defined:
        return Column(0, item.name, "binary(0)"), None
    if not session.server.mariadb:
        raise Doubt
    value = result(expression, lambda field: of_column(_named(field.text, field.source, field.text, pairs)), session)
    return _column(item.name, value), value


def _column(name: str, value: Result) -> Column:
    kind = column_type(value)
    texts = value.kind in ("string", "own") and not value.binary
    charset, collation = (value.charset, value.collation) if texts else ("", "")
    return Column(0, name, kind, nullable=value.nullable, charset=charset, collation=collation)


def _united(pairs: Sequence[_Pair], session: Session) -> Column:
    """A column of a UNION. The first column gives its name."""
    first, values = pairs[0][0], [value for _, value in pairs if value is not None]
    if len(values) != len(pairs):
        raise Doubt
    types = {(column.type, column.charset, column.collation) for column, _ in pairs}
    if len(types) == 1 and all(column.id for column, _ in pairs) and (not session.server.mariadb or _stays(first)):
        if first.type.startswith(("enum(", "set(")):
            raise Doubt
        nullable = any(column.nullable for column, _ in pairs)
        return replace(first, id=0, nullable=nullable, default=None, no_default=False, comment="")
    if not session.server.mariadb:
        raise Doubt
    return _column(first.name, united(values, session))


def _stays(column: Column) -> bool:
    """Whether a UNION of like columns is as they are; others change: TINYINT(1), TEXT of several bytes, ZEROFILL."""
    return column.type.startswith(("char(", "binary(", *_GEOMETRIES))


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
