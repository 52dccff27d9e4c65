"""The query of CREATE TABLE ... SELECT, as far as the new table's columns follow from it without a doubt.

In:  a cursor at the query.
Out: a Query. None for one that we may read in another way than the server.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tidegate.errors import DDLError
from tidegate.schema.ddl.tokens import Cursor, Kind
from tidegate.schema.ddl.tree import Query, QueryItem, QuerySource
from tidegate.schema.select_expressions import Doubt, read_or_doubt

_OPTIONS: Final = ("ALL", "STRAIGHT_JOIN", "HIGH_PRIORITY", "SQL_NO_CACHE", "SQL_CACHE", "SQL_BIG_RESULT")
_CLAUSES: Final = frozenset({"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "FOR", "LOCK", "WINDOW", "OFFSET", "FETCH"})
_JOINS: Final = frozenset({"JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "NATURAL", "STRAIGHT_JOIN"})
# After them nothing is certain any more: WITH ROLLUP puts NULLs into columns, PROCEDURE ANALYSE makes others.
_ENDS: Final = _CLAUSES | {"FROM", "UNION"}
_DOUBTS: Final = frozenset({"EXCEPT", "INTERSECT", "MINUS", "ROLLUP", "PROCEDURE", "INTO", "SELECT"})
_NAME_MAX: Final = 64


def query_starts(cursor: Cursor) -> bool:
    """Whether [AS] SELECT ..., WITH x AS ..., TABLE t, VALUES ROW(...) or one of them in parentheses starts here."""
    word, after = cursor.now.upper, cursor.ahead()
    if word in ("SELECT", "TABLE"):
        return True
    if word == "AS":
        return after.text != "="
    if word == "WITH":
        return after.upper == "RECURSIVE" or cursor.ahead(2).upper == "AS"
    if word == "VALUES":
        return after.upper == "ROW"
    return cursor.is_mark("(") and query_in_parentheses(cursor)


def query_in_parentheses(cursor: Cursor) -> bool:
    """Whether the parenthesis that starts here holds a query."""
    after = cursor.ahead()
    return after.upper in ("SELECT", "WITH", "VALUES", "TABLE") or (after.text == "(" and after.kind == Kind.MARK)


def read_query(cursor: Cursor, database: str) -> Query | None:
    """The cursor stands anywhere afterwards."""
    try:
        return _query(cursor, database)
    except (DDLError, Doubt):
        return None


def _query(cursor: Cursor, database: str) -> Query:
    cursor.take_any("IGNORE", "REPLACE")
    cursor.take("AS")
    closing = cursor.take_mark("(")
    found = _selects(cursor, database)
    if closing and not cursor.take_mark(")"):
        raise Doubt
    if not cursor.ended:
        raise Doubt
    return found


def _selects(cursor: Cursor, database: str) -> Query:
    """One SELECT, or several with UNION between them, up to the end or to `)`."""
    found = _select(cursor, database)
    unions = []
    while cursor.take("UNION"):
        cursor.take_any("ALL", "DISTINCT")
        unions.append(_select(cursor, database))
    return replace(found, unions=tuple(unions)) if unions else found


def _select(cursor: Cursor, database: str) -> Query:
    if not cursor.take("SELECT"):
        raise Doubt
    groups = False
    while True:
        if cursor.take_any("DISTINCT", "DISTINCTROW"):
            groups = True
        elif not cursor.take_any(*_OPTIONS):
            break
    items = [_item(cursor)]
    while cursor.take_mark(","):
        items.append(_item(cursor))
    sources: list[QuerySource] = []
    merges = False
    if cursor.take("FROM") and not cursor.take("DUAL"):
        sources, merges = _sources(cursor, database)
    if merges and any(item.source == "" for item in items):
        raise Doubt  # which table's column it is then depends on the join
    while not (cursor.ended or cursor.now.upper == "UNION" or cursor.is_mark(")")):
        token = cursor.now
        if token.upper in _DOUBTS:
            raise Doubt
        groups = groups or token.upper == "GROUP"
        cursor.skip_one()
    return Query(tuple(items), tuple(sources), groups)


def _item(cursor: Cursor) -> QueryItem:
    if cursor.take_mark("*"):
        return QueryItem("*")
    source = _all_of(cursor)
    if source:
        return QueryItem("*", source=source)
    token = cursor.now
    read = read_or_doubt(cursor)
    written = cursor.sql[token.start : cursor.tokens[cursor.at - 1].end]
    alias = _alias(cursor)
    if not (cursor.ended or cursor.is_mark(",") or cursor.now.upper in _ENDS or cursor.is_mark(")")):
        raise Doubt
    if read.name == "field":
        return QueryItem(alias or read.text, read.source, read.text)
    own = "NULL" if read.literal == "null" else read.text if read.literal in ("bool", "string") else written
    name = alias or own
    if len(name) > _NAME_MAX or name != name.strip():
        raise Doubt
    return QueryItem(name, expression=read)


def _all_of(cursor: Cursor) -> str:
    """`table.*` or `database.table.*`: the table's name; "" for anything else."""
    at = 0
    while cursor.ahead(at).kind in (Kind.WORD, Kind.QUOTED) and cursor.ahead(at + 1).text == ".":
        at += 2
    if not at or cursor.ahead(at).text != "*" or cursor.ahead(at).kind != Kind.MARK:
        return ""
    name = cursor.ahead(at - 2).text
    cursor.at += at + 1
    return name


def _alias(cursor: Cursor) -> str:
    if cursor.take("AS"):
        return cursor.next().text
    token = cursor.now
    if token.kind in (Kind.QUOTED, Kind.STRING) or (token.kind == Kind.WORD and token.upper not in _ENDS | _DOUBTS):
        return cursor.next().text
    return ""


def _sources(cursor: Cursor, database: str) -> tuple[list[QuerySource], bool]:
    """(tables of FROM, whether a join merges columns of two)."""
    found = [_source(cursor, database, outer=False)]
    merges = False
    while True:
        outer_right, natural = False, False
        if not cursor.take_mark(","):
            if cursor.now.upper not in _JOINS:
                return found, merges
            words = set()
            while cursor.now.upper in _JOINS | {"OUTER"}:
                words.add(cursor.next().upper)
            natural = "NATURAL" in words
            outer_right = "LEFT" in words
            if "RIGHT" in words:
                found = [QuerySource(source.table, source.name, outer=True) for source in found]
        found.append(_source(cursor, database, outer=outer_right))
        merges = merges or natural or cursor.now.upper == "USING"
        while not (cursor.ended or cursor.is_mark(",") or cursor.is_mark(")") or _joins(cursor)):
            if cursor.now.upper in _ENDS:
                return found, merges
            if cursor.now.upper in _DOUBTS:
                raise Doubt
            cursor.skip_one()


def _joins(cursor: Cursor) -> bool:
    return cursor.now.upper in _JOINS and cursor.ahead().text != "("


def _source(cursor: Cursor, database: str, *, outer: bool) -> QuerySource:
    if cursor.is_mark("("):
        return _derived(cursor, database, outer=outer)
    table = cursor.table(database)
    if cursor.is_mark("("):
        raise Doubt  # a table function
    if cursor.take("PARTITION"):
        cursor.skip_group()
    name = table[1]
    token = cursor.now
    if (
        cursor.take("AS")
        or token.kind == Kind.QUOTED
        or (
            token.kind == Kind.WORD
            and token.upper not in _ENDS | _JOINS | _DOUBTS | {"ON", "USING", "USE", "FORCE", "IGNORE"}
        )
    ):
        name = cursor.name()
    while cursor.take_any("USE", "FORCE", "IGNORE"):
        cursor.take_any("INDEX", "KEY")
        while not (cursor.ended or cursor.is_mark("(")):
            cursor.next()
        cursor.skip_group()
    if cursor.now.upper == "FOR" and cursor.ahead().upper == "SYSTEM_TIME":
        raise Doubt
    return QuerySource(table, name, outer)


def _derived(cursor: Cursor, database: str, *, outer: bool) -> QuerySource:
    """`( SELECT ... ) alias`."""
    cursor.next()
    query = _selects(cursor, database)
    if not cursor.take_mark(")"):
        raise Doubt
    cursor.take("AS")
    name = cursor.name()
    if cursor.is_mark("("):
        raise Doubt
    return QuerySource(("", ""), name, outer, query)
