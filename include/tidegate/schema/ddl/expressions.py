"""Expressions of defaults and generated columns in one spelling, and whether two of them are the
same.

In:  an expression's text, from a statement or from information_schema.
Out: the text, spelled so that no sql_mode changes its meaning. For a comparison: its form without
     what servers add or omit (parentheses, quotes, capitals, synonyms). An unknown form is compared
     token by token: a false difference holds a table, but an unseen one would leave wrong rows in
     it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from tidegate.errors import DDLError
from tidegate.schema.ddl.tokens import PIPES_AS_CONCAT, Cursor, Token, TokenKind, tokens
from tidegate.schema.model.server import ServerVersion

# Operators, ordered by how tightly they bind.
_LEVELS: Final = (
    ("or",), ("xor",), ("and", "&&"),
    ("<=>", ">=", "<=", "<>", "!=", "=", ">", "<", "is", "like", "in", "between", "regexp", "rlike", "not"),
    ("|",), ("&",), ("<<", ">>"), ("-", "+"), ("*", "/", "div", "%", "mod"), ("^",), ("||",), ("->>", "->", "collate"),
)  # fmt: skip
_LEVEL: Final = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators}
_MARKS: Final = sorted((operator for operator in _LEVEL if not operator.isalpha()), key=len, reverse=True)
_COMPARES: Final = _LEVEL["="]
_TIGHT: Final = _LEVEL["^"]
_SYNONYMS: Final = {
    "now": "current_timestamp", "localtime": "current_timestamp", "localtimestamp": "current_timestamp",
    "current_date": "curdate", "current_time": "curtime", "mid": "substr", "substring": "substr", "ceil": "ceiling",
    "power": "pow", "lcase": "lower", "ucase": "upper", "octet_length": "length", "day": "dayofmonth",
    "character_length": "char_length", "sha1": "sha", "schema": "database", "&&": "and", "!=": "<>", "mod": "%",
    "rlike": "regexp", "->": "json_extract",
}  # fmt: skip
_DATE_ARITHMETIC: Final = {"date_add": "+", "adddate": "+", "date_sub": "-", "subdate": "-"}
_BARE: Final = frozenset({"current_timestamp", "current_date", "current_time", "localtime", "localtimestamp"})
# Servers write the character set of a string before it: mostly that of the session.
_INTRODUCERS: Final = frozenset({"_utf8mb4", "_utf8mb3", "_utf8", "_latin1", "_ascii"})
_DEPTH_MAX: Final = 100
_ANY_SERVER: Final = ServerVersion(mariadb=False, number=0)  # a spelled text doesn't depend on the server


def spelled(text: str, sql_mode: int, server: ServerVersion) -> str:
    """The expression with strings in single quotes, names bare or in backticks, and `||` only for
    CONCAT.
    """
    try:
        all_tokens = tokens(text, sql_mode, server)
    except DDLError:
        return text
    pieces: list[str] = []
    end = at = 0
    apart = False
    while at < len(all_tokens):
        token, after = all_tokens[at], all_tokens[at + 1] if at + 1 < len(all_tokens) else None
        at += 1
        if after is not None and after.text == "." and token.kind in (TokenKind.WORD, TokenKind.QUOTED):
            apart = apart or token.start > end
            end, at = after.end, at + 1  # the table's name doesn't matter
            continue
        gap = " " if pieces and (apart or token.start > end) else ""
        apart = False
        if text.startswith("||", token.start) and token.kind == TokenKind.MARK:
            pieces.append(" ||" if sql_mode & PIPES_AS_CONCAT else " or")
            end, at = -1, at + 1
        else:
            pieces.append(gap + _spelled(token))
            end = token.end
    return "".join(pieces)


def _spelled(token: Token) -> str:
    if token.kind == TokenKind.QUOTED:
        return "`" + token.text.replace("`", "``") + "`"
    if token.kind == TokenKind.STRING:
        return "'" + token.text.replace("\\", "\\\\").replace("'", "''") + "'"
    return token.text


def same_expression(was: str, now: str, names: Mapping[str, str]) -> bool:
    """Whether two spelled expressions are the same. names: columns renamed between them, old name
    in lower case -> new name.
    """
    return was == now or _form(was, names) == _form(now, {})


def read_expression(text: str) -> Any:
    """A spelled expression as nested tuples: ("column", name in lower case), ("text", text),
    ("number", text), or an operator or function in lower case with its operands. Raises
    DDLError.
    """
    return _read(text, {})


def _read(text: str, names: Mapping[str, str]) -> Any:
    reader = _Reader(Cursor(text, PIPES_AS_CONCAT, _ANY_SERVER), names)
    tree = reader.expression(0)
    if not reader.cursor.ended:
        raise reader.cursor.lost("an operator")
    return tree


def _form(text: str, names: Mapping[str, str]) -> Any:
    try:
        return _read(text, names)
    except DDLError:
        return "unread", text


def _truth(node: Any) -> Any:
    """In a condition, servers write `x <> 0`, or `0 <> x`, for x."""
    zero = ("number", "0")
    if node[0] != "<>" or zero not in node:
        return node
    return node[1] if node[2] == zero else node[2]


class _Reader:
    """Reads an expression as nested tuples."""

    def __init__(self, cursor: Cursor, names: Mapping[str, str]) -> None:
        self.cursor = cursor
        self._names = names
        self._depth = 0

    def expression(self, level: int) -> Any:
        """An expression whose operators bind at least as tightly as level."""
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise self.cursor.lost("an expression of less depth")
        left = self._operand()
        while True:
            operator = self._operator()
            if not operator or _LEVEL[operator] < level:
                self._depth -= 1
                return left
            self.cursor.at += 1 if operator.isalpha() else len(operator)
            left = self._joined(left, operator)

    def _operator(self) -> str:
        token = self.cursor.now
        if token.kind == TokenKind.WORD:
            word = token.text.lower()
            return word if word in _LEVEL else ""
        if token.kind != TokenKind.MARK:
            return ""
        return next((mark for mark in _MARKS if self.cursor.sql.startswith(mark, token.start)), "")

    def _joined(self, left: Any, operator: str) -> Any:
        level = _LEVEL[operator]
        if operator == "not":  # NOT IN, NOT LIKE, NOT BETWEEN
            return "not", self._joined(left, self.cursor.next().text.lower())
        if operator == "between":
            low = self.expression(_COMPARES + 1)
            if not self.cursor.take("AND"):
                raise self.cursor.lost("AND")
            return operator, left, low, self.expression(_COMPARES + 1)
        right = self.expression(level + 1)
        if operator in ("and", "&&", "or", "xor"):
            left, right = _truth(left), _truth(right)
        if operator == "in" and right[0] != "list":
            operator = "="
        if operator == "->>":
            return "json_unquote", ("json_extract", left, right)
        if operator == "||":
            return "concat", left, right
        return _SYNONYMS.get(operator, operator), left, right

    def _operand(self) -> Any:
        cursor, token = self.cursor, self.cursor.next()
        if token.kind == TokenKind.STRING:
            return "text", token.text
        if token.kind == TokenKind.NUMBER:
            return "number", token.text
        if token.kind == TokenKind.QUOTED:
            return self._column(token.text)
        if token.kind == TokenKind.MARK:
            return self._marked(token)
        word = token.text.lower()
        if word == "case":
            return self._case()
        if word in ("not", "binary", "interval"):
            inner = self.expression(_COMPARES if word == "not" else _TIGHT)
            return (word, inner, cursor.next().text.lower()) if word == "interval" else (word, inner)
        if cursor.now.kind == TokenKind.STRING:  # _utf8mb4'x', DATE '2020-01-01'
            text = "text", cursor.next().text
            return text if word in _INTRODUCERS else (word, text)
        if cursor.take_mark("("):
            return self._function(word)
        return (_SYNONYMS.get(word, word),) if word in _BARE else self._column(word)

    def _marked(self, token: Token) -> Any:
        if token.text == "(":
            arguments = self._arguments()
            return arguments[0] if len(arguments) == 1 else ("list", *arguments)
        if token.text not in ("-", "+", "~", "!"):
            raise self.cursor.lost("an operand")
        inner = self.expression(_TIGHT)
        return inner if token.text == "+" else (token.text, inner)

    def _function(self, word: str) -> Any:
        arguments = self._arguments()
        if word in _DATE_ARITHMETIC and len(arguments) == 2 and arguments[1][0] == "interval":
            return _DATE_ARITHMETIC[word], *arguments
        return _SYNONYMS.get(word, word), *arguments

    def _column(self, name: str) -> Any:
        return "column", self._names.get(name.lower(), name).lower()

    def _arguments(self) -> list[Any]:
        """Arguments up to the closing parenthesis, which is read, too. Words between them, as in
        CAST(x AS CHAR(5)), count as they are.
        """
        cursor, arguments = self.cursor, []
        while not cursor.take_mark(")"):
            if cursor.ended:
                raise cursor.lost("`)`")
            if cursor.take_any("AS", "USING"):
                while not (cursor.ended or cursor.is_mark(")")):
                    start = cursor.now
                    cursor.skip_one()
                    arguments.append(cursor.sql[start.start : cursor.tokens[cursor.at - 1].end].lower())
            elif word := cursor.take_any("FROM", "FOR", "DISTINCT"):
                arguments.append(word)
            elif not cursor.take_mark(","):
                arguments.append(self.expression(0))
        return arguments

    def _case(self) -> Any:
        parts: list[Any] = ["case"]
        while not self.cursor.take("END"):
            parts.append(self.cursor.take_any("WHEN", "THEN", "ELSE") or self.expression(0))
        return tuple(parts)


_NAME: Final = re.compile(
    r"'(?:[^'\\]++|\\.|'')*+'|`(?P<quoted>(?:[^`]++|``)*+)`"
    r"|(?<![\w$@])(?P<bare>[A-Za-z_$\x80-\U0010ffff][0-9A-Za-z_$\x80-\U0010ffff]*+)(?!\s*[('])",
    re.DOTALL,
)
_UNITS: Final = frozenset(
    {"microsecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "day_hour", "year_month"}
)


def renamed(expression: str, names: Mapping[str, str]) -> str:
    """An expression with the present names of columns, in backticks. names: a name in lower case ->
    the name.
    """
    low = expression.lower()
    if low.startswith(("next ", "previous ")):
        return expression  # VALUE FOR a sequence
    no_names = {"end"} if "case" in low else set()
    if "interval" in low or "extract(" in low:
        no_names |= _UNITS

    def new(match: re.Match[str]) -> str:
        name = match["bare"] or (match["quoted"] or "").replace("``", "`")
        now = names.get(name.lower()) if name else None
        if now is None or (match["bare"] and (name.upper() in _RESERVED or name.lower() in no_names)):
            return match[0]
        return "`" + now.replace("`", "``") + "`"

    return _NAME.sub(new, expression)


# Words of expressions that can't be a column's name without quotes.
_RESERVED: Final = frozenset(
    {
        "AND", "AS", "BETWEEN", "BINARY", "CASE", "CHAR", "COLLATE", "CURRENT_DATE", "CURRENT_TIME",
        "CURRENT_TIMESTAMP", "CURRENT_USER", "DIV", "ELSE", "FALSE", "FOR", "FROM", "IN", "INTERVAL", "IS", "LIKE",
        "LOCALTIME", "LOCALTIMESTAMP", "MOD", "NOT", "NULL", "OR", "REGEXP", "RLIKE", "THEN", "TRUE", "UNSIGNED",
        "USING", "WHEN", "XOR",
    }
)  # fmt: skip
