"""A new table version from an event that contradicts the last one: the effect of a DDL the log
lacks.

In:  the body of a TABLE_MAP with all of binlog_row_metadata=FULL; the version it contradicts.
Out: the version that is valid from its transaction on, of kind `healed`; SchemaMismatch if the
     event leaves a doubt.

A column keeps its id by name. Nothing else is certain. If one column is gone and another has come,
that may be a rename, or not. Only the server knows the values of older rows in a new column. Such a
table waits, and `tidegate schema refresh` asks the server. The result is checked: a plan for this
very event is made with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from tidegate.binlog.format.table_map import TableMap, WireColumn, parse_table_map
from tidegate.binlog.format.wire_types import type_text
from tidegate.binlog.rows.decode_plan import agrees, make_plan, stands_for_primary
from tidegate.binlog.rows.versioned import hidden_columns
from tidegate.errors import SchemaMismatch, Terminal, UnsupportedValue
from tidegate.schema.model.columns import Column, Index, IndexKind, TableVersion
from tidegate.schema.model.type_table import TYPES, Wire
from tidegate.schema.replay.indexes import key_of

HEALED: Final = "healed"
REFRESHED: Final = "refreshed"
# What a person can do if the event alone leaves a doubt.
REFRESH: Final = "run `tidegate schema refresh`, which asks the server"

# In the format of before 10.1 the event doesn't say how many digits the fraction has.
_OLD_TEMPORALS: Final = frozenset({Wire.TIMESTAMP, Wire.DATETIME, Wire.TIME})
_WITH_CHARSET: Final = frozenset(
    {*TYPES["char"].wire, *TYPES["varchar"].wire, *TYPES["text"].wire, Wire.ENUM, Wire.SET}
)
# MariaDB logs UUID, INET6 and INET4 as strings of so many bytes: they look like BINARY.
_MARIADB_AMBIGUOUS_BYTES: Final = frozenset({4, 16})


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first TABLE_MAP of a table that doesn't fit. commit_ts, file, pos: of its first rows event."""

    body: bytes
    mariadb: bool
    commit_ts: int
    file: str
    pos: int


def heal(mismatch: Mismatch, last: TableVersion, new_id: Callable[[], int], *, added_are_null: bool) -> TableVersion:
    """Raises SchemaMismatch if the event doesn't say everything.

    added_are_null: somebody knows that older rows have NULL in a nullable column whose ALTER isn't
    in the log.
    """
    table_map = parse_table_map(mismatch.body, mariadb=mismatch.mariadb)
    wires = _user_columns(table_map, last)
    if any(wire.name is None for wire in wires):
        raise _doubt("the event doesn't name its columns", "set binlog_row_metadata=FULL at the source, or " + REFRESH)
    known = {column.name.lower(): column for column in last.columns}
    came = [wire for wire in wires if str(wire.name).lower() not in known]
    names = {str(wire.name).lower() for wire in wires}
    went = [column.name for column in last.columns if column.name.lower() not in names]
    if came and went:
        raise _doubt(f"column {went[0]} disappeared and {came[0].name} appeared: that may be a rename", REFRESH)
    for wire in came:
        if not (added_are_null and wire.nullable):
            raise _doubt(f"column {wire.name} came, and what rows from before have in it isn't in the log", REFRESH)
    columns = tuple(_column(wire, known.get(str(wire.name).lower()), mismatch, new_id) for wire in wires)
    made = _version(mismatch, last, columns, table_map)
    try:
        make_plan(mismatch.body, made, mariadb=mismatch.mariadb)
    except Terminal as error:
        raise _doubt(f"the event's own facts don't explain it ({error.what})", REFRESH) from error
    return made


def _user_columns(table_map: TableMap, last: TableVersion) -> tuple[WireColumn, ...]:
    """The event's columns without those that MariaDB hides after them."""
    known, wires = {column.name for column in last.columns}, table_map.columns
    nothing = replace(last, columns=())
    while wires and wires[-1].name not in known and hidden_columns(replace(table_map, columns=wires[-1:]), nothing):
        wires = wires[:-1]
    return wires


def _doubt(what: str, remedy: str) -> SchemaMismatch:
    return SchemaMismatch(what, remedy=remedy)


def _column(wire: WireColumn, old: Column | None, mismatch: Mismatch, new_id: Callable[[], int]) -> Column:
    """The old column if it fits the event; else one with the event's type and the old id."""
    name = str(wire.name)
    if old is not None:
        same = replace(old, name=name, nullable=wire.nullable)
        if agrees(wire, same):
            return same
    kind, charset = _type_text(wire, mariadb=mismatch.mariadb)
    if old is None:
        return Column(new_id(), name, kind, wire.nullable, charset, invisible=wire.visible is False)
    collation = old.collation if old.charset == charset else ""
    return replace(old, name=name, nullable=wire.nullable, type=kind, charset=charset, collation=collation)


def _type_text(wire: WireColumn, *, mariadb: bool) -> tuple[str, str]:
    """(column_type, character set) of a column the last version doesn't explain, if the event says
    everything.
    """
    untold = (
        wire.type in _OLD_TEMPORALS
        or (wire.type == Wire.VECTOR and wire.dimensions is None)
        or (wire.type == Wire.GEOMETRY and wire.geometry is None)
        or (wire.type in (Wire.ENUM, Wire.SET) and wire.members is None)
        or (wire.type in _WITH_CHARSET and wire.charset is None)
    )
    try:
        kind = type_text(wire)
    except UnsupportedValue:
        untold, kind = True, ""
    if untold:
        raise _doubt(f"column {wire.name} is {wire.type.name}, of which the event doesn't tell all", REFRESH)
    ambiguous = mariadb and wire.type == Wire.STRING and wire.length in _MARIADB_AMBIGUOUS_BYTES
    if ambiguous and wire.charset == "binary":
        raise _doubt(f"column {wire.name} may be BINARY({wire.length}), UUID or INET", REFRESH)
    if wire.type not in _WITH_CHARSET or (wire.charset == "binary" and wire.type not in (Wire.ENUM, Wire.SET)):
        return kind, ""
    return kind, wire.charset or ""


def _version(mismatch: Mismatch, last: TableVersion, columns: tuple[Column, ...], table_map: TableMap) -> TableVersion:
    """The healed version. Unique keys with a dropped column are left out: then rows count as having
    no key, which is never wrong.
    """
    here = {column.id for column in columns}
    indexes = tuple(i for i in last.indexes if i.kind is not IndexKind.PRIMARY and here.issuperset(i.parts))
    primary = next((i for i in last.indexes if i.kind is IndexKind.PRIMARY), None)
    key_columns = table_map.primary_key or ()
    parts = tuple(columns[number].id for number in key_columns if number < len(columns))
    if parts and (primary is not None or not stands_for_primary(parts, indexes)):
        if primary is None or primary.parts != parts:
            if table_map.prefixed:
                raise _doubt("the primary key has prefixes of columns", REFRESH)
            primary = Index("PRIMARY", IndexKind.PRIMARY, parts, hidden_end=len(parts) < len(key_columns))
        indexes = (primary, *indexes)
    return replace(
        last,
        version=last.version + 1,
        commit_ts=mismatch.commit_ts,
        file=mismatch.file,
        pos=mismatch.pos,
        moved=None,
        kind=HEALED,
        ddl="",
        columns=columns,
        key=key_of(columns, indexes),
        indexes=indexes,
    )
