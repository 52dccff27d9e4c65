"""Expressions of defaults and generated columns, as a server writes them back.

In:  an expression's text, the sql_mode it was written under, the server.
Out: the text that information_schema shows: names in backticks, functions in small letters, MariaDB's parentheses only
     where they are needed and MySQL's around every operator. What isn't understood stays as it is written: no decision
     hangs on it, it is shown, and compared with another text of the same origin.

Forms seen on MariaDB 10.11 and 11.4 and MySQL 9.7.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from tidegate.errors import DDLError
from tidegate.schema.ddl.tokens import PIPES_AS_CONCAT, Cursor, TokenKind
from tidegate.schema.model.server import ServerVersion

# Operators by how tightly they bind; the comparisons don't chain.
_LEVELS: Final = (
    ("or", "||"), ("xor",), ("and", "&&"),
    ("=", "<=>", ">=", "<=", "<>", "!=", ">", "<", "is", "like", "in", "between", "regexp", "rlike"),
    ("|",), ("&",), ("<<", ">>"), ("-", "+"), ("*", "/", "div", "%", "mod"), ("^",),
)  # fmt: skip
OPERATOR_LEVEL: Final = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators}
_COMPARES: Final = OPERATOR_LEVEL["="]
_ATOM: Final = len(_LEVELS) + 1
_BOOLEAN: Final = frozenset({0, 1, 2, _COMPARES})
_SHOWN: Final = {"!=": "<>", "||": "or", "&&": "and", "%": "MOD", "mod": "MOD", "div": "DIV"}
OPERATOR_MARKS: Final = (
    "<=>",
    "<=",
    ">=",
    "<>",
    "!=",
    "<<",
    ">>",
    "||",
    "&&",
    "=",
    "<",
    ">",
    "|",
    "&",
    "-",
    "+",
    "*",
    "/",
    "%",
    "^",
)
_SYNONYMS: Final = {
    "now": "current_timestamp", "localtime": "current_timestamp", "localtimestamp": "current_timestamp",
    "current_date": "curdate", "current_time": "curtime", "mid": "substr", "substring": "substr", "ceil": "ceiling",
    "power": "pow", "lcase": "lower", "ucase": "upper", "session_user": "user", "system_user": "user",
    "schema": "database", "day": "dayofmonth", "character_length": "char_length", "sha1": "sha",
}  # fmt: skip
_MARIADB: Final = {
    "length": "octet_length", "lower": "lcase", "lcase": "lcase", "upper": "ucase", "ucase": "ucase",
}  # fmt: skip
_MYSQL: Final = {"octet_length": "length", "current_timestamp": "now"}
_BARE: Final = frozenset({"current_timestamp", "current_date", "current_time", "current_user", "localtime", "now"})
_BARE_MORE: Final = frozenset({"localtimestamp", "current_role"})
_UNITS: Final = frozenset(
    {"microsecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "day_hour", "year_month"}
)


class _Node(NamedTuple):
    text: str
    level: int = _ATOM


class _Unknown(Exception):  # noqa: N818  it ends the reading of one expression, nobody else sees it
    pass


def server_text(written: str, sql_mode: int, server: ServerVersion, *, default: bool = False) -> str:
    """The expression as the server shows it; as written when it isn't understood.

    default: it is a column's default; an operator's then has parentheses around it.
    """
    try:
        reader = _Reader(Cursor(written, sql_mode, server))
        node = reader.expression(0)
    except (_Unknown, DDLError, RecursionError):
        return written
    if not reader.cursor.ended:
        return written
    return f"({node.text})" if default and server.mariadb and node.level != _ATOM else node.text


class _Reader:
    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.mariadb = cursor.server.mariadb
        self.depth = 0

    def expression(self, level: int) -> _Node:
        """An expression whose operators bind at least as tightly as level."""
        self.depth += 1
        if self.depth > 100:
            raise _Unknown
        left = self._unary()
        while True:
            operator, tokens = self._operator()
            if not operator or OPERATOR_LEVEL[operator] < level:
                self.depth -= 1
                return left
            self.cursor.at += tokens
            left = self._joined(left, operator)

    def _operator(self) -> tuple[str, int]:
        """(operator, its number of tokens) that stands here; ("", 0) for none."""
        cursor = self.cursor
        token = cursor.now
        word = token.text.lower() if token.kind == TokenKind.WORD else ""
        if word in OPERATOR_LEVEL:
            return word, 1
        if token.kind != TokenKind.MARK:
            return "", 0
        found = next((mark for mark in OPERATOR_MARKS if cursor.sql.startswith(mark, token.start)), "")
        return found, len(found)

    def _joined(self, left: _Node, operator: str) -> _Node:
        level = OPERATOR_LEVEL[operator]
        if level == _COMPARES and operator.isalpha():
            return self._wrapped(self._predicate(left, operator), level)
        if operator in ("+", "-") and self.cursor.now.upper == "INTERVAL":
            return self._interval(left, operator)
        right = self.expression(level + 1)
        if operator == "||" and self.cursor.sql_mode & PIPES_AS_CONCAT:
            return _Node(f"concat({left.text},{right.text})")
        if operator in ("or", "||", "and", "&&") or (operator == "xor" and not self.mariadb):
            left, right = self._truth(left), self._truth(right)
        shown = _SHOWN.get(operator, operator)
        if not self.mariadb and shown == "MOD":
            shown = "%"
        text = f"{self._in(left, level)} {shown} {self._in(right, level + 1)}"
        return self._wrapped(text, level)

    def _wrapped(self, text: str, level: int) -> _Node:
        return _Node(text if self.mariadb else f"({text})", level)

    def _in(self, node: _Node, level: int) -> str:
        return node.text if node.level >= level or not self.mariadb else f"({node.text})"

    def _truth(self, node: _Node) -> _Node:
        """In a condition a server says of a number that it isn't 0."""
        if node.level in _BOOLEAN:
            return node
        return self._compared(node, "<>")

    def _compared(self, node: _Node, operator: str) -> _Node:
        """With 0, as each server writes it."""
        if self.mariadb:
            return _Node(f"{self._in(node, _COMPARES)} {operator} 0", _COMPARES)
        return _Node(f"(0 {operator} {node.text})", _COMPARES)

    def _predicate(self, left: _Node, operator: str) -> str:
        cursor, text = self.cursor, self._in(left, _COMPARES + 1)
        if operator == "is":
            negated = " not" if cursor.take("NOT") else ""
            if not cursor.take("NULL"):
                raise _Unknown
            return f"{text} is{negated} null"
        if operator == "between":
            low = self.expression(_COMPARES + 1)
            if not cursor.take("AND"):
                raise _Unknown
            return f"{text} between {low.text} and {self.expression(_COMPARES + 1).text}"
        if operator == "in":
            items = self._arguments()
            if len(items) == 1:
                return f"{text} = {items[0]}"
            return f"{text} in ({','.join(items)})"
        if operator == "like":
            return f"{text} like {self.expression(_COMPARES + 1).text}"
        if operator == "regexp" and self.mariadb:
            return f"{text} regexp {self.expression(_COMPARES + 1).text}"
        raise _Unknown

    def _interval(self, left: _Node, operator: str) -> _Node:
        self.cursor.take("INTERVAL")
        count = self.expression(_COMPARES + 1)
        unit = self.cursor.next().text.lower()
        if unit not in _UNITS:
            raise _Unknown
        level = OPERATOR_LEVEL["+"]
        return self._wrapped(f"{self._in(left, level)} {operator} interval {count.text} {unit}", level)

    def _unary(self) -> _Node:
        if self.cursor.take_mark("-"):
            node = self.expression(_ATOM - 1)
            return _Node(f"-{self._in(node, _ATOM)}" if self.mariadb else f"-({node.text})")
        if self.cursor.take_mark("+"):
            return self.expression(_ATOM - 1)
        if self.cursor.take_mark("("):
            node = self.expression(0)
            self._close()
            return node
        return self._arrow(self._atom())

    def _arrow(self, node: _Node) -> _Node:
        """`c -> '$.x'` and `c ->> '$.x'`."""
        cursor = self.cursor
        if cursor.sql.startswith("->", cursor.now.start) and cursor.now.kind == TokenKind.MARK:
            unquote = cursor.sql.startswith("->>", cursor.now.start)
            cursor.at += 3 if unquote else 2
            text = f"json_extract({node.text},{self._atom().text})"
            return _Node(f"json_unquote({text})" if unquote else text)
        return node

    def _close(self) -> None:
        if not self.cursor.take_mark(")"):
            raise _Unknown

    def _arguments(self) -> list[str]:
        cursor = self.cursor
        if not cursor.take_mark("("):
            raise _Unknown
        if cursor.take_mark(")"):
            return []
        found = [self.expression(0).text]
        while cursor.take_mark(","):
            found.append(self.expression(0).text)
        self._close()
        return found

    def _atom(self) -> _Node:
        cursor = self.cursor
        token = cursor.next()
        if token.kind == TokenKind.STRING:
            return _Node(self._string(token.text))
        if token.kind == TokenKind.NUMBER:
            return _Node(token.text)
        if token.kind == TokenKind.QUOTED:
            return self._column(token.text)
        if token.kind != TokenKind.WORD:
            raise _Unknown
        word = token.text.lower()
        if cursor.is_mark("("):
            return self._function(word)
        if word in _BARE or word in _BARE_MORE:
            return _Node(f"{self._name(word)}()")
        if word in ("null", "true", "false"):
            shown = {"null": "NULL", "true": "1", "false": "0"}[word]
            return _Node(shown if self.mariadb or word == "null" else word)
        if word in ("case", "not", "binary", "interval", "exists", "date", "time", "timestamp", "x", "b", "n"):
            if word == "case":
                return self._case()
            if word == "not":
                return self._not()
            if cursor.now.kind == TokenKind.STRING or word in ("not", "binary", "interval", "exists"):
                raise _Unknown
        if word[0] == "_" and cursor.now.kind == TokenKind.STRING:
            raise _Unknown
        return self._column(token.text)

    def _column(self, name: str) -> _Node:
        while self.cursor.take_mark("."):
            name = self.cursor.name()
        return _Node("`" + name.replace("`", "``") + "`")

    def _string(self, text: str) -> str:
        if not text.isascii() or "\\" in text:
            raise _Unknown
        shown = text.replace("'", "\\'" if self.mariadb else "\\\\\\'")
        return f"'{shown}'" if self.mariadb else f"_utf8mb4\\'{shown}\\'"

    def _name(self, word: str) -> str:
        word = _SYNONYMS.get(word, word)
        return (_MARIADB if self.mariadb else _MYSQL).get(word, word)

    def _function(self, word: str) -> _Node:
        if word in ("date_add", "date_sub", "adddate", "subdate"):
            return self._date_arithmetic("+" if word in ("date_add", "adddate") else "-")
        if word in ("cast", "convert", "extract", "position", "char", "group_concat", "get_format"):
            raise _Unknown
        if word in ("timestampdiff", "timestampadd"):
            return self._with_unit(word)
        items = self._arguments()
        if word in ("mod", "datediff", "instr", "isnull"):
            return self._rewritten(word, items)
        return _Node(f"{self._name(word)}({','.join(items)})")

    def _rewritten(self, word: str, items: list[str]) -> _Node:
        """Functions that a server keeps as something else."""
        if len(items) != (1 if word == "isnull" else 2) or any(" " in item for item in items):
            raise _Unknown
        if word == "isnull":
            return self._wrapped(f"{items[0]} is null", _COMPARES)
        if word == "instr":
            return _Node(f"locate({items[1]},{items[0]})")
        if word == "datediff":
            return self._wrapped(f"to_days({items[0]}) - to_days({items[1]})", OPERATOR_LEVEL["-"])
        return self._wrapped(f"{items[0]} {'MOD' if self.mariadb else '%'} {items[1]}", OPERATOR_LEVEL["%"])

    def _with_unit(self, word: str) -> _Node:
        self.cursor.take_mark("(")
        unit = self.cursor.next().text.upper()
        if unit.lower() not in _UNITS or not self.cursor.take_mark(","):
            raise _Unknown
        first = self.expression(0).text
        if not self.cursor.take_mark(","):
            raise _Unknown
        second = self.expression(0).text
        self._close()
        return _Node(f"{word}({unit},{first},{second})")

    def _not(self) -> _Node:
        node = self.expression(_COMPARES)
        if node.level in _BOOLEAN:  # the server turns the condition round
            raise _Unknown
        return self._compared(node, "=")

    def _date_arithmetic(self, operator: str) -> _Node:
        cursor = self.cursor
        cursor.take_mark("(")
        left = self.expression(0)
        if not cursor.take_mark(",") or cursor.now.upper != "INTERVAL":
            raise _Unknown
        node = self._interval(left, operator)
        self._close()
        return node

    def _case(self) -> _Node:
        cursor = self.cursor
        words = ["case"]
        if cursor.now.upper != "WHEN":
            words.append(self.expression(0).text)
        while cursor.take("WHEN"):
            words += ["when", self.expression(0).text]
            if not cursor.take("THEN"):
                raise _Unknown
            words += ["then", self.expression(0).text]
        if cursor.take("ELSE"):
            words += ["else", self.expression(0).text]
        if not cursor.take("END"):
            raise _Unknown
        words.append("end")
        return _Node(" ".join(words)) if self.mariadb else _Node(f"({' '.join(words)})")


_NAME: Final = re.compile(r"'(?:[^'\\]++|\\.|'')*+'|`((?:[^`]++|``)*+)`", re.DOTALL)


def renamed(expression: str, names: Mapping[str, str]) -> str:
    """With the columns' names of now. names: a name in small letters -> the name."""

    def new(found: re.Match[str]) -> str:
        name = names.get((found[1] or "").replace("``", "`").lower()) if found[1] else None
        return found[0] if name is None else "`" + name.replace("`", "``") + "`"

    return _NAME.sub(new, expression) if "`" in expression else expression
