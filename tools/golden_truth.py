"""What a server itself says that a table holds: its SELECT, as canonical JSON.

In:  a connection, a table.
Out: {"columns": [names], "rows": [[values], ...]}: integers as JSON numbers; decimals, dates and times as the server's
     own text, timestamps in UTC; binary as {"base64": ...}; BIT(1) as true and false; a geometry as {"srid", "wkb"};
     a vector as a list of numbers.

Nothing of tidegate is used here: this is the other side of the comparison.
"""

from __future__ import annotations

import base64
import struct
from decimal import Decimal
from typing import Any

_GEOMETRIES = ("point", "linestring", "polygon", "multi", "geom")
_AS_TEXT = ("date", "time", "inet", "uuid")


def columns_of(cursor: Any, database: str, table: str) -> list[tuple[str, str]]:
    """(name, column type in lower case) in order, invisible columns included."""
    cursor.execute(
        "SELECT column_name, column_type FROM information_schema.columns"
        " WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
        (database, table),
    )
    return [(str(name), kind.decode() if isinstance(kind, bytes) else str(kind)) for name, kind in cursor.fetchall()]


def truth_of(cursor: Any, database: str, table: str, flavour: str) -> dict[str, Any]:
    """All rows as the server shows them now, in an order that is the same on every run."""
    columns = columns_of(cursor, database, table)
    cursor.execute("SET SESSION time_zone = '+00:00', sql_mode = ''")
    asked = ", ".join(_expression(_quoted(name), kind.lower(), flavour) for name, kind in columns)
    cursor.execute(f"SELECT {asked} FROM {_quoted(database)}.{_quoted(table)}")
    rows = [
        [_plain(value, kind.lower()) for value, (_, kind) in zip(row, columns, strict=True)]
        for row in cursor.fetchall()
    ]
    return {"columns": [name for name, _ in columns], "rows": sorted(rows, key=repr)}


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _expression(name: str, kind: str, flavour: str) -> str:
    if kind.startswith(_GEOMETRIES):
        # MySQL 8 turns the axes of geographic systems round unless it is told not to
        axes = ", 'axis-order=long-lat'" if flavour == "mysql8" else ""
        return f"CONCAT(IFNULL(ST_SRID({name}), ''), ':', HEX(ST_AsBinary({name}{axes})))"
    if kind.startswith(("float", "double")):
        return f"{name} + 0e0"  # shown with 6 digits, or the declared ones, otherwise: not all of it
    if kind.startswith("vector"):
        return f"HEX({name})"  # PyMySQL takes it for ASCII text
    if kind.startswith(_AS_TEXT):
        return f"CAST({name} AS CHAR)"
    return name


def _plain(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind.startswith(_GEOMETRIES):
        srid, _, wkb = (value.decode() if isinstance(value, bytes) else value).partition(":")
        return {"srid": int(srid), "wkb": base64.b64encode(bytes.fromhex(wkb)).decode()}
    if kind == "bit(1)":
        return value == b"\x01"
    if kind.startswith("vector"):
        return list(struct.unpack(f"<{len(value) // 8}f", bytes.fromhex(value)))
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, Decimal):
        return format(value, "f")
    if kind.startswith("bigint") and "unsigned" in kind:
        return str(value)
    return value
