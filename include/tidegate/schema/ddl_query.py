"""The query of CREATE TABLE ... SELECT, as far as the new table's columns follow from it without a doubt.

In:  a cursor at the query.
Out: a Query: columns of tables by name, `*`, literals, COUNT. None for any other: the types of expressions, of unions
     and of derived tables would have to be guessed.
"""

from __future__ import annotations

import re
from typing import Final

from tidegate.errors import DDLError
from tidegate.schema.ddl_statements import Query, QueryItem, QuerySource
from tidegate.schema.ddl_tokens import Cursor, Kind

_OPTIONS: Final = ("ALL", "STRAIGHT_JOIN", "HIGH_PRIORITY", "SQL_NO_CACHE", "SQL_CACHE", "SQL_BIG_RESULT")
_CLAUSES: Final = frozenset({"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "FOR", "LOCK", "WINDOW", "OFFSET", "FETCH"})
_JOINS: Final = frozenset({"JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "NATURAL", "STRAIGHT_JOIN"})
# After them nothing is certain any more: WITH ROLLUP puts NULLs into columns, PROCEDURE ANALYSE makes others.
_DOUBTS: Final = frozenset({"UNION", "EXCEPT", "INTERSECT", "MINUS", "ROLLUP", "PROCEDURE", "INTO", "SELECT"})
_DECIMAL: Final = re.compile(r"(\d*)\.(\d*)")
_INT_DIGITS: Final = 9  # the longest that is an INT whatever its digits
_BIGINT_DIGITS: Final = 18
_DECIMAL_DIGITS: Final = 65
_SCALE: Final = 38
# The server keeps 9 words of 9 digits each, and cuts behind the point what doesn't fit.
_WORDS: Final = 9


def read_query(cursor: Cursor, database: str) -> Query | None:
    """The cursor stands anywhere afterwards."""
    try:
        return _query(cursor, database)
    except (DDLError, _Doubt):
        return None


class _Doubt(Exception):  # noqa: N818  it ends the reading of one query, nobody else sees it
    pass


def _query(cursor: Cursor, database: str) -> Query:
    cursor.take_any("IGNORE", "REPLACE")
    cursor.take("AS")
    closing = cursor.take_mark("(")
    if not cursor.take("SELECT"):
        raise _Doubt
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
    if merges and any(item.source == "" and not item.literal for item in items):
        raise _Doubt  # which table's column it is then depends on the join
    while not cursor.ended:
        token = cursor.now
        if token.upper in _DOUBTS:
            raise _Doubt
        groups = groups or token.upper == "GROUP"
        if closing and cursor.take_mark(")"):
            closing = False
        elif cursor.is_mark(")"):
            raise _Doubt
        else:
            cursor.skip_one()
    return Query(tuple(items), tuple(sources), groups)


def _item(cursor: Cursor) -> QueryItem:
    start = cursor.now.start
    if cursor.take_mark("*"):
        return QueryItem("*")
    literal = _literal(cursor)
    if literal:
        return QueryItem(_alias(cursor) or _written(cursor, start), literal=literal, nullable=literal == "binary(0)")
    names = [_plain_name(cursor)]
    while cursor.take_mark("."):
        if cursor.take_mark("*"):
            return QueryItem("*", source=names[-1])
        names.append(cursor.name())
    name = _alias(cursor) or names[-1]
    if not (cursor.ended or cursor.is_mark(",") or cursor.now.upper in _CLAUSES | {"FROM"} or cursor.is_mark(")")):
        raise _Doubt  # an expression
    return QueryItem(name, source=names[-2] if len(names) > 1 else "", column=names[-1])


def _plain_name(cursor: Cursor) -> str:
    if cursor.now.kind not in (Kind.WORD, Kind.QUOTED):
        raise _Doubt
    if cursor.now.upper in ("CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_USER", "LOCALTIME"):
        raise _Doubt
    return cursor.name()


def _alias(cursor: Cursor) -> str:
    if cursor.take("AS"):
        return cursor.next().text
    token = cursor.now
    if token.kind in (Kind.QUOTED, Kind.STRING) or (
        token.kind == Kind.WORD and token.upper not in _CLAUSES | _DOUBTS | {"FROM"}
    ):
        return cursor.next().text
    return ""


def _written(cursor: Cursor, start: int) -> str:
    return cursor.sql[start : cursor.tokens[cursor.at - 1].end]


def _literal(cursor: Cursor) -> str:
    """column_type of the literal here, which is stepped over; "" for none."""
    token = cursor.now
    if token.upper == "COUNT" and cursor.ahead().text == "(":
        cursor.next()
        cursor.skip_group()
        return _ended("bigint(21)", cursor)
    if token.kind == Kind.NUMBER:
        cursor.next()
        return _ended(_number(token.text), cursor)
    if token.upper == "NULL":
        cursor.next()
        return _ended("binary(0)", cursor)
    if token.upper in ("TRUE", "FALSE"):
        cursor.next()
        return _ended("int(1)", cursor)
    if token.upper.startswith("0X") and token.kind == Kind.WORD:
        cursor.next()
        return _ended(f"varbinary({(len(token.text) - 1) // 2})", cursor)
    return ""


def _ended(kind: str, cursor: Cursor) -> str:
    """kind, when the literal is all of the item."""
    token = cursor.now
    if token.kind == Kind.MARK and token.text not in (",", ")"):
        raise _Doubt
    if token.upper in ("MOD", "DIV", "OVER", "IS", "LIKE", "IN", "BETWEEN", "AND", "OR", "XOR", "COLLATE"):
        raise _Doubt
    return kind


def _number(text: str) -> str:
    if "e" in text.lower():
        return "double"
    found = _DECIMAL.fullmatch(text)
    if found is None:
        digits = len(text)
        if digits <= _INT_DIGITS:
            return f"int({digits})"
        if digits <= _BIGINT_DIGITS:
            return f"bigint({digits})"
        if digits <= _BIGINT_DIGITS + 2:  # around the limits of BIGINT
            raise _Doubt
        return f"decimal({min(digits, _DECIMAL_DIGITS)},0)"
    whole, behind = len(found[1]), len(found[2])
    words = -(-whole // 9)
    if words + -(-behind // 9) > _WORDS:
        behind = min(behind, max(_WORDS - words, 0) * 9)
    return f"decimal({min(whole + min(behind, _SCALE), _DECIMAL_DIGITS)},{min(behind, _SCALE)})"


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
            if cursor.now.upper in _CLAUSES:
                return found, merges
            if cursor.now.upper in _DOUBTS:
                raise _Doubt
            cursor.skip_one()


def _joins(cursor: Cursor) -> bool:
    return cursor.now.upper in _JOINS and cursor.ahead().text != "("


def _source(cursor: Cursor, database: str, *, outer: bool) -> QuerySource:
    if cursor.is_mark("("):
        raise _Doubt
    table = cursor.table(database)
    if cursor.is_mark("("):
        raise _Doubt  # a table function
    if cursor.take("PARTITION"):
        cursor.skip_group()
    name = table[1]
    token = cursor.now
    if (
        cursor.take("AS")
        or token.kind == Kind.QUOTED
        or (
            token.kind == Kind.WORD
            and token.upper not in _CLAUSES | _JOINS | _DOUBTS | {"ON", "USING", "USE", "FORCE", "IGNORE"}
        )
    ):
        name = cursor.name()
    while cursor.take_any("USE", "FORCE", "IGNORE"):
        cursor.take_any("INDEX", "KEY")
        while not (cursor.ended or cursor.is_mark("(")):
            cursor.next()
        cursor.skip_group()
    if cursor.now.upper == "FOR" and cursor.ahead().upper == "SYSTEM_TIME":
        raise _Doubt
    return QuerySource(table, name, outer)
