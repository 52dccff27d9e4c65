"""Dates as the server writes them, zero and impossible ones too.

In:  a plan; or its date columns, decoded as the numbers that are on the wire.
Out: the plan with date cells that keep those numbers; text such as "2024-00-00 00:00:00.5".

Layouts: mysql-server mysys/my_time.cc (my_datetime_packed_from_binary, my_timestamp_from_binary),
sql/field.cc (Field_newdate; the formats of before 5.6: YYYYMMDDhhmmss as an integer); MariaDB
sql/field.cc (Field_datetime_hires).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.binlog.rows.decode_plan import Plan
from tidegate.columnar.column_plan import ColumnPlan
from tidegate.columnar.kernel import layout as L  # noqa: N812 - a page of constants

_RAW: Final = {
    L.CELL_DATE: (L.CELL_UINT24, pa.int32()),
    L.CELL_DATETIME: (L.CELL_BITS, pa.binary()),
    L.CELL_HIRES_DATETIME: (L.CELL_BITS, pa.binary()),
    L.CELL_TIMESTAMP: (L.CELL_BITS, pa.binary()),
    L.CELL_OLD_DATETIME: (L.CELL_COPY64, pa.int64()),
    L.CELL_OLD_TIMESTAMP: (L.CELL_UINT32, pa.int64()),
}
_SIGN: Final = 1 << 39  # of a packed datetime; all that servers write are positive
_DATETIME_BYTES: Final = 5
_TIMESTAMP_BYTES: Final = 4

_Numbers = npt.NDArray[np.int64]
_Part = tuple[_Numbers, int] | str  # a number and its digits, or a separator


@dataclass(frozen=True, slots=True)
class RawDate:
    """The facts of a date column beside its type. cell: CELL_* as planned; units, micros: its P1 and P2."""

    cell: int
    units: int
    micros: int


def raw_date(plan: Plan, number: int) -> RawDate:
    """The raw form of a column, from a plan that with_raw_dates has not changed."""
    words = plan.words.reshape(-1, L.COLUMN_WORDS)[number]
    return RawDate(plan.columns[number].cell, int(words[L.P1]), int(words[L.P2]))


def with_raw_dates(plan: Plan) -> Plan:
    """Date, datetime and timestamp columns as what is on the wire."""
    words = plan.words.copy().reshape(-1, L.COLUMN_WORDS)
    columns = list(plan.columns)
    for i, column in enumerate(columns):
        if column.cell in _RAW:
            cell, arrow = _RAW[column.cell]
            words[i, L.KIND] = cell
            words[i, L.P1 : L.P4 + 1] = 0
            columns[i] = replace(column, cell=cell, type=replace(column.type, arrow=arrow))
    words.setflags(write=False)
    return replace(plan, columns=tuple(columns), words=words.reshape(-1))


def is_raw(values: pa.Array) -> bool:
    """Whether a date column's values are what with_raw_dates asks for."""
    return not pa.types.is_temporal(values.type)


def raw_texts(column: ColumnPlan, raw: RawDate, values: pa.Array) -> pa.Array:
    """Text of such values; null where they are NULL."""
    decimals = (column.type.text.numbers or (0,))[0]
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_binary(values.type):
        return _texts(_packed(values, raw, decimals), valid)
    numbers = values.fill_null(0).to_numpy().astype(np.int64)
    if raw.cell == L.CELL_DATE:
        return _texts(_join([(numbers >> 9, 4), "-", (numbers >> 5 & 15, 2), "-", (numbers & 31, 2)]), valid)
    if raw.cell == L.CELL_OLD_TIMESTAMP:
        return _texts(_instant(numbers, np.zeros_like(numbers), 0), valid)
    day, clock = numbers // 1_000_000, numbers % 1_000_000
    date = _date(day // 10_000, day // 100 % 100, day % 100)
    return _texts(_join([*date, " ", *_clock(clock // 10_000, clock // 100 % 100, clock % 100)]), valid)


def _packed(values: pa.Array, raw: RawDate, decimals: int) -> npt.NDArray[np.uint8]:
    """The big-endian formats: DATETIME2, TIMESTAMP2, and MariaDB's of before 10.1."""
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    joined = b"".join(value for value in values.to_pylist() if value is not None)
    width = len(joined) // max(len(values) - values.null_count, 1)
    columns = np.zeros((len(values), width), np.int64)
    columns[valid] = np.frombuffer(joined, np.uint8).reshape(-1, max(width, 1))
    if raw.cell == L.CELL_HIRES_DATETIME:
        number = _big_endian(columns)
        seconds, part = number // raw.units, number % raw.units
        day, second = seconds // 86400, seconds % 86400
        date = _date(day // 32 // 13, day // 32 % 13, day % 32)
        clock = _clock(second // 3600, second // 60 % 60, second % 60)
        return _join([*date, " ", *clock, *_fraction(part * raw.micros, decimals)])
    head = _DATETIME_BYTES if raw.cell == L.CELL_DATETIME else _TIMESTAMP_BYTES
    whole, micros = _big_endian(columns[:, :head]), _big_endian(columns[:, head:]) * raw.micros
    if raw.cell == L.CELL_TIMESTAMP:
        return _instant(whole, micros, decimals)
    packed = np.where(valid, whole - _SIGN, 0)
    months, day, second = packed >> 22, packed >> 17 & 31, packed & 0x1FFFF
    clock = _clock(second >> 12, second >> 6 & 63, second & 63)
    return _join([*_date(months // 13, months % 13, day), " ", *clock, *_fraction(micros, decimals)])


def _big_endian(columns: _Numbers) -> _Numbers:
    numbers = np.zeros(len(columns), np.int64)
    for i in range(columns.shape[1]):
        numbers = numbers << 8 | columns[:, i]
    return numbers


def _instant(seconds: _Numbers, micros: _Numbers, decimals: int) -> npt.NDArray[np.uint8]:
    """Seconds since the epoch in UTC; second 0 is the zero timestamp."""
    date = (seconds // 86400).astype("datetime64[D]")
    month = date.astype("datetime64[M]")
    parts = [
        month.astype(np.int64) // 12 + 1970,
        month.astype(np.int64) % 12 + 1,
        (date - month.astype("datetime64[D]")).astype(np.int64) + 1,
    ]
    zero = (seconds == 0) & (micros == 0)
    year, number, day = (np.where(zero, 0, part) for part in parts)
    clock = _clock(seconds // 3600 % 24, seconds // 60 % 60, seconds % 60)
    return _join([*_date(year, number, day), " ", *clock, *_fraction(micros, decimals)])


def _date(year: _Numbers, month: _Numbers, day: _Numbers) -> list[_Part]:
    return [(year, 4), "-", (month, 2), "-", (day, 2)]


def _clock(hour: _Numbers, minute: _Numbers, second: _Numbers) -> list[_Part]:
    return [(hour, 2), ":", (minute, 2), ":", (second, 2)]


def _fraction(micros: _Numbers, decimals: int) -> list[_Part]:
    return [".", (micros // 10 ** (6 - decimals), decimals)] if decimals else []


def _join(pieces: list[_Part]) -> npt.NDArray[np.uint8]:
    """Numbers with leading zeros and separators, side by side: one row of characters per value."""
    count = next(len(piece[0]) for piece in pieces if not isinstance(piece, str))
    columns = []
    for piece in pieces:
        if isinstance(piece, str):
            columns.append(np.full(count, ord(piece), np.uint8))
            continue
        numbers, digits = piece
        columns += [(numbers // 10**place % 10 + ord("0")).astype(np.uint8) for place in reversed(range(digits))]
    return np.stack(columns, axis=1)


def _texts(rows: npt.NDArray[np.uint8], valid: npt.NDArray[np.bool_]) -> pa.Array:
    count, width = rows.shape
    offsets = pa.py_buffer(np.arange(count + 1, dtype=np.int64) * width)
    bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.large_string(), count, [bitmap, offsets, pa.py_buffer(np.ascontiguousarray(rows))])
