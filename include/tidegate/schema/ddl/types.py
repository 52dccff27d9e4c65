"""Data types in DDL: from the written form to the server's.

In:  a cursor at a type; later the table's default charset.
Out: a TypeSpec; from it the column_type text, charset and collation as information_schema.columns shows them on a
     server of this flavour and version ("int(11)" on MariaDB, "int" on MySQL 8.0.19 and later).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tidegate.errors import DDLError, UnsupportedValue
from tidegate.remedy import REPORT
from tidegate.schema.ddl.tokens import LENGTH_DIGITS, MAXDB, ORACLE, REAL_AS_FLOAT, Cursor, TokenKind
from tidegate.schema.ddl.tree import Charset, TypeSpec
from tidegate.schema.model.charset_text import decode_member, text_in
from tidegate.schema.model.charsets import (
    binary_collation,
    bytes_per_character,
    collation_pair,
    default_collation,
    shown_charset,
)
from tidegate.schema.model.server import ServerVersion
from tidegate.schema.model.type_table import INTEGERS, TEXT_BYTES, TEXTS, TYPES
from tidegate.schema.model.types import COMPRESSED, members_text

_SYNONYMS: Final = {
    "BOOL": "tinyint", "BOOLEAN": "tinyint", "CHARACTER": "char", "CLOB": "longtext", "DEC": "decimal",
    "FIXED": "decimal", "FLOAT4": "float", "FLOAT8": "double", "GEOMCOLLECTION": "geometrycollection",
    "INT1": "tinyint", "INT2": "smallint", "INT3": "mediumint", "INT4": "int", "INT8": "bigint", "INTEGER": "int",
    "MIDDLEINT": "mediumint", "NUMERIC": "decimal", "RAW": "varbinary", "SERIAL": "bigint", "SQL_TSI_YEAR": "year",
    "VARCHAR2": "varchar", "VARCHARACTER": "varchar",
}  # fmt: skip
# MariaDB 12 has XMLTYPE, which silver doesn't know.
_NAMES: Final = frozenset(TYPES) | {"xmltype"}
_CHARACTERS: Final = frozenset({*TEXTS, "enum", "set"})
# MAX_FIELD_VARCHARLENGTH of each server's sql/field.h.
_VARCHAR_BYTES_MAX: Final = {True: 65532, False: 65535}
# From here on MySQL shows integers without a display width, except tinyint(1) and zerofill.
_NO_WIDTHS_SINCE: Final = 80019


def read_type(cursor: Cursor) -> TypeSpec:
    """The type here, without its attributes (UNSIGNED, CHARACTER SET ...)."""
    token = cursor.now
    if token.kind not in (TokenKind.WORD, TokenKind.QUOTED):
        raise cursor.lost("a data type")
    cursor.next()
    word = token.text.upper()
    if cursor.is_mark(".") and word.endswith("_SCHEMA"):  # MariaDB: mariadb_schema.date, oracle_schema.date
        return _qualified(cursor, word)
    return _sized(cursor, word, oracle=bool(cursor.sql_mode & ORACLE) and cursor.server.mariadb)


def _qualified(cursor: Cursor, schema: str) -> TypeSpec:
    cursor.next()
    word = cursor.next().text.upper()
    if schema == "MAXDB_SCHEMA" and word == "TIMESTAMP":
        word = "DATETIME"
    elif schema != "MAXDB_SCHEMA" and word == "TIMESTAMP":
        return TypeSpec("timestamp", _numbers(cursor) if cursor.is_mark("(") else ())
    return _sized(cursor, word, oracle=schema == "ORACLE_SCHEMA")


def _sized(cursor: Cursor, word: str, *, oracle: bool) -> TypeSpec:
    base, charset = _base(cursor, word, oracle=oracle), ""
    if word in ("NCHAR", "NATIONAL", "NVARCHAR"):
        charset = "utf8"
    numbers: tuple[int, ...] = ()
    members: tuple[str | bytes, ...] = ()
    if cursor.is_mark("("):
        if base in ("enum", "set"):
            members = _members(cursor)
        else:
            # MariaDB accepts a YEAR of any width.
            numbers = _numbers(cursor, len(cursor.sql) if base == "year" else LENGTH_DIGITS)
    elif base in ("enum", "set"):
        raise cursor.lost(f"members of {base}")
    if word in ("BOOL", "BOOLEAN"):
        numbers = (1,)
    if word == "NUMBER" and not numbers:
        base = "double"
    if oracle and base == "varchar" and not numbers:
        numbers = (4000,)
    unsigned = word == "SERIAL"
    if base == "json" and cursor.server.mariadb:
        return TypeSpec("longtext", charset="utf8mb4", collation="utf8mb4_bin")
    return TypeSpec(base, numbers, members, unsigned=unsigned, charset=charset)


def _base(cursor: Cursor, word: str, *, oracle: bool) -> str:
    """The base name of a type that begins with word, which is already read. Its other words are
    read here.
    """
    if word == "NATIONAL":
        return "varchar" if cursor.take_any("VARCHAR", "VARCHARACTER") or _char_varying(cursor) else "char"
    if word in ("NCHAR", "CHAR", "CHARACTER"):
        longer = cursor.take("VARYING") or (word == "NCHAR" and cursor.take_any("VARCHAR", "VARCHARACTER"))
        return "varchar" if longer else "char"
    if word == "NVARCHAR":
        return "varchar"
    if word == "DOUBLE":
        cursor.take("PRECISION")
        return "double"
    if word == "REAL":
        return "float" if cursor.sql_mode & REAL_AS_FLOAT else "double"
    if word == "LONG":
        if cursor.take("VARBINARY"):
            return "mediumblob"
        if not cursor.take_any("VARCHAR", "VARCHARACTER"):
            _char_varying(cursor)
        return "mediumtext"
    if word == "NUMBER":
        return "decimal"
    if word == "TIMESTAMP" and cursor.sql_mode & MAXDB and cursor.server.mariadb:
        return "datetime"
    if oracle and (word == "DATE" or (word == "BLOB" and not cursor.is_mark("("))):
        return "datetime" if word == "DATE" else "longblob"
    base = _SYNONYMS.get(word, word.lower())
    if base not in _NAMES:
        raise DDLError(f"unknown data type {word!r}", remedy=REPORT)
    return base


def _char_varying(cursor: Cursor) -> bool:
    return bool(cursor.take_any("CHAR", "CHARACTER")) and cursor.take("VARYING")


def _numbers(cursor: Cursor, digits_max: int = LENGTH_DIGITS) -> tuple[int, ...]:
    cursor.expect_mark("(")
    numbers: list[int] = []
    while not cursor.take_mark(")"):
        if not (cursor.take_any("CHAR", "BYTE") or cursor.take_mark("*") or cursor.take_mark(",")):  # VARCHAR2(10 CHAR)
            numbers.append(cursor.length("a length", digits_max=digits_max))
    return tuple(numbers)


def _members(cursor: Cursor) -> tuple[str | bytes, ...]:
    """Members of enum or set."""
    cursor.expect_mark("(")
    members: list[str | bytes] = []
    while True:
        members.append(_member(cursor))
        if cursor.take_mark(")"):
            return tuple(members)
        cursor.expect_mark(",")


def _member(cursor: Cursor) -> str | bytes:
    token = cursor.now
    if token.kind == TokenKind.STRING:
        return cursor.next().text
    literal = read_bytes(cursor)
    if not literal:
        raise cursor.lost("a member")
    try:
        return octets(literal)
    except ValueError:
        raise cursor.lost("a member") from None


def read_bytes(cursor: Cursor) -> str:
    """A literal of bytes here, as 0x or 0b and digits; "" if there is none."""
    token, after = cursor.now, cursor.ahead()
    word = token.upper
    if word in ("X", "B") and after.kind == TokenKind.STRING and after.start == token.end:
        cursor.next()
        return f"0{word.lower()}{cursor.next().text}"
    return cursor.next().text if word[:2] in ("0X", "0B") and len(word) > 2 else ""


def octets(literal: str) -> bytes:
    """The value of 0x or 0b and digits. An odd number of hexadecimal digits gets a 0 in front.
    Raises ValueError.
    """
    digits = literal[2:]
    if literal[1] in "xX":
        return bytes.fromhex("0" * (len(digits) % 2) + digits)
    return int(digits or "0", 2).to_bytes((len(digits) + 7) // 8, "big")


def member_texts(spec: TypeSpec, charset: str, server: ServerVersion) -> tuple[str, ...]:
    """Members as the column has them. A text is converted into its character set; bytes are in it
    already.

    Trailing spaces go. Raises DDLError.
    """
    try:
        return tuple(_member_text(member, charset, server).rstrip(" ") for member in spec.members)
    except UnsupportedValue as error:
        raise DDLError(error.what, remedy=error.remedy) from error


def _member_text(member: str | bytes, charset: str, server: ServerVersion) -> str:
    if isinstance(member, bytes):
        return decode_member(charset, member)
    # TiDB converts nothing, and a binary column has the bytes of any character.
    return member if server.tidb or charset == "binary" else text_in(charset, member)


def read_attribute(cursor: Cursor, spec: TypeSpec) -> TypeSpec | None:
    """The attribute here (UNSIGNED, CHARACTER SET ...), added to spec; None if there is none."""
    word = cursor.now.upper
    if word in ("UNSIGNED", "SIGNED", "ZEROFILL"):
        cursor.next()
        zerofill = word == "ZEROFILL" or spec.zerofill
        return replace(spec, unsigned=word == "UNSIGNED" or zerofill or spec.unsigned, zerofill=zerofill)
    if _starts_charset_alone(cursor):
        return replace(spec, charset=charset_name(cursor))
    if word == "COLLATE":
        cursor.next()
        cursor.take_mark("=")
        return replace(spec, collation=cursor.next().text)
    if word in ("ASCII", "UNICODE"):
        cursor.next()
        return replace(spec, charset="latin1" if word == "ASCII" else "ucs2")
    if word == "BYTE":
        cursor.next()
        return replace(spec, charset="binary")
    if word == "BINARY":
        cursor.next()
        return replace(spec, bin=True)
    if word == "COMPRESSED" and cursor.server.mariadb:
        cursor.next()
        if cursor.take_mark("="):
            cursor.next()
        return replace(spec, compressed=True)
    return None


def starts_charset(cursor: Cursor) -> bool:
    """Whether CHARSET, CHARACTER SET or COLLATE is here."""
    return cursor.now.upper == "COLLATE" or _starts_charset_alone(cursor)


def _starts_charset_alone(cursor: Cursor) -> bool:
    word = cursor.now.upper
    return word == "CHARSET" or (word in ("CHARACTER", "CHAR") and cursor.ahead().upper == "SET")


def read_charset(cursor: Cursor, before: Charset) -> Charset:
    """`before`, changed by the clause here: CHARACTER SET x or COLLATE y."""
    if not cursor.take("COLLATE"):
        return replace(before, charset=charset_name(cursor))
    cursor.take_mark("=")
    return replace(before, collation=cursor.next().text)


def charset_name(cursor: Cursor) -> str:
    """`CHARSET x`, `CHARACTER SET = 'x'` -> x; "DEFAULT" for DEFAULT."""
    if not cursor.take("CHARSET"):
        cursor.next()
        cursor.next()
    cursor.take_mark("=")
    return cursor.take_any("DEFAULT") or cursor.next().text


def shown_type(spec: TypeSpec, table: tuple[str, str], server: ServerVersion) -> tuple[str, str, str]:
    """(column_type, charset, collation) as the server shows them; table: its default charset and collation."""
    kind, charset, collation = _shown(spec, table, server)
    return kind + COMPRESSED if spec.compressed else kind, charset, collation


def _shown(spec: TypeSpec, table: tuple[str, str], server: ServerVersion) -> tuple[str, str, str]:
    varchar_bytes_max = _VARCHAR_BYTES_MAX[server.mariadb]
    if spec.base == "varbinary" and spec.numbers and spec.numbers[0] > varchar_bytes_max:
        return TYPES[text_for(spec.numbers[0])].as_binary, "", ""
    if spec.base not in _CHARACTERS:
        return _numeric_or_plain(spec, server), "", ""
    charset, collation = column_charset(spec, table, server)
    base, numbers = spec.base, spec.numbers
    if base in ("enum", "set"):
        members = member_texts(spec, charset, server)
        if charset == "binary" and not server.mariadb:
            charset = collation = ""
        return f"{base}({members_text(members)})", charset, collation
    if base == "varchar":
        if not numbers:
            raise DDLError("varchar without a length", remedy=REPORT)
        length = numbers[0] * bytes_per_character(charset)
        if length > varchar_bytes_max:  # under a strict sql_mode the statement failed, so it isn't in the log
            base, numbers = text_for(length), ()
    elif base == "text" and numbers and (numbers[0] or not server.mariadb):
        base, numbers = text_for(numbers[0] * bytes_per_character(charset)), ()
    if base == "char":
        numbers = numbers or (1,)
    elif base != "varchar":
        numbers = ()
    if charset == "binary":
        base, charset, collation = TYPES[base].as_binary, "", ""
    return base + _parentheses(numbers), charset, collation


def text_for(length: int) -> str:
    """The smallest TEXT type that holds so many bytes."""
    return next((base for base, size in TEXT_BYTES.items() if length <= size), "longtext")


def column_charset(spec: TypeSpec, table: tuple[str, str], server: ServerVersion) -> tuple[str, str]:
    """(charset, collation) of a column of a character type."""
    if spec.collation and spec.collation.upper() != "DEFAULT":
        base = shown_charset(spec.charset, server) if spec.charset else table[0]
        return collation_pair(spec.collation, base, server)
    charset, collation = table
    if spec.charset or spec.collation:  # COLLATE DEFAULT
        charset = shown_charset(spec.charset, server) if spec.charset else charset
        collation = default_collation(charset, server)
    if spec.bin:
        collation = binary_collation(charset)
    return charset, collation


def converted_text(base: str, old_charset: str, new_charset: str) -> str:
    """The TEXT type that CONVERT TO CHARACTER SET makes from another one: it holds as many
    characters as before.
    """
    characters = TEXT_BYTES[base] // bytes_per_character(old_charset)
    return text_for(characters * bytes_per_character(new_charset))


def as_binary(kind: str) -> str:
    """The result of CONVERT TO CHARACTER SET binary on a text type. Its length stays."""
    base, mark, rest = kind.partition("(")
    return TYPES[base].as_binary + mark + rest


def _numeric_or_plain(spec: TypeSpec, server: ServerVersion) -> str:
    base, numbers = spec.base, spec.numbers
    modern = not server.mariadb and server.number >= _NO_WIDTHS_SINCE
    tail = (" unsigned" if spec.unsigned else "") + (" zerofill" if spec.zerofill else "")
    if base in INTEGERS:
        width = numbers[0] if numbers and numbers[0] else TYPES[base].shown[spec.unsigned]
        if modern and not spec.zerofill and not (base == "tinyint" and width == 1 and not spec.unsigned):
            return base + tail
        return f"{base}({width}){tail}"
    if base == "decimal":
        digits = numbers[0] if numbers else 0
        scale = numbers[1] if len(numbers) > 1 else 0
        return f"decimal({digits or 10},{scale}){tail}"
    if base in ("float", "double"):
        if len(numbers) == 2:
            return f"{base}({numbers[0]},{numbers[1]}){tail}"
        return ("double" if base == "double" or (numbers and numbers[0] > 24) else "float") + tail
    if base in ("date", "json", "uuid", "inet4", "inet6", "xmltype"):
        return base
    if base == "year":
        return "year" if modern else f"year({2 if numbers == (2,) else 4})"
    if base in ("time", "datetime", "timestamp"):
        return base + (_parentheses(numbers) if numbers and numbers[0] else "")
    if base in ("bit", "binary"):
        return f"{base}({(numbers[0] if numbers else 0) or (1 if base == 'bit' or not numbers else 0)})"
    if base == "varbinary":
        return base + _parentheses(numbers)
    if base == "vector":
        return f"vector({numbers[0] if numbers else 2048})"
    if base == "blob" and numbers and (numbers[0] or not server.mariadb):
        return text_for(numbers[0]).replace("text", "blob")
    if base == "geometrycollection" and not server.mariadb and server.number >= 80000:
        return "geomcollection"
    return base


def _parentheses(numbers: tuple[int, ...]) -> str:
    return f"({','.join(map(str, numbers))})" if numbers else ""
