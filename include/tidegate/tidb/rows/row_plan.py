"""How rows of a table version are read by compiled code: a plan that is data.

In:  a version beside TiDB's description of its table.
Out: a Plan; None for a table read row by row: virtual columns are computed, beyond any kernel.

For a datum that the kernel can't read (JSON, decimals of more than 38 digits, unknown types) it
passes on the bytes, and the slow decoder's functions make the value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.columnar.column_plan import INTEGER_CELLS, ColumnPlan
from tidegate.columnar.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.errors import Terminal
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.type_table import TYPES, Kind
from tidegate.schema.model.types import CanonicalType, ZeroDates, canonical, integer_range
from tidegate.tidb.jobs import ColumnInfo, TableInfo
from tidegate.tidb.kernel import layout as T  # noqa: N812
from tidegate.tidb.rows.canonical_values import Converter
from tidegate.tidb.tables.definitions import info_of
from tidegate.tidb.values.stored import origin_default

_HALF: Final = 1 << 64


class _Read(NamedTuple):
    """cell: of columnar/kernel/layout.py. pad: bytes that a value may grow by, or be made of."""

    read_as: int
    cell: int
    parameters: tuple[int, ...] = ()
    width: int = 0
    pad: int = 0


@dataclass(frozen=True, slots=True)
class PlannedColumn:
    """default: the value of a row without it, as Arrow's value; None for NULL."""

    plan: ColumnPlan
    pad: int
    default: Any
    converter: Converter
    field: pa.Field
    raw: bool
    is_json: bool


@dataclass(frozen=True, slots=True)
class TidbPlan:
    """words: int64[columns, COLUMN_WORDS], without addresses in an arena. ids: of the columns, sorted; order: which
    column each of them is. handles: datums in front of an inserted row. key: places of the key's columns.
    """

    columns: tuple[PlannedColumn, ...]
    words: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]
    handles: int
    key: tuple[int, ...]


@lru_cache(maxsize=1024)
def plan_of(version: TableVersion, zero_dates: ZeroDates) -> TidbPlan | None:
    """The plan of a version; None: the slow decoder reads it, and reports faults. Raises nothing."""
    info = info_of(version)
    if info is None or any(column.is_virtual for column in info.shown):
        return None
    words = np.zeros((len(version.columns), L.COLUMN_WORDS), np.int64)
    planned = []
    for described, column, shown in zip(words, version.columns, info.shown, strict=True):
        in_key = column.id in version.key
        try:
            made, read = _planned(column, shown, zero_dates, in_key=in_key)
        except Terminal:
            return None
        described[L.KIND], described[T.READ_AS], described[L.WIDTH] = read.cell, read.read_as, read.width
        described[L.P1 : L.P1 + len(read.parameters)] = read.parameters
        described[L.KEY] = in_key
        described[L.DATES] = in_key or zero_dates is ZeroDates.ERROR
        described[T.HANDLE] = info.handle.index(shown.id) if shown.id in info.handle else -1
        planned.append(made)
    words.setflags(write=False)
    return TidbPlan(tuple(planned), words, *_by_id(info), len(info.handle) or 1, _places(version))


def _places(version: TableVersion) -> tuple[int, ...]:
    places = {column.id: at for at, column in enumerate(version.columns)}
    return tuple(places[id_] for id_ in version.key)


def _by_id(info: TableInfo) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    ids = np.array([column.id for column in info.shown], np.int64)
    order = np.argsort(ids, kind="stable").astype(np.int64)
    return ids[order], order


def _planned(column: Column, info: ColumnInfo, zero_dates: ZeroDates, *, in_key: bool) -> tuple[PlannedColumn, _Read]:
    kind = canonical(column)
    converter = Converter(column, info, zero_dates, in_key=in_key)
    read = _READ.get(kind.kind, _raw)(kind, info)
    default = origin_default(info)
    value = converter.array([default])[0].as_py() if default is not None else None
    charset = "utf8mb4" if kind.kind is Kind.TEXT else ""
    raw = read.read_as == T.READ_RAW
    shown = CanonicalType(Kind.BINARY, pa.binary(), "binary", kind.text) if raw else kind
    plan = ColumnPlan(column.name, shown, read.cell, charset, info.members)
    return PlannedColumn(plan, read.pad, value, converter, converter.field, raw, kind.kind is Kind.JSON), read


def _raw(_kind: CanonicalType, _info: ColumnInfo) -> _Read:
    return _Read(T.READ_RAW, L.CELL_BYTES)


def _integer(kind: CanonicalType, _info: ColumnInfo) -> _Read:
    width = TYPES[kind.text.base].width
    return _Read(T.READ_INT, INTEGER_CELLS[width][kind.text.unsigned], integer_range(kind))


def _plain(read_as: int, cell: int, *parameters: int) -> _Reader:
    return lambda _kind, _info: _Read(read_as, cell, parameters)


def _decimal(kind: CanonicalType, _info: ColumnInfo) -> _Read:
    digits, scale = kind.arrow.precision, kind.arrow.scale
    end = 10**digits
    return _Read(T.READ_DECIMAL, L.CELL_DECIMAL, (scale, _word(end % _HALF), _word(end // _HALF)))


def _word(bits: int) -> int:
    """64 bits as a number with a sign."""
    return bits - _HALF if bits >> 63 else bits


def _time(_kind: CanonicalType, info: ColumnInfo) -> _Read:
    return _Read(T.READ_TIME, L.CELL_TIME, (0, 0, max(info.digits, 0)), pad=24)


def _bits(kind: CanonicalType, _info: ColumnInfo) -> _Read:
    size = (kind.text.numbers[0] + 7) // 8
    return _Read(T.READ_BITS, L.CELL_BITS, width=size, pad=size)


def _enum(_kind: CanonicalType, info: ColumnInfo) -> _Read:
    return _Read(T.READ_ENUM, L.CELL_ENUM, (len(info.members),))


def _set(_kind: CanonicalType, info: ColumnInfo) -> _Read:
    return _Read(T.READ_SET, L.CELL_SET, (_word((1 << len(info.members)) - 1),))


def _bytes(kind: CanonicalType, info: ColumnInfo) -> _Read:
    pad = info.length if kind.kind is Kind.BINARY and kind.text.base == "binary" else 0
    return _Read(T.READ_BYTES, L.CELL_BYTES, (max(pad, 0),), pad=max(pad, 0) + 8)


_Reader = Callable[[CanonicalType, ColumnInfo], _Read]
_READ: Final[dict[Kind, _Reader]] = {
    Kind.INT: _integer,
    Kind.UNSIGNED_BIGINT: _plain(T.READ_UINT64, L.CELL_UINT64),
    Kind.YEAR: _plain(T.READ_INT, L.CELL_YEAR, 0, (1 << 15) - 1),
    Kind.BOOLEAN: _plain(T.READ_BOOL, L.CELL_BIT),
    Kind.FLOAT: _plain(T.READ_FLOAT, L.CELL_COPY32),
    Kind.DOUBLE: _plain(T.READ_DOUBLE, L.CELL_COPY64),
    Kind.DECIMAL: _decimal,
    Kind.DATE: _plain(T.READ_DATE, L.CELL_DATE),
    Kind.DATETIME: _plain(T.READ_MOMENT, L.CELL_DATETIME),
    Kind.TIMESTAMP: _plain(T.READ_MOMENT, L.CELL_TIMESTAMP),
    Kind.TIME: _time,
    Kind.BIT: _bits,
    Kind.ENUM: _enum,
    Kind.SET: _set,
    Kind.TEXT: _bytes,
    Kind.BINARY: _bytes,
}
