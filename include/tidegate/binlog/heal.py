"""A table version from the event that disagreed with the last one: what a DDL did that the log doesn't hold.

In:  the body of a TABLE_MAP with all that binlog_row_metadata=FULL tells, and the version that it contradicts.
Out: the version that holds from its transaction on, kind `healed`; SchemaMismatch when the event leaves a doubt.

A column keeps its id by name. Nothing else is certain: a column that went and another that came in its place may be a
rename, or not, and only the server knows what rows from before have in a column that came. Such a table waits, and
`tidegate schema refresh` asks the server. What was made is checked by planning the very event with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from tidegate.binlog.plan import agrees, make_plan, stands_for_primary
from tidegate.binlog.table_map import (
    BLOB_PREFIXES,
    GEOMETRIES,
    NUMBER_NAMES,
    TableMap,
    Wire,
    WireColumn,
    parse_table_map,
)
from tidegate.binlog.versioned import hidden_columns
from tidegate.errors import SchemaMismatch, Terminal
from tidegate.schema.model.charset_text import WIDEST, decode_member
from tidegate.schema.model.columns import Column, Index, IndexKind, TableVersion
from tidegate.schema.model.types import members_text
from tidegate.schema.replay.indexes import key_of

HEALED: Final = "healed"
REFRESHED: Final = "refreshed"
# What a person can do when the event alone can't tell.
REFRESH: Final = "run `tidegate schema refresh`, which asks the server"

_PLAIN: Final = {Wire.YEAR: "year(4)", Wire.DATE: "date", Wire.JSON: "json"}
_TEMPORAL: Final = {Wire.TIMESTAMP2: "timestamp", Wire.DATETIME2: "datetime", Wire.TIME2: "time"}
# MariaDB logs UUID, INET6 and INET4 as such strings of bytes, and they are not told apart from BINARY.
_MARIADB_AMBIGUOUS_BYTES: Final = frozenset({4, 16})


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first TABLE_MAP of a table that doesn't fit. commit_ts, file, pos: of its first rows event."""

    body: bytes
    mariadb: bool
    commit_ts: int
    file: str
    pos: int


def heal(found: Mismatch, last: TableVersion, new_id: Callable[[], int], *, added_are_null: bool) -> TableVersion:
    """Raises SchemaMismatch when the event doesn't tell all of it.

    added_are_null: somebody vouches that rows from before have NULL in a nullable column that came without its DDL.
    """
    table_map = parse_table_map(found.body, mariadb=found.mariadb)
    wires = _user_columns(table_map, last)
    if any(wire.name is None for wire in wires):
        raise _doubt("the event doesn't name its columns", "set binlog_row_metadata=FULL at the source, or " + REFRESH)
    known = {column.name.lower(): column for column in last.columns}
    came = [wire for wire in wires if str(wire.name).lower() not in known]
    names = {str(wire.name).lower() for wire in wires}
    went = [column.name for column in last.columns if column.name.lower() not in names]
    if came and went:
        raise _doubt(f"column {went[0]} went and {came[0].name} came: that may be a rename", REFRESH)
    for wire in came:
        if not (added_are_null and wire.nullable):
            raise _doubt(f"column {wire.name} came, and what rows from before have in it isn't in the log", REFRESH)
    columns = tuple(_column(wire, known.get(str(wire.name).lower()), found, new_id) for wire in wires)
    made = _version(found, last, columns, table_map)
    try:
        make_plan(found.body, made, mariadb=found.mariadb)
    except Terminal as error:
        raise _doubt(f"what the event tells doesn't explain it ({error.what})", REFRESH) from error
    return made


def _user_columns(table_map: TableMap, last: TableVersion) -> tuple[WireColumn, ...]:
    """Without what MariaDB hides behind the others."""
    known, wires = {column.name for column in last.columns}, table_map.columns
    nothing = replace(last, columns=())
    while wires and wires[-1].name not in known and hidden_columns(replace(table_map, columns=wires[-1:]), nothing):
        wires = wires[:-1]
    return wires


def _doubt(what: str, remedy: str) -> SchemaMismatch:
    return SchemaMismatch(what, remedy=remedy)


def _column(wire: WireColumn, old: Column | None, found: Mismatch, new_id: Callable[[], int]) -> Column:
    """As it was when that fits the event; else with the event's type, the id kept."""
    name = str(wire.name)
    if old is not None:
        same = replace(old, name=name, nullable=wire.nullable)
        if agrees(wire, same):
            return same
    kind, charset = _type_text(wire, mariadb=found.mariadb)
    if old is None:
        return Column(new_id(), name, kind, wire.nullable, charset, invisible=wire.visible is False)
    collation = old.collation if old.charset == charset else ""
    return replace(old, name=name, nullable=wire.nullable, type=kind, charset=charset, collation=collation)


def _type_text(wire: WireColumn, *, mariadb: bool) -> tuple[str, str]:
    """(column_type, character set) of a column that the last version doesn't explain."""
    if wire.type in NUMBER_NAMES:
        return NUMBER_NAMES[wire.type] + (" unsigned" if wire.unsigned else ""), ""
    if wire.type == Wire.NEWDECIMAL:
        return f"decimal({wire.length},{wire.decimals})" + (" unsigned" if wire.unsigned else ""), ""
    if wire.type in _PLAIN:
        return _PLAIN[wire.type], ""
    if wire.type in _TEMPORAL:
        return _TEMPORAL[wire.type] + (f"({wire.decimals})" if wire.decimals else ""), ""
    if wire.type == Wire.BIT:
        return f"bit({wire.length})", ""
    if wire.type == Wire.VECTOR and wire.dimensions is not None:
        return f"vector({wire.dimensions})", ""
    if wire.type == Wire.GEOMETRY and wire.geometry is not None:
        return GEOMETRIES[min(wire.geometry, len(GEOMETRIES) - 1)][0], ""
    if wire.type in (Wire.ENUM, Wire.SET) and wire.members is not None and wire.charset is not None:
        members = tuple(decode_member(wire.charset, member) for member in wire.members)
        return f"{wire.type.name.lower()}({members_text(members)})", wire.charset
    if wire.charset is not None:
        return _string(wire, wire.charset, mariadb=mariadb)
    raise _doubt(f"column {wire.name} is {wire.type.name}, of which the event doesn't tell all", REFRESH)


def _string(wire: WireColumn, charset: str, *, mariadb: bool) -> tuple[str, str]:
    plain = charset == "binary"
    if wire.type == Wire.BLOB and wire.length in BLOB_PREFIXES:
        return BLOB_PREFIXES[wire.length] + ("blob" if plain else "text"), "" if plain else charset
    fixed = wire.type == Wire.STRING
    if not (fixed or wire.type in (Wire.VARCHAR, Wire.VAR_STRING)):
        raise _doubt(f"column {wire.name} is {wire.type.name}, of which the event doesn't tell all", REFRESH)
    if plain:
        if fixed and mariadb and wire.length in _MARIADB_AMBIGUOUS_BYTES:
            raise _doubt(f"column {wire.name} may be BINARY({wire.length}), UUID or INET", REFRESH)
        return f"{'' if fixed else 'var'}binary({wire.length})", ""
    return f"{'' if fixed else 'var'}char({wire.length // WIDEST.get(charset, 1)})", charset


def _version(found: Mismatch, last: TableVersion, columns: tuple[Column, ...], table_map: TableMap) -> TableVersion:
    """Unique keys that lost a column are forgotten: rows then count as having no key, which is never wrong."""
    here = {column.id for column in columns}
    indexes = tuple(i for i in last.indexes if i.kind is not IndexKind.PRIMARY and here.issuperset(i.parts))
    primary = next((i for i in last.indexes if i.kind is IndexKind.PRIMARY), None)
    told = table_map.primary_key or ()
    parts = tuple(columns[number].id for number in told if number < len(columns))
    if parts and (primary is not None or not stands_for_primary(parts, indexes)):
        if primary is None or primary.parts != parts:
            if table_map.prefixed:
                raise _doubt("the primary key has prefixes of columns", REFRESH)
            primary = Index("PRIMARY", IndexKind.PRIMARY, parts, hidden_end=len(parts) < len(told))
        indexes = (primary, *indexes)
    return replace(
        last,
        version=last.version + 1,
        commit_ts=found.commit_ts,
        file=found.file,
        pos=found.pos,
        moved=None,
        kind=HEALED,
        ddl="",
        columns=columns,
        key=key_of(columns, indexes),
        indexes=indexes,
    )
