"""The slow twin of decode.py: rows in plain Python, value by value, for tests to compare with.

In, out: as decode_segment. It takes the way down to a rows event from decode.py (decode_indexes takes any decoder of
rows); rows are read here with int.from_bytes, Decimal and datetime, straight from the formats' descriptions.

What both share says nothing when it is wrong, and has tests of its own against servers: plans of columns (plan.py),
values of rows that were there before their column (added_columns.py), UUID and INET (finish.py), texts of character
sets, long decimals of JSON (decimal_text), dates that no calendar has, and zlib's inflate.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tests.reference.images import Patch, Raw, logged_images, net_images
from tests.reference.json_document import reference_json_text, reference_patched_text
from tidegate.binlog.format.table_map import WireColumn
from tidegate.binlog.index.event_index import index_pieces
from tidegate.binlog.rows.batch import RowsBatch
from tidegate.binlog.rows.decode import Versions, Windows, decode_indexes, joined
from tidegate.binlog.rows.decode_plan import Plan
from tidegate.columnar.column_compression import inflate
from tidegate.columnar.column_plan import ColumnPlan
from tidegate.columnar.dates import date_text, refused_date
from tidegate.columnar.decoded import SYSTEM_FIELDS, Images, RowsError
from tidegate.columnar.finish import BY_VALUE
from tidegate.columnar.json_text import decimal_text
from tidegate.columnar.kernel import layout as L  # noqa: N812 - names of the events' fields
from tidegate.errors import DecodeError, Terminal, UnsupportedValue
from tidegate.schema.follow.added_columns import existing_row_value
from tidegate.schema.model.charset_text import decode_text
from tidegate.schema.model.type_table import Kind, Wire
from tidegate.segments.result import NOTHING_KNOWN, DecodedSegment, Known
from tidegate.segments.segment import Segment
from tidegate.tables import OP_UPSERT

_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - DATETIME has no zone
_EXACT: Final = Context(prec=80)


@dataclass(frozen=True)
class _Row:
    """at: its image's offset in the payload. known: columns that the event has."""

    op: int
    commit_ts: int
    at: int
    values: list[Any]
    known: set[int]


def decode_segment_reference(
    segment: Segment, versions: Versions, windows: Windows, *, known: Known = NOTHING_KNOWN
) -> DecodedSegment:
    """As decode_segment."""

    def pieces(windows: Windows, known: Known) -> Iterator[DecodedSegment]:
        return decode_indexes(index_pieces(segment), versions, windows, reference_batch, known)

    return joined(pieces, windows, known)


def reference_batch(data: npt.NDArray[np.uint8], events: npt.NDArray[np.int64], plan: Plan, seq: int) -> RowsBatch:
    """As batch.decode_batch."""
    rows, nulled = _rows(data, events, plan, net=True)
    return RowsBatch(_record_batch(rows, plan, seq), nulled)


def reference_images(data: npt.NDArray[np.uint8], events: npt.NDArray[np.int64], plan: Plan, seq: int) -> Images:
    """As batch.decode_images."""
    rows, nulled = _rows(data, events, plan, net=False)
    present = np.array([[i in row.known for row in rows] for i in range(len(plan.columns))], np.bool_)
    return Images(_record_batch(rows, plan, seq), None if present.all() else present, nulled)


def _rows(
    data: npt.NDArray[np.uint8], events: npt.NDArray[np.int64], plan: Plan, *, net: bool
) -> tuple[list[_Row], int]:
    rows: list[_Row] = []
    nulled = 0
    unread: set[int] = set()  # columns that nobody asks for, with a value that can't be decoded
    for number, event in enumerate(events.tolist()):
        try:
            for op, (at, raws) in net_images(data, event, plan) if net else logged_images(data, event, plan):
                values = {i: _value_or_none(raw, i, plan, unread, net=net) for i, raw in raws.items()}
                nulled += sum(v is None and raws[i] is not None and i not in unread for i, v in values.items())
                whole = [
                    values[i] if i in values else _default(plan, i) if net and op == OP_UPSERT else None
                    for i in range(len(plan.columns))
                ]
                rows.append(_Row(op, event[L.EVENT_COMMIT_TS], at, whole, set(raws)))
        except Terminal as error:
            raise RowsError(number, error) from None
    for row in rows:
        for i in unread:
            row.values[i] = None
    return rows, nulled


def _record_batch(rows: list[_Row], plan: Plan, seq: int) -> pa.RecordBatch:
    system = [[row.op for row in rows], [row.commit_ts for row in rows], [seq] * len(rows), [row.at for row in rows]]
    columns = [pa.array([row.values[i] for row in rows], column.type.arrow) for i, column in enumerate(plan.columns)]
    arrays = [pa.array(values, field.type) for values, field in zip(system, SYSTEM_FIELDS, strict=True)]
    return pa.RecordBatch.from_arrays([*arrays, *columns], schema=pa.schema([*SYSTEM_FIELDS, *plan.schema]))


def _default(plan: Plan, i: int) -> Any:
    if plan.marks[i, L.MARK_UNASKED]:
        return None
    column = plan.defined[i] if plan.defined else None
    known = column is not None and (column.nullable or column.default is not None)
    value = existing_row_value(column) if column is not None and known else None
    if not known or (value is None and column is not None and column.default is not None):
        raise UnsupportedValue(f"a new row lacks column {plan.columns[i].name}")
    return value


def _value_or_none(raw: Raw, i: int, plan: Plan, unread: set[int], *, net: bool) -> Any:
    try:
        return _value(raw, i, plan)
    except Terminal:
        if not (net and plan.defined and plan.defined[i].silver in plan.unasked):
            raise
        unread.add(i)
        return None


def _value(raw: Raw, i: int, plan: Plan) -> Any:
    if raw is None:
        return None
    if isinstance(raw, Patch):
        return reference_patched_text(raw.document, raw.differences)
    column, wire = plan.columns[i], plan.table_map.columns[i]
    if column.inflated_max:
        raw = inflate(raw, column.inflated_max)
    value = _READERS[column.type.kind](raw, column, wire)
    words = plan.words.reshape(len(plan.columns), -1)[i]
    if value is None and words[L.DATES]:
        text = date_text(column.cell, int(words[L.P1]), raw)
        raise refused_date(column.name, text, key=bool(words[L.KEY]))
    return value


def _integer(raw: bytes, column: ColumnPlan, _wire: WireColumn) -> int:
    return int.from_bytes(raw, "little", signed=not column.type.text.unsigned)


def _decimal(raw: bytes, _column: ColumnPlan, wire: WireColumn) -> Decimal:
    return Decimal(decimal_text(wire.length, wire.decimals, raw), _EXACT)


def _refuse() -> DecodeError:
    return DecodeError("bytes that no server writes for this type")


def _clock(hours: int, minutes: int, seconds: int, micros: int) -> dt.time:
    if hours > 23 or minutes > 59 or seconds > 59 or micros > 999_999:
        raise _refuse()
    return dt.time(hours, minutes, seconds, micros)


def _day(year: int, month: int, day: int) -> dt.date | None:
    if not 0 <= year <= 9999:
        raise _refuse()
    try:
        return dt.date(year, month, day)
    except ValueError:
        return None


def _date(raw: bytes, _column: ColumnPlan, _wire: WireColumn) -> dt.date | None:
    packed = int.from_bytes(raw, "little")
    return _day(packed >> 9, packed >> 5 & 15, packed & 31)


def _micros(raw: bytes, wire: WireColumn) -> int:
    return int.from_bytes(raw, "big") * {0: 0, 1: 10_000, 2: 100, 3: 1}[(wire.decimals + 1) // 2]


def _datetime(raw: bytes, column: ColumnPlan, wire: WireColumn) -> dt.datetime | None:
    if wire.type == Wire.DATETIME and column.type.text.numbers > (0,):
        number, part = divmod(int.from_bytes(raw, "big", signed=len(raw) == 8), 10 ** column.type.text.numbers[0])
        if number < 0:
            raise _refuse()
        micros = part * 10 ** (6 - column.type.text.numbers[0])
        rest, clock = number // 86400, (number // 3600 % 24, number // 60 % 60, number % 60)
        date = _day(rest // 416, rest // 32 % 13, rest % 32)
    elif wire.type == Wire.DATETIME:
        if raw[7] & 0x80:
            raise _refuse()
        text = f"{int.from_bytes(raw, 'little'):014d}"
        date = _day(int(text[:-10]), int(text[-10:-8]), int(text[-8:-6]))
        clock, micros = (int(text[-6:-4]), int(text[-4:-2]), int(text[-2:])), 0
    else:
        packed = int.from_bytes(raw[:5], "big") - (1 << 39)
        months = packed >> 22
        date = _day(months // 13, months % 13, packed >> 17 & 31)
        clock, micros = (packed >> 12 & 31, packed >> 6 & 63, packed & 63), _micros(raw[5:], wire)
    return None if date is None else dt.datetime.combine(date, _clock(*clock, micros))


def _timestamp(raw: bytes, column: ColumnPlan, wire: WireColumn) -> dt.datetime | None:
    old = wire.type == Wire.TIMESTAMP
    decimals = (*column.type.text.numbers, 0)[0]
    seconds = int.from_bytes(raw[:4], "little" if old and not decimals else "big")
    micros = int.from_bytes(raw[4:], "big") * 10 ** (6 - decimals) if old else _micros(raw[4:], wire)
    if micros > 999_999:
        raise _refuse()
    if seconds == 0 and micros == 0:
        return None
    return (_EPOCH + dt.timedelta(seconds=seconds, microseconds=micros)).replace(tzinfo=dt.UTC)


def _time(raw: bytes, column: ColumnPlan, wire: WireColumn) -> str:
    decimals = (*column.type.text.numbers, 0)[0]
    if wire.type == Wire.TIME and decimals:
        number = int.from_bytes(raw, "big") - 3_020_400 * 10**decimals
        seconds, part = divmod(abs(number), 10**decimals)
        parts = (seconds // 3600, seconds // 60 % 60, seconds % 60, part * 10 ** (6 - decimals))
        return _time_text("-" if number < 0 else "", parts, decimals)
    if wire.type == Wire.TIME:
        number = int.from_bytes(raw, "little", signed=True)
        sign, number = ("-", -number) if number < 0 else ("", number)
        return _time_text(sign, (number // 10000, number // 100 % 100, number % 100, 0), 0)
    packed = int.from_bytes(raw, "big") - (1 << (8 * len(raw) - 1))
    sign, packed = ("-", -packed) if packed < 0 else ("", packed)
    width = len(raw) - 3
    clock, fraction = packed >> 8 * width, packed & ((1 << 8 * width) - 1)
    parts = (clock >> 12, clock >> 6 & 63, clock & 63, _micros(fraction.to_bytes(width, "big"), wire))
    return _time_text(sign, parts, wire.decimals)


def _time_text(sign: str, parts: tuple[int, int, int, int], decimals: int) -> str:
    hours, minutes, seconds, micros = parts
    if hours > 838 or minutes > 59 or seconds > 59 or micros > 999_999:
        raise _refuse()
    text = f"{sign}{hours:02d}:{minutes:02d}:{seconds:02d}"
    return f"{text}.{micros:06d}"[: len(text) + 1 + decimals] if decimals else text


def _geometry(raw: bytes, _column: ColumnPlan, _wire: WireColumn) -> bytes:
    if raw and (len(raw) < 9 or raw[4] != 1):
        raise _refuse()
    if raw[:4] == bytes(4):
        return raw[4:]
    return raw[4:8] + bytes([raw[8] | 0x20]) + raw[:4] + raw[9:] if raw else b""


def _enum(raw: bytes, column: ColumnPlan, _wire: WireColumn) -> str:
    number = int.from_bytes(raw, "little")
    if number > len(column.members):
        raise DecodeError("a value that no member stands for")
    return column.members[number - 1] if number else ""


def _set(raw: bytes, column: ColumnPlan, _wire: WireColumn) -> str:
    bits = int.from_bytes(raw, "little")
    if bits >> len(column.members):
        raise DecodeError("a value that no member stands for")
    return ",".join(member for i, member in enumerate(column.members) if bits >> i & 1)


def _vector(raw: bytes, _column: ColumnPlan, _wire: WireColumn) -> list[float]:
    if len(raw) % 4:
        raise _refuse()
    return list(struct.unpack(f"<{len(raw) // 4}f", raw))


def _binary(raw: bytes, column: ColumnPlan, wire: WireColumn) -> bytes:
    return raw.ljust(wire.length, b"\0") if column.type.text.base == "binary" else raw


def _converted(raw: bytes, column: ColumnPlan, wire: WireColumn) -> str:
    text: str = BY_VALUE[column.type.kind](column)(raw.ljust(wire.length, b"\0"))
    return text


_READERS: Final[dict[Kind, Callable[[bytes, ColumnPlan, WireColumn], Any]]] = {
    Kind.INT: _integer,
    Kind.UNSIGNED_BIGINT: lambda raw, _column, _wire: Decimal(int.from_bytes(raw, "little")),
    Kind.FLOAT: lambda raw, _column, _wire: struct.unpack("<f", raw)[0],
    Kind.DOUBLE: lambda raw, _column, _wire: struct.unpack("<d", raw)[0],
    Kind.DECIMAL: _decimal,
    Kind.DECIMAL_TEXT: lambda raw, _column, wire: decimal_text(wire.length, wire.decimals, raw),
    Kind.BOOLEAN: lambda raw, _column, _wire: bool(raw[0] & 1),
    Kind.BIT: lambda raw, _column, _wire: raw,
    Kind.DATE: _date,
    Kind.DATETIME: _datetime,
    Kind.TIMESTAMP: _timestamp,
    Kind.TIME: _time,
    Kind.YEAR: lambda raw, _column, _wire: 1900 + raw[0] if raw[0] else 0,
    Kind.TEXT: lambda raw, column, _wire: decode_text(column.charset, raw),
    Kind.ENUM: _enum,
    Kind.SET: _set,
    Kind.BINARY: _binary,
    Kind.JSON: lambda raw, _column, _wire: reference_json_text(raw),
    Kind.UUID: _converted,
    Kind.INET: _converted,
    Kind.GEOMETRY: _geometry,
    Kind.VECTOR: _vector,
}
