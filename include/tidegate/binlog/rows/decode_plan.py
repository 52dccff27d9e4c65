"""How to decode the rows of one TABLE_MAP as one table version: a plan that is data, not code.

In:  a TableMap (from the event) and a TableVersion (from schema_history).
Out: a Plan: an int64 array for the kernel, and what finish.py needs per column. SchemaMismatch if
     the two disagree in anything the event says: column count, types, lengths; with MINIMAL or FULL
     metadata also signedness, charsets, names, members. UnsupportedValue for a column that can only
     be decoded by guessing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.binlog.format.table_map import TableMap, WireColumn, parse_table_map
from tidegate.binlog.rows.column_cells import Cell, cell_of
from tidegate.binlog.rows.versioned import hidden_columns, is_hash, row_end_of, row_start_of
from tidegate.columnar.column_plan import ColumnPlan
from tidegate.columnar.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.errors import SchemaMismatch, UnsupportedValue
from tidegate.schema.follow.computed import computed_beside_key
from tidegate.schema.model.charset_text import codec_of, decode_member, same_charset
from tidegate.schema.model.columns import Column, Generated, Index, IndexKind, TableVersion
from tidegate.schema.model.type_table import GEOMETRY_NAMES, Kind, Wire
from tidegate.schema.model.types import UNKNOWN, CanonicalType, ZeroDates, canonical
from tidegate.silver_names import silver_column

_MISSED: Final = "a DDL was missed: run `tidegate schema refresh`, which asks the server"


@dataclass(frozen=True, slots=True)
class Plan:
    """columns: in table order. words: int64[columns * COLUMN_WORDS] without addresses; a batch
    fills these into its own copy. keyed: columns up to and including the last key column, 0
    without a key. row_bytes_usual: a guess, for sizing. hidden: how many of the last columns the
    server hides. row_end, row_start: numbers of the columns that end and begin a row of a
    system-versioned table, or -1 (versioned.py). defined: the columns with their defaults; () if
    the plan comes from a TABLE_MAP alone. schema: of the columns, under their names in silver.
    marks: int64[columns, MARK_WORDS] for a batch to begin with. unasked: names of columns that
    any image may lack. asked: the same, of generated columns whose values are asked for.
    """

    columns: tuple[ColumnPlan, ...]
    words: npt.NDArray[np.int64]
    keyed: int
    row_bytes_usual: int
    table_map: TableMap
    hidden: int = 0
    row_end: int = -1
    row_start: int = -1
    defined: tuple[Column, ...] = ()
    unasked: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    schema: pa.Schema = field(init=False)
    marks: npt.NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        """Make the parts of the plan every batch needs, once."""
        names = [column.silver for column in self.defined] or [silver_column(column.name) for column in self.columns]
        schema = pa.schema([pa.field(n, column.type.arrow) for n, column in zip(names, self.columns, strict=True)])
        marks = np.zeros((len(self.columns), L.MARK_WORDS), np.int64)
        marks[:, L.MARK_JSON] = [wire.type == Wire.JSON for wire in self.table_map.columns]
        if self.defined:
            marks[:, L.MARK_COMPUTED] = [column.generated is Generated.VIRTUAL for column in self.defined]
            may_lack = self.unasked | self.asked
            marks[:, L.MARK_UNASKED] = [column.silver in may_lack or is_hash(column) for column in self.defined]
        marks.setflags(write=False)
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "marks", marks)


@lru_cache(maxsize=4096)
def make_plan(
    body: bytes,
    version: TableVersion,
    zero_dates: ZeroDates = ZeroDates.NULL,
    *,
    mariadb: bool = False,
    left_out: frozenset[str] = frozenset(),
    asks: bool = False,
) -> Plan:
    """Check a TABLE_MAP body against a table version, and plan. Raises SchemaMismatch,
    UnsupportedValue, DecodeError.

    zero_dates: what a zero or impossible date becomes. In a key it is always an error: two such
    keys would be one NULL. mariadb: whether a MariaDB wrote the event. left_out: columns that
    silver lacks, under its names. In a table without a key they are needed nevertheless: all
    columns identify a row. asks: as in CommitSpan.
    """
    table_map = parse_table_map(body, mariadb=mariadb)
    hidden = hidden_columns(table_map, version)
    columns = version.columns + hidden
    _check_columns(table_map, columns, version)
    words = np.zeros((len(columns), L.COLUMN_WORDS), np.int64)
    refused = zero_dates is ZeroDates.ERROR
    plans = []
    usual = (len(columns) + 7) // 8
    for i, (wire, column) in enumerate(zip(table_map.columns, columns, strict=True)):
        kind = canonical(column)
        _check_metadata(wire, column, kind)
        cell, width, parameters = _cell(wire, column, kind)
        words[i, L.KIND], words[i, L.WIDTH] = cell, width
        words[i, L.P1 : L.P1 + len(parameters)] = parameters
        words[i, L.KEY] = column.id in version.key
        usual += width if not wire.nullable else width // 2
        words[i, L.DATES] = refused or column.id in version.key
        plans.append(
            ColumnPlan(
                column.name,
                kind,
                cell,
                _charset(column, kind),
                _members(wire, column, kind),
                _inflated_max(wire),
                in_key=column.id in version.key,
            )
        )
    keyed = int(np.flatnonzero(words[:, L.KEY])[-1]) + 1 if version.key else 0
    words.setflags(write=False)
    flat, period = words.reshape(-1), (row_end_of(columns), row_start_of(columns))
    unasked = left_out.difference(version.silver_key) if version.key else frozenset[str]()
    asked = frozenset(c.silver for c in computed_beside_key(version)) - unasked if asks else frozenset[str]()
    return Plan(tuple(plans), flat, keyed, max(usual, 1), table_map, len(hidden), *period, columns, unasked, asked)


def agrees(wire: WireColumn, column: Column) -> bool:
    """Whether a column of an event agrees with schema_history, in everything the event says but its
    name.
    """
    try:
        kind = canonical(column)
        _check_metadata(wire, column, kind)
        _cell(wire, column, kind)
        if kind.kind in (Kind.ENUM, Kind.SET):
            _members(wire, column, kind)
    except (SchemaMismatch, UnsupportedValue):
        return False
    return True


def _inflated_max(wire: WireColumn) -> int:
    if wire.type == Wire.VARCHAR_COMPRESSED:
        return wire.length - 1
    return (1 << 8 * wire.length) - 1 if wire.type == Wire.BLOB_COMPRESSED else 0


def _charset(column: Column, kind: CanonicalType) -> str:
    if kind.kind is not Kind.TEXT:
        return ""
    if not column.charset:
        raise SchemaMismatch(f"column {column.name} is {column.type}, but schema_history has no character set for it")
    codec_of(column.charset)
    return column.charset


def _check_columns(table_map: TableMap, columns: tuple[Column, ...], version: TableVersion) -> None:
    here, known = len(table_map.columns), len(columns)
    named = table_map.columns and table_map.columns[0].name is not None
    names = [wire.name for wire in table_map.columns]
    if here != known:
        more = f" (event: {', '.join(map(str, names))})" if named else ""
        if not named and here > known:
            more = "; MariaDB's hidden columns (system versioning, a unique key over TEXT) would need metadata FULL"
        raise SchemaMismatch(
            f"event has {here} columns, schema_history version {version.version} has {known}{more}",
            remedy=_MISSED,
        )
    for i, (name, column) in enumerate(zip(names, columns, strict=True), 1):
        if named and name != column.name:
            raise _differs(f"column {i} is named {name}", f"{column.name}")
    if named and not table_map.prefixed:
        _check_primary_key(table_map, columns, version)


def _check_primary_key(table_map: TableMap, columns: tuple[Column, ...], version: TableVersion) -> None:
    """With metadata FULL, an event without a primary key says that the table has none.

    If there is no primary key, a server takes a unique key over NOT NULL columns for it. MariaDB
    adds the row end of a system-versioned table to the columns of each unique key. Hidden or not,
    it is left out here.
    """
    end = row_end_of(columns)
    ends = {columns[end].id} if end >= 0 else set()
    indexes = [replace(i, parts=without(i.parts, ends)) for i in version.indexes]
    known = next((index.parts for index in indexes if index.kind is IndexKind.PRIMARY and index.whole), ())
    in_event = without((columns[number].id for number in table_map.primary_key or ()), ends)
    if not indexes or in_event == known or (not known and stands_for_primary(in_event, indexes)):
        return
    by_id = {column.id: column.name for column in columns}
    event, history = (", ".join(by_id.get(i, "?") for i in ids) or "none" for ids in (in_event, known))
    raise _differs(f"the primary key is {event}", history)


def without(parts: Iterable[int], ends: Collection[int]) -> tuple[int, ...]:
    """The columns of a key, without those that end a row's time."""
    return tuple(part for part in parts if part not in ends)


def stands_for_primary(parts: tuple[int, ...], indexes: Sequence[Index]) -> bool:
    """Whether one of the unique keys has these columns, in this order."""
    return any(index.kind is IndexKind.UNIQUE and index.whole and index.parts == parts for index in indexes)


def _differs(event: str, history: str) -> SchemaMismatch:
    return SchemaMismatch(
        f"event says {event}, schema_history says {history}",
        remedy=_MISSED,
    )


def _check_metadata(wire: WireColumn, column: Column, kind: CanonicalType) -> None:
    """Check the facts of MINIMAL or FULL metadata beside the types."""
    text = kind.text
    if wire.unsigned is not None and wire.type != Wire.YEAR and wire.unsigned != text.unsigned:
        raise _differs(f"{column.name} is {'unsigned' if wire.unsigned else 'signed'}", column.type)
    charset = "binary" if kind.kind in (Kind.BINARY, Kind.UUID, Kind.INET, Kind.VECTOR) else column.charset
    if wire.charset is not None and charset and not same_charset(wire.charset, charset):
        raise _differs(f"{column.name} has character set {wire.charset}", charset)
    if wire.geometry is not None and text.base not in GEOMETRY_NAMES[min(wire.geometry, len(GEOMETRY_NAMES) - 1)]:
        raise _differs(f"{column.name} is geometry type {wire.geometry}", column.type)
    if wire.dimensions is not None and (wire.dimensions,) != text.numbers:
        raise _differs(f"{column.name} has {wire.dimensions} dimensions", column.type)


def _members(wire: WireColumn, column: Column, kind: CanonicalType) -> tuple[str, ...]:
    """Members of an enum or set. If the event has some, they must be those of schema_history."""
    known = kind.text.members
    if wire.members is None:
        if any(UNKNOWN in member for member in known):
            raise UnsupportedValue(
                f"members of column {column.name} ({column.type}) have characters that information_schema shows as '?'",
                remedy="set binlog_row_metadata=FULL at the source",
            )
        return known
    members = tuple(decode_member(wire.charset or "utf8mb4", member) for member in wire.members)
    shown = tuple(_as_shown(m) if UNKNOWN in k else m for m, k in zip(members, known, strict=False))
    if len(members) != len(known) or shown != known:
        raise _differs(f"{column.name} has members {members!r}", column.type)
    return members


def _as_shown(member: str) -> str:
    """The member with marks for characters a baseline can't know: '?', and those beyond the basic
    plane.
    """
    return "".join(UNKNOWN if c == "?" or c > "\uffff" else c for c in member)


def _cell(wire: WireColumn, column: Column, kind: CanonicalType) -> Cell:
    """The cell of a column, its wire type checked against its type in schema_history."""
    cell = cell_of(wire, column, kind)
    if cell is None:
        raise _differs(f"{column.name} is {wire.type.name} ({wire.length}, {wire.decimals})", column.type)
    return cell
