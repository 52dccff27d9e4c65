"""A table version as information_schema.columns of its server shows it, and as `tidegate ddl` prints it.

In:  a TableVersion.
Out: dicts of plain values.
"""

from __future__ import annotations

from typing import Any, Final

from tidegate.ddl_script.shown_defaults import shown_default, shown_now
from tidegate.schema.model.charsets import bytes_per_character
from tidegate.schema.model.columns import Column, Generated, Index, IndexKind, TableVersion
from tidegate.schema.model.server import ServerVersion
from tidegate.schema.model.types import parse_type

_DEFAULT_GENERATED_SINCE: Final = 80000


def shown_keys(version: TableVersion) -> dict[int, str]:
    """Column id -> PRI, UNI, MUL or "", as information_schema.columns.column_key says.

    Without a PRIMARY KEY the first unique index of NOT NULL columns shows as PRI (sql/table.cc, open_binary_frm).
    """
    columns = {column.id: column for column in version.columns}
    nullable = {column.id: column.nullable for column in version.columns}
    primary = next((i for i in version.indexes if i.kind is IndexKind.PRIMARY), None)
    if primary is None:
        fit = [i for i in version.indexes if i.kind is IndexKind.UNIQUE and i.whole and not _hashed(i, columns)]
        primary = next((i for i in fit if not any(nullable.get(part, True) for part in i.parts)), None)
    keys: dict[int, str] = {}
    for index in version.indexes:
        for place, part in enumerate(index.parts):
            rank = _rank(index, place, index is primary)
            if part and _ORDER[rank] > _ORDER[keys.get(part, "")]:
                keys[part] = rank
    return keys


def _hashed(index: Index, columns: dict[int, Column]) -> bool:
    """Whether MariaDB keeps a unique key as a hash, because its values may be longer than InnoDB's limit."""
    size = 0
    for column in (columns[part] for part in index.parts if part in columns):
        text = parse_type(column.type)
        if text.base.endswith(("text", "blob")):
            return True
        if text.base in ("char", "varchar", "binary", "varbinary") and text.numbers:
            size += text.numbers[0] * bytes_per_character(column.charset)
    return size > _KEY_BYTES_MAX


_KEY_BYTES_MAX: Final = 3072
_ORDER: Final = {"": 0, "MUL": 1, "UNI": 2, "PRI": 3}


def _rank(index: Index, place: int, is_primary: bool) -> str:
    if is_primary:
        return "PRI"
    if place:
        return ""
    alone = index.kind is IndexKind.UNIQUE and len(index.parts) == 1 and not index.hidden_end
    return "UNI" if alone else "MUL"


def primary_key(version: TableVersion) -> list[str]:
    """Names of the PRIMARY KEY's columns in key order; [] when the table has none."""
    names = {column.id: column.name for column in version.columns}
    return [names[part] for i in version.indexes if i.kind is IndexKind.PRIMARY for part in i.parts]


def shown_columns(version: TableVersion, server: ServerVersion) -> list[dict[str, Any]]:
    """The columns as `tidegate ddl` prints them."""
    keys = shown_keys(version)
    return [
        {
            "name": column.name,
            "type": column.type,
            "nullable": column.nullable,
            "charset": column.charset or None,
            "collation": column.collation or None,
            "key": keys.get(column.id, ""),
            "extra": _extra(column, server),
            "default": shown_default(column, server),
            "generation_expression": column.generation_expression or None,
        }
        for column in version.columns
    ]


def _extra(column: Column, server: ServerVersion) -> str:
    words = []
    if column.auto_increment:
        words.append("auto_increment")
    elif column.default_is_expression and not server.mariadb and server.number >= _DEFAULT_GENERATED_SINCE:
        words.append("DEFAULT_GENERATED")
    if column.on_update:
        words.append(f"on update {shown_now(column.on_update, column, server)}")
    if column.generated is not Generated.NO:
        words.append(f"{column.generated.upper()} GENERATED")
    elif column.generation_expression:  # the period of a system-versioned table
        words.append("STORED GENERATED")
    if column.invisible:
        words.append("INVISIBLE")
    return (", " if server.mariadb else " ").join(words)


def shown_table(version: TableVersion, server: ServerVersion) -> dict[str, Any]:
    """A table as `tidegate ddl` prints it."""
    return {"columns": shown_columns(version, server), "primary_key": primary_key(version)}
