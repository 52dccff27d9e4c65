"""Character sets of tables and columns, from the words of a statement.

In:  a written Charset; a column, and the character set that CONVERT TO gives it.
Out: (charset, collation) as shown; the column in its new character set.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate.errors import UnsupportedValue
from tidegate.schema.ddl.tree import Charset, TypeSpec
from tidegate.schema.ddl.types import as_binary, converted_text, shown_type
from tidegate.schema.model.charset_text import decode_member, encode_text
from tidegate.schema.model.charsets import collation_pair, default_collation, shown_charset
from tidegate.schema.model.columns import Column
from tidegate.schema.model.server import ServerVersion
from tidegate.schema.model.type_table import TEXT_BYTES
from tidegate.schema.model.types import COMPRESSED, UNKNOWN, enum_members, members_text


def resolve_charset(
    written: Charset, base: tuple[str, str], server: ServerVersion, outer: tuple[str, str] | None = None
) -> tuple[str, str]:
    """(charset, collation) of a table or database from its written words; base if nothing is
    written.

    outer: the meaning of CHARACTER SET DEFAULT, if it isn't base: the database's, for a table with
    its own. MariaDB takes only its character set, MySQL its collation, too.
    """
    charset, collation = written.charset, written.collation.upper()
    if charset.upper() == "DEFAULT":
        charset, base = "", outer or base
        collation = collation or ("DEFAULT" if server.mariadb else "")
    charset = shown_charset(charset, server) if charset else base[0]
    if collation not in ("", "DEFAULT"):
        return collation_pair(written.collation, charset, server)
    if collation or charset != base[0] or written.charset.upper() not in ("", "DEFAULT"):
        return charset, default_collation(charset, server)
    return base


def converted(column: Column, convert: tuple[str, str] | None, *, mariadb: bool) -> Column:
    """The new form of a column after CONVERT TO; convert: None when the statement has none."""
    if convert is None or not column.charset or column.charset == "binary":
        return column
    charset, collation = convert
    if column.type.startswith(("enum(", "set(")):
        kind = _members_taken(column.type, column.charset, charset)
        if charset == "binary" and not mariadb:
            charset = collation = ""
        return replace(column, type=kind, charset=charset, collation=collation)
    kind, mark, rest = column.type.partition(COMPRESSED)
    if charset == "binary":
        return replace(column, type=as_binary(kind) + mark + rest, charset="", collation="")
    if kind in TEXT_BYTES:
        kind = converted_text(kind, column.charset, charset)
    kind += mark + rest
    return replace(column, type=kind, charset=charset, collation=collation)


def recoded(
    column: Column, written: TypeSpec, convert: tuple[str, str] | None, server: ServerVersion, *, grows: bool
) -> Column:
    """A column that a statement with CONVERT TO defines itself: CONVERT TO beats the character set that it gives.

    Members are written in the statement, and so are converted. grows: TEXT becomes larger, as in MySQL.
    """
    if convert is None or not (written.charset or written.collation):
        return column
    if written.members:
        kind, charset, collation = shown_type(
            replace(written, charset=convert[0], collation=convert[1]), convert, server
        )
        return replace(column, type=kind, charset=charset, collation=collation)
    new = converted(column, convert, mariadb=server.mariadb)
    return new if grows or convert[0] == "binary" else replace(new, type=column.type)


def _members_taken(kind: str, old_charset: str, new_charset: str) -> str:
    """The type of an ENUM or SET after CONVERT TO. The servers leave the bytes of its members as they are, and take
    them for text in the new character set. UNKNOWN stands for a member whose bytes are no text there.
    """
    members: list[str] = []
    for member in enum_members(kind):
        data = None if UNKNOWN in member else encode_text(old_charset, member)
        try:
            members.append(member if data is None else decode_member(new_charset, data))
        except UnsupportedValue:
            members.append(UNKNOWN)
    return f"{kind[: kind.index('(')]}({members_text(tuple(members))})"
