"""Column, index and constraint definitions in CREATE TABLE and ALTER TABLE.

In:  a cursor at a definition.
Out: a ColumnDefinition or IndexDefinition; the cursor at the comma, the closing parenthesis or the
     end.

Attributes that don't affect columns, keys or row bytes (engine options, CHECK, REFERENCES) are
skipped token by token. Any other attribute is read, or is an error.
"""

from __future__ import annotations

import re
from typing import Any, Final

from tidegate.errors import UnsupportedValue
from tidegate.schema.ddl.expressions import spelled
from tidegate.schema.ddl.tokens import Cursor, TokenKind
from tidegate.schema.ddl.tree import ColumnDefinition, ColumnPlace, Default, IndexDefinition
from tidegate.schema.ddl.types import octets, read_attribute, read_bytes, read_type
from tidegate.schema.model.charset_text import codec_of, decode_text
from tidegate.schema.model.columns import Generated, IndexKind
from tidegate.schema.model.types import UNKNOWN
from tidegate.schema.model.unlogged import Reference

_NOW: Final = frozenset({"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"})
_CONSTRAINTS: Final = frozenset(
    {"PRIMARY", "UNIQUE", "INDEX", "KEY", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK"}
)
# DATE'2024-2-3' is stored as a text with all digits. Servers also read other spellings, and {d '2024-2-3'}.
_ONE_DIGIT: Final = re.compile(r"(?<![\d.])\d(?!\d)")
_MOMENTS: Final = {
    "DATE": re.compile(r"\d{4}-\d{1,2}-\d{1,2}"),
    "TIME": re.compile(r"\d{1,2}:\d{1,2}:\d{1,2}(\.\d{1,6})?"),
    "TIMESTAMP": re.compile(r"\d{4}-\d{1,2}-\d{1,2} \d{1,2}:\d{1,2}:\d{1,2}(\.\d{1,6})?"),
}
# Character sets in which an ASCII character has more than one byte.
_WIDE: Final = ("ucs2", "utf16", "utf32")
_BRACED: Final = {"D": "DATE", "T": "TIME", "TS": "TIMESTAMP"}
# From this version on, VECTOR is no column's name in MariaDB, unless it is quoted.
_VECTORS_SINCE: Final = 110700
_COMMENT_MAX: Final = 1024  # characters of a column's comment; a server that isn't strict cuts it there
# Before these versions, REFERENCES after a column was accepted and ignored.
_INLINE_KEYS_SINCE: Final = {True: 100500, False: 90000}
_Draft = dict[str, Any]  # the fields of a ColumnDefinition that were read so far
_VARIANTS: Final = {"VIRTUAL": Generated.VIRTUAL, "STORED": Generated.STORED, "PERSISTENT": Generated.STORED}


def starts_constraint(cursor: Cursor) -> bool:
    """Whether an index, key, check or period starts here, and not a column."""
    word, after = cursor.now.upper, cursor.ahead()
    if word in _CONSTRAINTS:
        return True
    if word == "PERIOD":
        return after.upper in ("FOR", "IF")
    if word == "CLUSTERING":  # a keyword of TokuDB; elsewhere a name like any other
        return after.upper in ("INDEX", "KEY")
    if word != "VECTOR":
        return False
    reserved = cursor.server.mariadb and cursor.server.number >= _VECTORS_SINCE  # VECTOR name (column)
    return reserved or after.upper in ("INDEX", "KEY") or after.text == "("


def read_column(cursor: Cursor, name: str | None = None) -> ColumnDefinition:
    """A column definition. name: given if it is already read (CHANGE old new ..., MODIFY)."""
    name = cursor.name() if name is None else name
    serial = cursor.now.upper == "SERIAL"
    draft: _Draft = {"type": read_type(cursor)}
    if serial:
        _make_serial(draft)
    while not (cursor.ended or cursor.is_mark(",") or cursor.is_mark(")")):
        _attribute(cursor, draft)
    return ColumnDefinition(name, **draft)


def _make_serial(draft: _Draft) -> None:
    draft.update(nullable=False, auto_increment=True)
    draft.setdefault("index", IndexKind.UNIQUE)


def _attribute(cursor: Cursor, draft: _Draft) -> None:
    """Read one attribute of a column, or skip one token that doesn't matter."""
    typed = read_attribute(cursor, draft["type"])
    if typed is not None:
        draft["type"] = typed
        return
    word = cursor.now.upper
    if word == "NOT" and cursor.ahead().upper == "NULL":
        cursor.at += 2
        draft["nullable"] = False
    elif cursor.take("NULL"):
        draft["nullable"] = True
    elif cursor.take("DEFAULT"):
        draft["default"] = read_default(cursor)
    elif cursor.take("ON", "UPDATE"):
        start = cursor.now.start
        cursor.next()
        draft["on_update"] = _function(cursor, start, "NOW").text or ""
    elif cursor.take("AUTO_INCREMENT"):
        draft["auto_increment"] = True
    elif cursor.take("SERIAL", "DEFAULT", "VALUE"):
        _make_serial(draft)
    elif cursor.take("PRIMARY"):
        cursor.take("KEY")
        draft["index"] = IndexKind.PRIMARY
    elif cursor.take("UNIQUE"):
        cursor.take("KEY")
        draft.setdefault("index", IndexKind.UNIQUE)
    elif cursor.take("KEY"):
        draft["index"] = IndexKind.PRIMARY
    elif cursor.take("COMMENT"):
        cursor.take_mark("=")
        draft["comment"] = cursor.next().text[:_COMMENT_MAX]
    elif word in ("GENERATED", "AS"):
        _generated(cursor, draft)
    elif word in _VARIANTS:
        cursor.next()
        draft.update(generated=_VARIANTS[word]) if "generated" in draft else None
    elif word in ("INVISIBLE", "VISIBLE"):
        cursor.next()
        draft["invisible"] = word == "INVISIBLE"
    elif cursor.take("FIRST"):
        draft["place"] = ColumnPlace("")
    elif cursor.take("AFTER"):
        draft["place"] = ColumnPlace(cursor.name())
    elif cursor.take("REFERENCES"):
        refers = _reference(cursor)
        draft["refers"] = refers if cursor.server.number >= _INLINE_KEYS_SINCE[cursor.server.mariadb] else None
    elif cursor.take("CONSTRAINT"):
        if cursor.now.upper != "CHECK":
            cursor.name()
    else:
        cursor.skip_one()


def _generated(cursor: Cursor, draft: _Draft) -> None:
    """[GENERATED ALWAYS] AS (expression), or AS ROW START / END of a system-versioned table."""
    cursor.take("GENERATED")
    cursor.take("ALWAYS")
    if not cursor.take("AS"):
        raise cursor.lost("AS of a generated column")
    if cursor.take("ROW"):
        draft["generation_expression"] = f"ROW {cursor.next().upper}"
        draft["nullable"] = False
        return
    start, end = cursor.skip_group()
    draft["generation_expression"] = spelled(cursor.sql[start:end], cursor.sql_mode, cursor.server)
    draft["generated"] = Generated.VIRTUAL  # the default


def _reference(cursor: Cursor, name: str = "") -> Reference:
    """After REFERENCES: t (c) [MATCH x] [ON DELETE action] [ON UPDATE action]."""
    database, table = cursor.table("-")
    columns = read_parts(cursor)[0] if cursor.is_mark("(") else ()
    rules = {"DELETE": "", "UPDATE": ""}
    while True:
        if cursor.take("MATCH"):
            cursor.next()
        elif cursor.now.upper == "ON" and cursor.ahead().upper in rules:
            what = cursor.ahead().upper
            cursor.at += 2
            rule = cursor.next().upper
            rules[what] = f"{rule} {cursor.next().upper}" if rule in ("SET", "NO") else rule
        else:
            parent = ("" if database == "-" else database, table)
            return Reference(parent, rules["DELETE"], rules["UPDATE"], name, columns)


def read_default(cursor: Cursor) -> Default:
    """The text after DEFAULT."""
    token = cursor.now
    if cursor.is_mark("("):
        start, end = cursor.skip_group()
        return _expression(cursor, cursor.sql[start:end].strip())
    if literal := read_bytes(cursor):
        return _alone(cursor, Default(literal, is_bytes=True))
    if cursor.is_mark("{"):
        return _braced(cursor)
    cursor.next()
    if token.kind == TokenKind.STRING:
        return Default(token.text + _more_strings(cursor))
    if token.text in ("-", "+") and token.kind == TokenKind.MARK:
        return Default(token.text.replace("+", "") + cursor.next().text, is_number=True)
    if token.kind == TokenKind.NUMBER:
        return Default(token.text, is_number=True)
    word = token.upper
    if token.text == "@":  # a variable of the user or the server, which MariaDB accepts
        cursor.take_mark("@")
        name = cursor.next()
        return Default(cursor.sql[token.start : name.end], is_expression=True)
    if not word:
        cursor.at -= 1
        raise cursor.lost("a default")
    if word == "NULL":
        return Default(None)
    if word in ("TRUE", "FALSE"):
        return Default("1" if word == "TRUE" else "0", is_number=True)
    if word[0] == "_" and (literal := read_bytes(cursor)):
        return _introduced(cursor, word[1:].lower(), literal)
    if cursor.now.kind == TokenKind.STRING and (word == "N" or word[0] == "_" or word in _MOMENTS):
        literal = cursor.next().text
        if word in _MOMENTS:
            return _moment(word, literal + _more_strings(cursor))
        charset = "utf8mb3" if word == "N" else word[1:].lower()
        text = literal if _is_decoded(charset, literal) else literal + UNKNOWN
        return _alone(cursor, Default(text, is_wide=charset.startswith(_WIDE)))
    return _function(cursor, token.start, word)


def _alone(cursor: Cursor, default: Default) -> Default:
    """The default. It isn't known if more strings follow it: their bytes count in its character
    set.
    """
    more = _more_strings(cursor)
    return Default(f"{default.text}{more}{UNKNOWN}") if more else default


def _is_decoded(charset: str, literal: str) -> bool:
    """Whether the literal is the text of its bytes in its introducer's character set. If there is a
    decoder, binlog/format/statement_text.py has made it so.
    """
    try:
        codec_of(charset)
    except UnsupportedValue:
        return literal.isascii() and charset != "filename"  # in that set @0041 is an A
    return True


def _moment(kind: str, literal: str) -> Default:
    if _MOMENTS[kind].fullmatch(literal) is None:
        return Default(literal + UNKNOWN)
    return Default(_ONE_DIGIT.sub(r"0\g<0>", literal))


def _braced(cursor: Cursor) -> Default:
    """{ts '2024-02-03 04:05:06'}, as in ODBC."""
    cursor.expect_mark("{")
    word = cursor.next().upper
    if word not in _BRACED or cursor.now.kind != TokenKind.STRING:
        raise cursor.lost("a default")
    default = _moment(_BRACED[word], cursor.next().text)
    cursor.expect_mark("}")
    return default


def _introduced(cursor: Cursor, charset: str, literal: str) -> Default:
    """_latin1 0xE9: bytes of a named character set."""
    if charset == "binary":
        return _alone(cursor, Default(literal, is_bytes=True))
    try:
        return _alone(cursor, Default(decode_text(charset, octets(literal)), is_wide=charset.startswith(_WIDE)))
    except (UnsupportedValue, ValueError):
        raise cursor.lost("a default") from None


def _expression(cursor: Cursor, text: str) -> Default:
    """An expression. MariaDB takes a literal in parentheses as this literal."""
    if cursor.server.mariadb:
        inner = Cursor(text, cursor.sql_mode, cursor.server)
        if inner.now.kind in (TokenKind.STRING, TokenKind.NUMBER) and inner.ahead().kind == TokenKind.END:
            return Default(inner.now.text, is_number=inner.now.kind == TokenKind.NUMBER)
        if inner.now.upper == "NULL" and inner.ahead().kind == TokenKind.END:
            return Default(None)
    return Default(spelled(text, cursor.sql_mode, cursor.server), is_expression=True)


def _more_strings(cursor: Cursor) -> str:
    """'a' 'b' is 'ab'."""
    text = ""
    while cursor.now.kind == TokenKind.STRING:
        text += cursor.next().text
    return text


def _function(cursor: Cursor, start: int, word: str) -> Default:
    end = cursor.tokens[cursor.at - 1].end
    if word in ("NEXT", "PREVIOUS"):  # NEXT VALUE FOR sequence
        cursor.take("VALUE")
        cursor.take("FOR")
        cursor.table("-")
        end = cursor.tokens[cursor.at - 1].end
    elif cursor.is_mark("("):
        end = cursor.skip_group()[1] + 1
    text = cursor.sql[start:end]
    if word in _NOW:
        digits = "".join(c for c in text if c.isdigit())
        text = f"CURRENT_TIMESTAMP({digits})" if digits and digits != "0" else "CURRENT_TIMESTAMP"
    elif word not in ("NEXT", "PREVIOUS"):
        text = spelled(text, cursor.sql_mode, cursor.server)
    return Default(text, is_expression=True)


def read_constraint(cursor: Cursor) -> IndexDefinition | tuple[str, ...]:
    """An index or key; for a PERIOD its columns; for a CHECK (). The cursor ends after the whole
    item.
    """
    name = own = ""
    if cursor.take("CONSTRAINT"):
        cursor.take("IF", "NOT", "EXISTS")
        if cursor.now.upper not in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
            name = cursor.name()
        cursor.take("IF", "NOT", "EXISTS")
    cursor.take("CLUSTERING")
    word = cursor.now.upper
    if word in ("CHECK", "PERIOD"):
        while not (cursor.ended or cursor.is_mark("(") or cursor.is_mark(",")):
            cursor.next()
        columns = read_parts(cursor)[0] if word == "PERIOD" else ()
        cursor.skip_item()
        return columns
    cursor.next()
    kind = {"PRIMARY": IndexKind.PRIMARY, "UNIQUE": IndexKind.UNIQUE}.get(word, IndexKind.PLAIN)
    if word not in ("INDEX", "KEY"):
        cursor.take_any("INDEX", "KEY")
    cursor.take("IF", "NOT", "EXISTS")
    if not cursor.is_mark("("):
        if cursor.now.upper not in ("USING", "TYPE") or cursor.ahead().text == "(":
            own = cursor.name()
        if cursor.take_any("USING", "TYPE"):
            cursor.next()
    columns, prefixes, period = read_parts(cursor)
    refers = None
    if word == "FOREIGN":
        if not cursor.take("REFERENCES"):
            raise cursor.lost("REFERENCES")
        refers = _reference(cursor, name or (own if cursor.server.mariadb else ""))
    cursor.skip_item()
    # If the constraint of a foreign key has a name, its index has the same.
    name = name if refers and name else own or name
    return IndexDefinition(
        kind, "PRIMARY" if kind is IndexKind.PRIMARY else name, columns, prefixes, period, refers=refers
    )


def read_parts(cursor: Cursor) -> tuple[tuple[str, ...], tuple[int, ...], bool]:
    """`(a, b(10) DESC, (expression))` -> (("a", "b", ""), (0, 10, 0), False); True if the last is
    WITHOUT OVERLAPS.
    """
    cursor.expect_mark("(")
    columns: list[str] = []
    prefixes: list[int] = []
    period = False
    while True:
        prefix = 0
        if cursor.is_mark("("):
            cursor.skip_group()
            columns.append("")
        else:
            columns.append(cursor.name())
            if cursor.take_mark("("):
                prefix = cursor.length("the length of a key part")
                cursor.expect_mark(")")
        prefixes.append(prefix)
        period = cursor.take("WITHOUT", "OVERLAPS")
        cursor.skip_item()
        if cursor.take_mark(")"):
            return tuple(columns), tuple(prefixes), period
        cursor.expect_mark(",")
