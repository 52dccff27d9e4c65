"""Dates as the server writes them, zero and impossible ones too.

In:  a plan; or its date columns, decoded as the numbers that are on the wire.
Out: the plan with date cells that keep those numbers; text such as "2024-00-00 00:00:00.5".

Layouts: mysql-server mysys/my_time.cc (my_datetime_packed_from_binary, my_timestamp_from_binary), sql/field.cc
(Field_newdate, and the formats of before 5.6: YYYYMMDDhhmmss as an integer).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.binlog.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.binlog.plan import ColumnPlan, Plan

_RAW: Final = {
    L.CELL_DATE: (L.CELL_UINT24, pa.int32()),
    L.CELL_DATETIME: (L.CELL_BITS, pa.binary()),
    L.CELL_TIMESTAMP: (L.CELL_BITS, pa.binary()),
    L.CELL_OLD_DATETIME: (L.CELL_COPY64, pa.int64()),
    L.CELL_OLD_TIMESTAMP: (L.CELL_UINT32, pa.int64()),
}
_Part = tuple[npt.NDArray[np.int64], int] | str
_ZERO: Final = 0x8000000000  # the packed datetime's sign bit
_DATETIME_BYTES: Final = 5
_TIMESTAMP_BYTES: Final = 4


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


def raw_dates(column: ColumnPlan, values: pa.Array) -> pa.Array:
    """Text of a column that with_raw_dates changed; null where it is NULL."""
    decimals = (column.type.text.numbers or (0,))[0]
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    base = column.type.text.base
    if base == "date":
        packed = values.fill_null(0).to_numpy().astype(np.int64)
        text = _join([(packed >> 9, 4), "-", (packed >> 5 & 15, 2), "-", (packed & 31, 2)])
    elif pa.types.is_binary(values.type):
        text = _modern(values, base, decimals)
    else:
        numbers = values.fill_null(0).to_numpy().astype(np.int64)
        text = _old(numbers) if base == "datetime" else _instant(numbers, np.zeros_like(numbers), 0)
    return _texts(text, valid)


def _modern(values: pa.Array, base: str, decimals: int) -> npt.NDArray[np.uint8]:
    fraction = (decimals + 1) // 2
    width = (_DATETIME_BYTES if base == "datetime" else _TIMESTAMP_BYTES) + fraction
    joined = b"".join(bytes(width) if value is None else value for value in values.to_pylist())
    raw = np.frombuffer(joined, np.uint8)
    columns = raw.reshape(-1, width).astype(np.int64)
    whole, part = _big_endian(columns[:, : width - fraction]), _big_endian(columns[:, width - fraction :])
    micros = part * 100 ** (3 - fraction)
    if base == "timestamp":
        return _instant(whole, micros, decimals)
    packed = whole - _ZERO
    date, time = packed >> 17, packed & 0x1FFFF
    months = date >> 5
    day: list[_Part] = [(months // 13, 4), "-", (months % 13, 2), "-", (date & 31, 2), " "]
    return _join([*day, (time >> 12, 2), ":", (time >> 6 & 63, 2), ":", (time & 63, 2), *_fraction(micros, decimals)])


def _big_endian(columns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    found = np.zeros(len(columns), np.int64)
    for i in range(columns.shape[1]):
        found = found << 8 | columns[:, i]
    return found


def _old(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    date, time = numbers // 1_000_000, numbers % 1_000_000
    day: list[_Part] = [(date // 10_000, 4), "-", (date // 100 % 100, 2), "-", (date % 100, 2), " "]
    return _join([*day, (time // 10_000, 2), ":", (time // 100 % 100, 2), ":", (time % 100, 2)])


def _instant(seconds: npt.NDArray[np.int64], micros: npt.NDArray[np.int64], decimals: int) -> npt.NDArray[np.uint8]:
    """Seconds since the epoch in UTC; second 0 is the zero timestamp."""
    days = seconds // 86400
    date = days.astype("datetime64[D]")
    year = date.astype("datetime64[Y]").astype(np.int64) + 1970
    month = date.astype("datetime64[M]").astype(np.int64) % 12 + 1
    day = (date - date.astype("datetime64[M]")).astype(np.int64) + 1
    zero = (seconds == 0) & (micros == 0)
    year, month, day = (np.where(zero, 0, part) for part in (year, month, day))
    time = seconds % 86400
    day_text: list[_Part] = [(year, 4), "-", (month, 2), "-", (day, 2), " "]
    clock: list[_Part] = [(time // 3600, 2), ":", (time // 60 % 60, 2), ":", (time % 60, 2)]
    return _join([*day_text, *clock, *_fraction(micros, decimals)])


def _fraction(micros: npt.NDArray[np.int64], decimals: int) -> list[_Part]:
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
    offsets = np.arange(count + 1, dtype=np.int64) * width
    bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(
        pa.large_string(), count, [bitmap, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(rows))]
    )
