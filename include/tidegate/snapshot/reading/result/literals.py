"""A row's key as SQL literals, which the server compares exactly as it compares the row.

In:  a row of a binary result set, its plan.
Out: a Key, in order of the key's columns; conditions and an order over it.

Text is its own bytes after the introducer of its character set: a literal yields to the column's
collation. Numbers, dates and times are as the server writes them; ENUM and SET are the numbers of
their order. A FLOAT is its widened DOUBLE, as the server compares it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import numpy as np

from tidegate.errors import StreamCorrupt, UnsupportedValue
from tidegate.mysql.sql_text.sql import ByNumber, above, double_literal, upto
from tidegate.remedy import REPORT
from tidegate.schema.model.columns import Column
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import canonical
from tidegate.snapshot.chunks.spans import Key, Span
from tidegate.snapshot.reading.result import kernel as K  # noqa: N812 - a page of constants
from tidegate.snapshot.reading.result.plan import ReadPlan

_FIXED: frozenset[int] = frozenset({K.FIXED, K.YEAR})


def key_literals(plan: ReadPlan, row: bytes) -> Key | None:
    """The key of a row, given as the packet's bytes; None of a table without one."""
    if not plan.key:
        return None
    cells = list(_cells(plan, row))
    kept = [cell for cell, column in zip(cells, plan.columns, strict=True) if column.plan is not None]
    extra = [cell for cell, column in zip(cells, plan.columns, strict=True) if column.plan is None]
    if not plan.version.key:  # the number by which its server finds a row
        return (str(int(extra[-1] or b"")),)
    numbers = iter(extra)
    places = {column.id: n for n, column in enumerate(plan.version.columns)}
    literals = []
    for column_id in plan.version.key:
        column = plan.version.columns[places[column_id]]
        listed = canonical(column).kind in (Kind.ENUM, Kind.SET)
        cell = next(numbers) if listed else kept[places[column_id]]
        if cell is None:
            raise StreamCorrupt(f"key column {column.name} is NULL", where=plan.version.name, remedy=REPORT)
        literals.append(str(int(cell)) if listed else literal(column, cell))
    return tuple(literals)


def _cells(plan: ReadPlan, row: bytes) -> Iterator[bytes | None]:
    """The values' bytes, without their lengths."""
    count = len(plan.columns)
    nulls, at = row[1:], 1 + (count + 9) // 8
    for n, column in enumerate(plan.columns):
        if nulls[(n + 2) >> 3] >> ((n + 2) & 7) & 1:
            yield None
            continue
        size = column.wire_bytes
        if column.read_as not in _FIXED:
            first = row[at]
            wide = {252: 2, 253: 3, 254: 8}.get(first, 0)
            size = int.from_bytes(row[at + 1 : at + 1 + wide], "little") if wide else first
            at += 1 + wide
        yield row[at : at + size]
        at += size


def literal(column: Column, cell: bytes) -> str:
    """A value as it came, as a literal."""
    kind = canonical(column)
    match kind.kind:
        case Kind.INT | Kind.UNSIGNED_BIGINT | Kind.YEAR:
            return str(int.from_bytes(cell, "little", signed=not kind.text.unsigned))
        case Kind.FLOAT:
            return double_literal(float(np.frombuffer(cell, "<f4")[0]))
        case Kind.DOUBLE:
            return double_literal(struct.unpack("<d", cell)[0])
        case Kind.DECIMAL | Kind.DECIMAL_TEXT:
            return cell.decode("ascii")
        case Kind.DATE | Kind.DATETIME | Kind.TIMESTAMP:
            return _moment(cell, date=kind.kind is Kind.DATE)
        case Kind.TIME:
            return _time(cell)
        case Kind.BOOLEAN | Kind.BIT:
            return str(int.from_bytes(cell, "big"))
        case Kind.BINARY:
            return f"x'{cell.hex()}'"
        case Kind.UUID | Kind.INET:
            return f"'{cell.decode('ascii')}'"
        case Kind.TEXT:
            return f"_{column.charset} x'{cell.hex()}'"
    raise UnsupportedValue(
        f"column {column.name} is {column.type}, which is no key of ours", remedy=f"leave the table out, or {REPORT}"
    )


def _moment(cell: bytes, *, date: bool) -> str:
    padded = cell.ljust(11, b"\0")
    year, month, day, hour, minute, second, micros = struct.unpack("<HBBBBBI", padded)
    text = f"{year:04}-{month:02}-{day:02}"
    return f"'{text}'" if date else f"'{text} {hour:02}:{minute:02}:{second:02}.{micros:06}'"


def _time(cell: bytes) -> str:
    negative, days, hour, minute, second, micros = struct.unpack("<BIBBBI", cell.ljust(12, b"\0"))
    return f"'{'-' if negative else ''}{days * 24 + hour:02}:{minute:02}:{second:02}.{micros:06}'"


def span_condition(key: Sequence[str | ByNumber], span: Span) -> str:
    """A condition for a range of keys; "" for all. key: its columns, as compared_as gives them, or their names."""
    parts = []
    if span.after is not None:
        parts.append(above(key, span.after))
    if span.upto is not None:
        parts.append(upto(key, span.upto))
    return " AND ".join(f"({part})" for part in parts)
