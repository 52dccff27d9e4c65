"""A schema file: a table's columns as the changefeed saw them, and their DDL.

In:  the file's bytes.
Out: a SchemaFile; for a table older than the changefeed, a CREATE TABLE with the same content.
     StreamCorrupt.

The file says less than a CREATE TABLE: no indexes but the primary key, no partitions, no
collations; members of enum and set only as newer TiCDCs write them (ColumnElems). Omissions are
written as unknown.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from tidegate.errors import StreamCorrupt
from tidegate.remedy import REPORT
from tidegate.schema.ddl.statement import SaidColumn
from tidegate.schema.model.types import UNKNOWN
from tidegate.table_names import folded

# ColumnType in the file -> type in a CREATE TABLE, where these differ.
_OTHER_NAMES: Final = {"VAR_STRING": "VARCHAR"}
_LENGTHS: Final = ("BIT", "CHAR", "VARCHAR", "BINARY", "VARBINARY")
_SIZED: Final = ("BIT", "DECIMAL")  # whose values depend on their numbers
_FRACTIONS: Final = ("DATETIME", "TIMESTAMP", "TIME")
_LISTS: Final = ("ENUM", "SET")


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """database, table: in lower case, as to TiDB a name is the same in any case. version: commit_ts
    of the DDL, or of the changefeed's beginning. query: "" when no DDL made the file.
    """

    database: str
    table: str
    version: int
    query: str
    action: int
    columns: tuple[dict[str, Any], ...]

    @property
    def created(self) -> str:
        """CREATE TABLE IF NOT EXISTS with these columns."""
        lines = [f"{quoted(str(column['ColumnName']))} {_listed(column)}{_not_null(column)}" for column in self.columns]
        key = [quoted(str(column["ColumnName"])) for column in self.columns if column.get("ColumnIsPk") == "true"]
        if key:
            lines.append(f"PRIMARY KEY ({', '.join(key)})")
        return f"CREATE TABLE IF NOT EXISTS {quoted(self.database)}.{quoted(self.table)} ({', '.join(lines)})"

    @property
    def said(self) -> tuple[SaidColumn, ...]:
        """The columns, to compare with the replayed ones."""
        return tuple(
            SaidColumn(str(column["ColumnName"]), _whole_type(column), column.get("ColumnIsPk") == "true")
            for column in self.columns
        )


def schema_file(data: bytes, where: str) -> SchemaFile:
    """Raises StreamCorrupt."""
    try:
        said = json.loads(data)
        return SchemaFile(
            folded(str(said["Schema"])),
            folded(str(said.get("Table") or "")),
            int(said["TableVersion"]),
            str(said.get("Query") or ""),
            int(said.get("Type") or 0),
            tuple(said.get("TableColumns") or ()),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise StreamCorrupt(f"a schema file can't be read: {error!r}", where=where, remedy=REPORT) from error


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _type(column: dict[str, Any]) -> str:
    words = str(column["ColumnType"]).upper().split()
    base = _OTHER_NAMES.get(words[0], words[0])
    precision, scale = column.get("ColumnPrecision"), column.get("ColumnScale")
    numbers = ""
    if base == "DECIMAL":
        numbers = f"({precision},{scale or 0})"
    elif base in _LENGTHS and precision:
        numbers = f"({precision})"
    elif base in _FRACTIONS and scale:
        numbers = f"({scale})"
    elif base in _LISTS:
        numbers = f"('{UNKNOWN}')"
    return " ".join([base + numbers, *words[1:]])


def _listed(column: dict[str, Any]) -> str:
    """With the members of an enum or a set, where the file has them."""
    said = _type(column)
    if not has_members(column):
        return said
    members = (str(member).replace("\\", "\\\\").replace("'", "''") for member in column["ColumnElems"])
    return said.replace(f"'{UNKNOWN}'", ",".join(f"'{member}'" for member in members))


def has_members(column: dict[str, Any]) -> bool:
    """Whether the file names an enum or set column's members."""
    return bool(column.get("ColumnElems"))


def is_list(column: dict[str, Any]) -> bool:
    return str(column.get("ColumnType")).split()[0].upper() in _LISTS


def _whole_type(column: dict[str, Any]) -> str:
    sized = str(column["ColumnType"]).upper().split()[0] in _SIZED
    return "" if sized and not column.get("ColumnPrecision") else _type(column).lower()


def _not_null(column: dict[str, Any]) -> str:
    return " NOT NULL" if column.get("ColumnNullable") == "false" else ""
