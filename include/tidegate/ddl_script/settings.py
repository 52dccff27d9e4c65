"""The meaning of SET in a script: sql_mode, and variables that its value is built from.

In:  a cursor after SET.
Out: settings for the next statements. A value that the script doesn't give is the server's default.
"""

from __future__ import annotations

import re
from typing import Final

from tidegate.errors import DDLError
from tidegate.schema.ddl.tokens import (
    ANSI_QUOTES,
    MAXDB,
    NO_BACKSLASH_ESCAPES,
    ORACLE,
    PIPES_AS_CONCAT,
    REAL_AS_FLOAT,
    Cursor,
    TokenKind,
)

_ANSI: Final = ANSI_QUOTES | PIPES_AS_CONCAT
_MODES: Final = {
    "ANSI": _ANSI | REAL_AS_FLOAT,
    "ANSI_QUOTES": ANSI_QUOTES,
    "DB2": _ANSI,
    "MAXDB": _ANSI | MAXDB,
    "MSSQL": _ANSI,
    "NO_BACKSLASH_ESCAPES": NO_BACKSLASH_ESCAPES,
    "ORACLE": _ANSI | ORACLE,
    "PIPES_AS_CONCAT": PIPES_AS_CONCAT,
    "POSTGRESQL": _ANSI,
    "REAL_AS_FLOAT": REAL_AS_FLOAT,
}
# A word of an expression, as far as REPLACE and CONCAT need it.
_DEFAULT: Final = "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
_DEPTH_MAX: Final = 20  # of nested functions
_OTHERS: Final = frozenset({"GLOBAL", "PERSIST", "PERSIST_ONLY"})  # which leave this session as it is
_SCOPES: Final = _OTHERS | {"SESSION", "LOCAL"}


class Settings:
    """sql_mode: its bits, as schema/ddl/tokens.py names them."""

    def __init__(self) -> None:
        self.sql_mode = mode_bits(_DEFAULT)
        self._mode_text = _DEFAULT
        self._variables: dict[str, str] = {}

    def follow(self, cursor: Cursor) -> None:
        """Follow SET a = x, @b = y, ...; other variables are passed over."""
        while not cursor.ended:
            scope, name, is_user = self._target(cursor)
            if not (cursor.take_mark(":") | cursor.take_mark("=")):
                _skip(cursor)
            else:
                cursor.take_mark("=")
                before = cursor.at
                value = self._value(cursor)
                _skip(cursor)
                self._assign(scope, name, value, is_user=is_user, is_default=cursor.tokens[before].upper == "DEFAULT")
            if not cursor.take_mark(","):
                return

    def _target(self, cursor: Cursor) -> tuple[str, str, bool]:
        """(scope, name, whether it is a user's variable): `sql_mode`, `GLOBAL sql_mode`, `@@session.sql_mode`, `@x`."""
        at = 0
        while cursor.take_mark("@"):
            at += 1
        first = cursor.next()
        if at == 2 and cursor.take_mark("."):
            return first.upper, cursor.next().text.lower(), False
        if not at and first.upper in _SCOPES and not cursor.is_mark("="):
            return first.upper, cursor.next().text.lower(), False
        return "", first.text.lower(), at == 1

    def _assign(self, scope: str, name: str, value: str | None, *, is_user: bool, is_default: bool) -> None:
        if is_user:
            if value is None:
                self._variables.pop(name, None)
            else:
                self._variables[name] = value
        elif name == "sql_mode" and scope not in _OTHERS:
            self._mode_text = _DEFAULT if value is None or is_default else value
            self.sql_mode = mode_bits(self._mode_text)

    def _value(self, cursor: Cursor, depth: int = 0) -> str | None:
        """The text of an expression over strings; None for one that we can't work out."""
        token = cursor.next()
        if token.kind in (TokenKind.STRING, TokenKind.NUMBER):
            return token.text
        if token.text == "@":
            if not cursor.take_mark("@"):
                return self._variables.get(cursor.next().text.lower())
            word = cursor.next()
            if cursor.take_mark("."):
                word = cursor.next()
            return self._mode_text if word.upper == "SQL_MODE" else None
        if token.upper in ("CONCAT", "REPLACE", "CONCAT_WS") and depth < _DEPTH_MAX and cursor.take_mark("("):
            return self._function(cursor, token.upper, depth + 1)
        return token.text if token.kind in (TokenKind.WORD, TokenKind.QUOTED) and not cursor.is_mark("(") else None

    def _function(self, cursor: Cursor, name: str, depth: int) -> str | None:
        arguments: list[str | None] = []
        while not cursor.ended:
            arguments.append(self._value(cursor, depth))
            while not (cursor.ended or cursor.is_mark(",") or cursor.is_mark(")")):
                cursor.skip_one()
            if not cursor.take_mark(","):
                break
        cursor.expect_mark(")")
        known = [argument for argument in arguments if argument is not None]
        if len(known) != len(arguments):
            return None
        if name == "REPLACE":
            return known[0].replace(known[1], known[2]) if len(known) == 3 else None
        return "".join(known) if name == "CONCAT" else known[0].join(known[1:])


def _skip(cursor: Cursor) -> None:
    while not (cursor.ended or cursor.is_mark(",")):
        cursor.skip_one()


def mode_bits(text: str) -> int:
    """The bits of a sql_mode given as text or as a number; words without a bearing on DDL are left out."""
    if text.isdigit():
        return int(text)
    bits = 0
    for word in re.split(r"[,\s]+", text.upper()):
        bits |= _MODES.get(word, 0)
    return bits


def database_of_use(cursor: Cursor) -> str:
    """The database after USE: the client takes the rest of the line as the name, quoted or not."""
    try:
        return cursor.name()
    except DDLError:
        return ""
