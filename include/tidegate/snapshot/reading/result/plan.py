"""The reading of a table version by SELECT, with each value as in the binlog: a plan of data.

In:  a TableVersion.
Out: the select list; per column how the kernel reads it and how its array is finished (by decode's
     own finish).

The reasons why the values are the same:
- `character_set_results` is NULL: the server converts nothing, so text comes in the column's own
  character set, as it is logged, and goes through decode's tables of characters. JSON, UUID and
  addresses come as decode's text.
- The binary protocol has FLOAT and DOUBLE as they are stored, dates as numbers (so '2024-02-31' is
  known for what it is), and BIT, geometries and vectors as bytes.
- The session's time zone is +00:00 and its sql_mode is empty: CHAR isn't padded, nothing else
changes with it. ENUM and SET come as their members' text: information_schema's members aren't
needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pymysql.constants import FIELD_TYPE

from tidegate.columnar.column_plan import ColumnPlan
from tidegate.columnar.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.errors import SchemaMismatch, UnsupportedValue
from tidegate.mysql.sql_text.sql import quote_name
from tidegate.remedy import REPORT
from tidegate.schema.model.charset_text import codec_of
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import CanonicalType, ZeroDates, canonical
from tidegate.snapshot.chunks.sampled import has_rowids
from tidegate.snapshot.reading.result import kernel as K  # noqa: N812 - a page of constants
from tidegate.tidb.jobs import ROWID_NAME

SESSION: Final = "SET SESSION time_zone = '+00:00', sql_mode = '', character_set_results = NULL"

_STRINGS: Final = frozenset(
    {
        *(FIELD_TYPE.VARCHAR, FIELD_TYPE.VAR_STRING, FIELD_TYPE.STRING, FIELD_TYPE.ENUM, FIELD_TYPE.SET),
        *(FIELD_TYPE.TINY_BLOB, FIELD_TYPE.MEDIUM_BLOB, FIELD_TYPE.LONG_BLOB, FIELD_TYPE.BLOB),
    }
)
_BYTES: Final = _STRINGS | {FIELD_TYPE.GEOMETRY, FIELD_TYPE.JSON, FIELD_TYPE.BIT, 242}  # 242: MySQL's VECTOR
# base -> (type code, bytes on the wire, cell when signed, cell when unsigned)
_INTEGERS: Final = {
    "tinyint": (FIELD_TYPE.TINY, 1, L.CELL_INT8, L.CELL_UINT8),
    "smallint": (FIELD_TYPE.SHORT, 2, L.CELL_INT16, L.CELL_UINT16),
    "mediumint": (FIELD_TYPE.INT24, 4, L.CELL_INT24, L.CELL_UINT24),
    "int": (FIELD_TYPE.LONG, 4, L.CELL_COPY32, L.CELL_UINT32),
    "bigint": (FIELD_TYPE.LONGLONG, 8, L.CELL_COPY64, L.CELL_UINT64),
}
_MOMENTS: Final = {
    Kind.DATE: (K.DATE, L.CELL_DATE, frozenset({FIELD_TYPE.DATE, FIELD_TYPE.NEWDATE})),
    Kind.DATETIME: (K.MOMENT, L.CELL_DATETIME, frozenset({FIELD_TYPE.DATETIME})),
    Kind.TIMESTAMP: (K.MOMENT, L.CELL_TIMESTAMP, frozenset({FIELD_TYPE.TIMESTAMP})),
}
_DECIMALS: Final = frozenset({FIELD_TYPE.NEWDECIMAL, FIELD_TYPE.DECIMAL})


@dataclass(frozen=True, slots=True)
class ReadColumn:
    """One column of the result. plan: None when it isn't for the arena. codes: its possible type
    codes.

    read_as, wire_bytes, decimals, geometry: as the kernel wants them. name: of the table's column.
    """

    name: str
    expression: str
    plan: ColumnPlan | None
    codes: frozenset[int]
    read_as: int
    wire_bytes: int = 0
    decimals: int = 0
    geometry: bool = False


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """columns: in order of the select list; those for the arena first, in table order. words: as
    the kernel wants.

    key: names of the columns that rows are read in order of; () where they are read in none. left_out:
    names of columns that silver doesn't have, of which no value stops the reading.
    """

    version: TableVersion
    columns: tuple[ReadColumn, ...]
    words: npt.NDArray[np.int64]
    key: tuple[str, ...]
    left_out: frozenset[str] = frozenset()

    @property
    def kept(self) -> tuple[ColumnPlan, ...]:
        """Columns for the arena."""
        return tuple(column.plan for column in self.columns if column.plan is not None)

    @property
    def schema(self) -> pa.Schema:
        """As decode's plan has it, without its own columns."""
        return pa.schema(
            [pa.field(column.silver, canonical(column).arrow) for column in self.version.columns],
        )

    @property
    def select_list(self) -> str:
        return ", ".join(column.expression for column in self.columns)

    def check(self, codes: list[int]) -> None:
        """Raise SchemaMismatch if a result has other column types: the table was changed meanwhile."""
        for column, code in zip(self.columns, codes, strict=True):
            if code not in column.codes:
                raise SchemaMismatch(
                    f"column {column.name} comes as type {code}, which its definition doesn't give",
                    where=self.version.name,
                    remedy="the wave is read again with the table's new definition",
                )


@lru_cache(maxsize=256)
def make_read_plan(
    version: TableVersion, zero_dates: ZeroDates = ZeroDates.NULL, left_out: frozenset[str] = frozenset()
) -> ReadPlan:
    """Plan a version. left_out: as of a ReadPlan. Raises UnsupportedValue, naming the column, for values
    not readable as they are logged.
    """
    if version.origin:  # a TiDB's, which has and says all text in UTF-8, whatever the column's character set
        utf8 = (replace(column, charset="utf8mb4") if column.charset else column for column in version.columns)
        version = replace(version, columns=tuple(utf8))
    columns = [_column(column, in_key=column.id in version.key) for column in version.columns]
    by_id = {column.id: column for column in version.columns}
    columns += [_number(by_id[i].name) for i in version.key if canonical(by_id[i]).kind in (Kind.ENUM, Kind.SET)]
    key = version.key_names
    if has_rowids(version):
        key = (ROWID_NAME,)
        columns.append(_number(ROWID_NAME, "SIGNED"))
    words = np.zeros((len(columns), L.COLUMN_WORDS), np.int64)
    for described, column in zip(words, columns, strict=True):
        described[K.READ_AS], described[K.WIRE_BYTES] = column.read_as, column.wire_bytes
        described[L.P3], described[L.P2] = column.decimals, column.geometry
        if column.plan is not None:
            described[L.KIND], described[L.KEY] = column.plan.cell, column.plan.in_key
            refused = zero_dates is ZeroDates.ERROR and column.name not in left_out
            described[L.DATES] = refused or column.plan.in_key
    words.setflags(write=False)
    return ReadPlan(version, tuple(columns), words, key, left_out)


def _number(name: str, kind: str = "UNSIGNED") -> ReadColumn:
    """A key's ENUM or SET as the number of its index's order; servers differ in how wide a number
    is.
    """
    return ReadColumn(name, f"CAST(CAST({quote_name(name)} AS {kind}) AS CHAR)", None, _STRINGS, K.SKIP_BYTES)


def _column(column: Column, *, in_key: bool) -> ReadColumn:
    kind = canonical(column)
    read = _shape(column, kind)
    plan = read.plan
    assert plan is not None, "every column of a version is for the arena"
    if in_key and kind.kind in (Kind.ENUM, Kind.SET) and "" in kind.text.members:
        raise UnsupportedValue(
            f"column {column.name} belongs to the key, and its member '' reads like no member: two rows of the source"
            " would be one",
            remedy="change the key at the source, or leave the table out",
        )
    return replace(read, plan=replace(plan, in_key=in_key))


def _shape(column: Column, kind: CanonicalType) -> ReadColumn:
    """A column by its kind."""
    name, here, text = column.name, quote_name(column.name), kind.text

    def made(cell: int, read_as: int, codes: frozenset[int], *, wire: int = 0, decimals: int = 0) -> ReadColumn:
        plan = ColumnPlan(name, kind, cell, "")
        return ReadColumn(name, here, plan, codes, read_as, wire, decimals, geometry=kind.kind is Kind.GEOMETRY)

    match kind.kind:
        case Kind.INT | Kind.UNSIGNED_BIGINT:
            code, wire, signed, unsigned = _INTEGERS[text.base]
            return made(unsigned if text.unsigned else signed, K.FIXED, frozenset({code}), wire=wire)
        case Kind.FLOAT:
            return made(L.CELL_COPY32, K.FIXED, frozenset({FIELD_TYPE.FLOAT}), wire=4)
        case Kind.DOUBLE:
            return made(L.CELL_COPY64, K.FIXED, frozenset({FIELD_TYPE.DOUBLE}), wire=8)
        case Kind.YEAR if text.numbers == (2,):
            raise UnsupportedValue(
                f"column {name} is YEAR(2), of which a SELECT shows two digits", remedy="make it YEAR(4) at the source"
            )
        case Kind.YEAR:
            return made(L.CELL_YEAR, K.YEAR, frozenset({FIELD_TYPE.YEAR}), wire=2)
        case Kind.DATE | Kind.DATETIME | Kind.TIMESTAMP:
            read_as, cell, codes = _MOMENTS[kind.kind]
            return made(cell, read_as, codes)
        case Kind.TIME:
            return made(L.CELL_TIME, K.TIME, frozenset({FIELD_TYPE.TIME}), decimals=(text.numbers or (0,))[0])
        case Kind.DECIMAL:
            return made(L.CELL_DECIMAL, K.DECIMAL, _DECIMALS, decimals=(*text.numbers, 0)[1] if text.numbers else 0)
        case Kind.DECIMAL_TEXT:
            return made(L.CELL_DECIMAL_TEXT, K.DECIMAL_TEXT, _DECIMALS)
        case Kind.BOOLEAN:
            return made(L.CELL_BIT, K.BIT, frozenset({FIELD_TYPE.BIT}))
        case Kind.BIT | Kind.BINARY | Kind.GEOMETRY | Kind.VECTOR:
            return made(L.CELL_BYTES, K.BYTES, _BYTES)
        case Kind.TEXT | Kind.ENUM | Kind.SET | Kind.JSON | Kind.UUID | Kind.INET:
            return _text(column, kind)
    raise UnsupportedValue(f"column {name} is {column.type}, which no reader knows", remedy=REPORT)


def _text(column: Column, kind: CanonicalType) -> ReadColumn:
    """Text in the column's own character set; other values come as UTF-8 or ASCII."""
    charset = column.charset if kind.kind in (Kind.TEXT, Kind.ENUM, Kind.SET) else "utf8mb4"
    if not charset:
        raise UnsupportedValue(f"no character set is known of column {column.name}", remedy=REPORT)
    codec_of(charset)
    as_text = CanonicalType(Kind.TEXT, pa.string(), "string", kind.text)
    plan = ColumnPlan(column.name, as_text, L.CELL_BYTES, charset)
    return ReadColumn(column.name, quote_name(column.name), plan, _BYTES, K.BYTES)
