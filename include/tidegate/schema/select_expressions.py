"""Expressions of a select list, as trees.

In:  a cursor at an expression.
Out: an Expression: what is called on what. What isn't certain to be read as the server reads it is Doubt.

Precedence: MariaDB Knowledge Base, "Operator Precedence".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tidegate.errors import DDLError
from tidegate.schema.ddl.expressions import OPERATOR_LEVEL, OPERATOR_MARKS
from tidegate.schema.ddl.tokens import PIPES_AS_CONCAT, Cursor, Kind

_NOT_LEVEL: Final = OPERATOR_LEVEL["="]
_UNARY_LEVEL: Final = OPERATOR_LEVEL["^"] + 1
_DEPTH_MAX: Final = 60
# Functions that are called without parentheses.
_BARE: Final = frozenset(
    {"CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "LOCALTIME", "LOCALTIMESTAMP", "UTC_DATE", "UTC_TIME"}
    | {"UTC_TIMESTAMP"}
)
_DATED: Final = {"DATE": "date", "TIME": "time", "TIMESTAMP": "datetime"}
# Words that begin or join something else than a column's name.
_RESERVED: Final = frozenset(
    {"SELECT", "ROW", "VALUES", "DISTINCT", "ALL", "ANY", "SOME", "MATCH", "FROM", "WHERE", "AS", "ON", "THEN", "WHEN"}
    | {"ELSE", "END", "USING", "SEPARATOR", "ORDER", "GROUP", "LIMIT", "UNION", "CURRENT_USER", "CURRENT_ROLE"}
    | {"NEXT", "PREVIOUS", "DEFAULT"}
)
_AGGREGATES: Final = frozenset({"count", "sum", "avg", "min", "max"})


class Doubt(Exception):  # noqa: N818  it ends the reading of one query, nobody else sees it
    """The server may read it in another way than we do."""


@dataclass(frozen=True, slots=True)
class Expression:
    """name: a function or an operator in small letters; "field", or "literal". literal: its kind: int, decimal,
    double, string, hex, null, bool, date, time, datetime. text: a column's or variable's name, a literal's text, the
    type of a CAST, the unit of an INTERVAL. source: the table that a column is said to be of, or "".
    """

    name: str
    arguments: tuple[Expression, ...] = ()
    text: str = ""
    source: str = ""
    literal: str = ""


def _literal(kind: str, text: str = "") -> Expression:
    return Expression("literal", text=text, literal=kind)


def read_expression(cursor: Cursor) -> Expression:
    """The cursor stands behind it afterwards. Raises Doubt, DDLError."""
    return _Reader(cursor).expression(0)


class _Reader:
    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.depth = 0

    def expression(self, level: int) -> Expression:
        self.depth += 1
        if self.depth > _DEPTH_MAX:
            raise Doubt
        left = self._prefix()
        while True:
            operator, tokens, negated = self._operator()
            if not operator or OPERATOR_LEVEL[operator] < level:
                self.depth -= 1
                return left
            self.cursor.at += tokens
            left = self._joined(left, operator)
            if negated:
                left = Expression("not", (left,))

    def _operator(self) -> tuple[str, int, bool]:
        """(operator that stands here, its tokens, whether NOT stands before it); "" for none."""
        token = self.cursor.now
        if token.kind == Kind.WORD:
            word = token.text.lower()
            if word == "not" and self.cursor.ahead().text.lower() in ("in", "like", "between", "regexp", "rlike"):
                return self.cursor.ahead().text.lower(), 2, True
            return (word, 1, False) if word in OPERATOR_LEVEL else ("", 0, False)
        if token.kind != Kind.MARK:
            return "", 0, False
        found = next((mark for mark in OPERATOR_MARKS if self.cursor.sql.startswith(mark, token.start)), "")
        if found == "-" and self.cursor.sql.startswith("->", token.start):
            raise Doubt
        return found, len(found), False

    def _joined(self, left: Expression, operator: str) -> Expression:
        cursor, level = self.cursor, OPERATOR_LEVEL[operator]
        if operator == "||" and cursor.sql_mode & PIPES_AS_CONCAT:
            raise Doubt
        if operator == "is":
            cursor.take("NOT")
            if not cursor.take_any("NULL", "TRUE", "FALSE", "UNKNOWN"):
                raise Doubt
            return Expression("is", (left,))
        if operator == "between":
            low = self.expression(level + 1)
            if not cursor.take("AND"):
                raise Doubt
            return Expression("between", (left, low, self.expression(level + 1)))
        if operator == "in":
            return Expression("in", (left, *self._arguments()))
        if operator == "like":
            pattern = self.expression(level + 1)
            if cursor.take("ESCAPE"):
                cursor.next()
            return Expression("like", (left, pattern))
        if operator in ("+", "-") and cursor.take("INTERVAL"):
            return self._interval(left, level)
        return Expression(operator, (left, self.expression(level + 1)))

    def _interval(self, left: Expression, level: int) -> Expression:
        count = self.expression(level + 1)
        return Expression("date_add", (left, count), text=self.cursor.next().text.lower())

    def _prefix(self) -> Expression:
        cursor = self.cursor
        if cursor.take("NOT"):
            return Expression("not", (self.expression(_NOT_LEVEL),))
        for mark, name in (("!", "not"), ("~", "~"), ("-", "neg")):
            if cursor.take_mark(mark):
                return Expression(name, (self.expression(_UNARY_LEVEL),))
        if cursor.take_mark("+"):
            return self.expression(_UNARY_LEVEL)
        if cursor.take("BINARY"):
            return Expression("cast", (self.expression(_UNARY_LEVEL),), text="binary")
        found = self._atom()
        while cursor.take("COLLATE"):
            found = Expression("collate", (found,), text=cursor.name().lower())
        return found

    def _atom(self) -> Expression:
        cursor = self.cursor
        if cursor.take_mark("("):
            found = self.expression(0)
            if not cursor.take_mark(")"):
                raise Doubt
            return found
        if cursor.is_mark("@"):
            return self._variable()
        token = cursor.next()
        if token.kind == Kind.NUMBER:
            kind = "double" if "e" in token.text.lower() else "decimal" if "." in token.text else "int"
            return _literal(kind, token.text)
        if token.kind == Kind.STRING:
            return self._string(token.text)
        if token.kind == Kind.QUOTED:
            return self._field(token.text)
        if token.kind != Kind.WORD:
            raise Doubt
        return self._word(token.text)

    def _string(self, text: str) -> Expression:
        if self.cursor.now.kind == Kind.STRING:
            raise Doubt  # 'a' 'b' is one string
        return _literal("string", text)

    def _word(self, word: str) -> Expression:
        cursor, upper = self.cursor, word.upper()
        if cursor.now.kind == Kind.STRING:
            if upper in _DATED:
                return _literal(_DATED[upper], cursor.next().text)
            if upper == "X":
                return _literal("hex", cursor.next().text)
            raise Doubt  # N'', B'', _charset''
        if upper == "NULL":
            return _literal("null")
        if upper in ("TRUE", "FALSE"):
            return _literal("bool", upper)
        if word.startswith(("0x", "0X")):
            return _literal("hex", word[2:])
        if word[0] in "0123456789" or upper in _RESERVED:
            raise Doubt
        if cursor.is_mark("("):
            return self._function(word.lower())
        if upper in _BARE:
            return Expression(word.lower())
        if upper == "CASE":
            return self._case()
        return self._field(word)

    def _field(self, name: str) -> Expression:
        source = ""
        while self.cursor.take_mark("."):
            source, name = name, self.cursor.name()
        return Expression("field", text=name, source=source)

    def _variable(self) -> Expression:
        """`@name := value`; what a variable alone holds, the statement doesn't say."""
        cursor = self.cursor
        cursor.next()
        name = cursor.name()
        if not (cursor.take_mark(":") and cursor.take_mark("=")):
            raise Doubt
        return Expression(":=", (self.expression(0),), text=name)

    def _case(self) -> Expression:
        """Arguments: "results", with a NULL for an ELSE that isn't there; then what is compared."""
        cursor = self.cursor
        compared = [] if cursor.now.upper == "WHEN" else [self.expression(0)]
        results = []
        while cursor.take("WHEN"):
            compared.append(self.expression(0))
            if not cursor.take("THEN"):
                raise Doubt
            results.append(self.expression(0))
        results.append(self.expression(0) if cursor.take("ELSE") else _literal("null"))
        if not cursor.take("END"):
            raise Doubt
        return Expression("case", (Expression("results", tuple(results)), *compared))

    def _arguments(self, *, distinct: bool = False) -> list[Expression]:
        cursor = self.cursor
        if not cursor.take_mark("("):
            raise Doubt
        if cursor.take_mark(")"):
            return []
        if cursor.take("DISTINCT") and not distinct:
            raise Doubt
        found = [self.expression(0)]
        while cursor.take_mark(","):
            found.append(self.expression(0))
        self._close()
        return found

    def _close(self) -> None:
        if not self.cursor.take_mark(")"):
            raise Doubt

    def _function(self, name: str) -> Expression:
        cursor = self.cursor
        if name in ("exists", "count", "group_concat"):
            cursor.skip_group()
            found = Expression(name)
        elif name in ("cast", "convert"):
            found = self._cast(name)
        elif name in ("date_add", "date_sub", "adddate", "subdate"):
            found = self._date_arithmetic()
        elif name in ("extract", "timestampadd", "timestampdiff"):
            found = self._with_unit(name)
        else:
            found = Expression(name, tuple(self._arguments(distinct=name in _AGGREGATES)))
        if cursor.take("OVER"):
            cursor.skip_group()
            found = Expression("over", (found,))
        return found

    def _cast(self, name: str) -> Expression:
        cursor = self.cursor
        cursor.next()
        value = self.expression(0)
        if cursor.take("USING"):
            found = Expression("using", (value,), text=cursor.name().lower())
            self._close()
            return found
        if not (cursor.take("AS") if name == "cast" else cursor.take_mark(",")):
            raise Doubt
        start = cursor.now.start
        while not (cursor.ended or cursor.is_mark(")")):
            cursor.skip_one()
        kind = cursor.sql[start : cursor.now.start].strip().lower()
        self._close()
        return Expression("cast", (value,), text=kind)

    def _date_arithmetic(self) -> Expression:
        cursor = self.cursor
        cursor.next()
        left = self.expression(0)
        if not cursor.take_mark(","):
            raise Doubt
        if cursor.take("INTERVAL"):
            found = self._interval(left, 0)
        else:
            found = Expression("date_add", (left, self.expression(0)), text="day")
        self._close()
        return found

    def _with_unit(self, name: str) -> Expression:
        cursor = self.cursor
        cursor.next()
        unit = cursor.next().text.lower()
        if name == "extract":
            if not cursor.take("FROM"):
                raise Doubt
            found = Expression("extract", (self.expression(0),), text=unit)
            self._close()
            return found
        if not cursor.take_mark(","):
            raise Doubt
        first = self.expression(0)
        if not cursor.take_mark(","):
            raise Doubt
        second = self.expression(0)
        self._close()
        if name == "timestampadd":
            return Expression("date_add", (second, first), text=unit)
        return Expression(name, (first, second), text=unit)


def read_or_doubt(cursor: Cursor) -> Expression:
    """read_expression, with all that can go wrong as Doubt."""
    try:
        return read_expression(cursor)
    except (DDLError, RecursionError) as error:
        raise Doubt from error
