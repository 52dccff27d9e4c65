"""What `mysqlbinlog -vv` says of rows, as values that can be compared with ours.

In:  its text, as bytes.
Out: TextRow per row change: operation, table, and for each side column number -> TextValue.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_ROW = re.compile(rb"### (INSERT INTO|UPDATE|DELETE FROM) `((?:[^`]|``)*)`\.`((?:[^`]|``)*)`")
_VALUE = re.compile(rb"###   @(\d+)=(.*)", re.DOTALL)
_COMMENT = re.compile(rb"(.*?) */\* (.+?) meta=(\d+) nullable=(\d) is_null=(\d) \*/", re.DOTALL)
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_LETTERS = {b"b": b"\b", b"t": b"\t", b"n": b"\n", b"f": b"\f", b"r": b"\r"}
_ROWS_EVENT = rb"(?:Write_rows|Update_rows|Delete_rows|Update_rows_partial):"
_EVENT = re.compile(rb"# at (\d+)\n#\d{6} .*?\t(?:" + _ROWS_EVENT + rb"|Transaction_Payload)")


@dataclass
class TextValue:
    """text: None for NULL, else without the comment. kind: the type as the comment names it."""

    text: bytes | None
    kind: str


@dataclass
class TextRow:
    op: str
    database: str
    table: str
    before: dict[int, TextValue] | None = None
    after: dict[int, TextValue] | None = None
    unread: bool = field(default=False)  # mysqlbinlog gave up on a column; those behind it are missing


def rows_of(text: bytes) -> Iterator[TextRow]:
    """Rows in the order of the text."""
    row: TextRow | None = None
    side: dict[int, TextValue] = {}
    for line in _logical_lines(text):
        head = _ROW.fullmatch(line)
        if head:
            if row:
                yield row
            op = {b"INSERT INTO": "insert", b"UPDATE": "update", b"DELETE FROM": "delete"}[head[1]]
            row = TextRow(op, *(part.replace(b"``", b"`").decode() for part in (head[2], head[3])))
        elif row and line == b"### WHERE":
            row.before = side = {}
        elif row and line == b"### SET":
            row.after = side = {}
        elif row and (value := _VALUE.fullmatch(line)):
            if b"Don't know how to handle" in value[2]:
                row.unread = True
            else:
                side[int(value[1])] = _value(value[2])
    if row:
        yield row


def rows_event_positions(text: bytes) -> list[int]:
    """Where rows events start, and events that hold compressed ones."""
    return [int(found[1]) for found in _EVENT.finditer(text)]


def _logical_lines(text: bytes) -> Iterator[bytes]:
    """Lines that begin with ###; a partial JSON update goes on in lines of its own."""
    line = b""
    for part in text.split(b"\n"):
        if part.startswith(b"###      "):
            line += b" " + part[9:]
            continue
        if line:
            yield line
        line = part if part.startswith(b"###") else b""
    if line:
        yield line


def _value(text: bytes) -> TextValue:
    found = _COMMENT.fullmatch(text)
    assert found, text[:200]
    return TextValue(None if found[5] == b"1" else found[1], found[2].decode())


def unquoted(text: bytes) -> bytes:
    r"""'it\'s \x00' -> the bytes it stands for."""
    assert text[:1] == text[-1:] == b"'", text[:80]
    return _ESCAPE.sub(
        lambda m: bytes([int(m[1][1:], 16)]) if m[1][:1] == b"x" else _LETTERS.get(m[1], m[1]), text[1:-1]
    )
