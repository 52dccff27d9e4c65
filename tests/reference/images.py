"""The slow twin of the kernels, up to values: an event's images as Python sees them.

In:  a rows event, a Plan.
Out: images: per column that the event has, its raw bytes; as they were logged, or as what they come to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate.binlog.format.table_map import WireColumn
from tidegate.binlog.rows.decode_plan import Plan
from tidegate.columnar.column_plan import ColumnPlan
from tidegate.columnar.cursor import ByteCursor
from tidegate.columnar.decoded import IMAGE_AFTER, IMAGE_BEFORE, IMAGE_DELETE, IMAGE_INSERT
from tidegate.columnar.kernel import layout as L  # noqa: N812 - names of the events' fields
from tidegate.errors import DecodeError, UnsupportedValue
from tidegate.schema.model.columns import Generated
from tidegate.schema.model.type_table import Wire
from tidegate.tables import OP_DELETE, OP_UPSERT

_INTEGER_BYTES: Final = {Wire.TINY: 1, Wire.SHORT: 2, Wire.INT24: 3, Wire.LONG: 4, Wire.LONGLONG: 8}
# Bytes of MariaDB's temporal types with 0 to 6 digits of a fraction, in its format of before 10.1.
_HIRES: Final = {
    Wire.TIMESTAMP: (4, 5, 5, 6, 6, 7, 7),
    Wire.DATETIME: (8, 6, 6, 7, 7, 7, 8),
    Wire.TIME: (3, 4, 4, 5, 5, 5, 6),
}


@dataclass(frozen=True)
class Patch:
    """A JSON document of a before image, and differences from it."""

    document: bytes
    differences: bytes


Raw = bytes | None | Patch  # None: NULL
# One image: its offset in the payload, and the columns that it has.
Image = tuple[int, dict[int, Raw]]


def net_images(data: npt.NDArray[np.uint8], event: list[int], plan: Plan) -> Iterator[tuple[int, Image]]:
    """What an event's images come to, as (op, image)."""
    count = len(plan.columns)
    keys = {i for i in range(count) if plan.words.reshape(count, -1)[i, L.KEY]}
    asked = {i for i in range(count) if not plan.marks[i, L.MARK_UNASKED]}
    needed = keys or asked
    before: Image = (0, {})
    for op, image in logged_images(data, event, plan):
        known = image[1]
        if op == IMAGE_BEFORE:
            before = image
            if keys - known.keys():
                raise _lacks_key(plan, keys - known.keys())
        elif op == IMAGE_AFTER:
            if not keys or any(known.get(i, before[1][i]) != before[1][i] for i in keys):
                if needed - before[1].keys():
                    raise _lacks_key(plan, needed - before[1].keys())
                yield OP_DELETE, before
            computed = {i for i, column in enumerate(plan.defined) if column.generated is Generated.VIRTUAL}
            merged = {i: raw for i, raw in before[1].items() if i not in computed} | known
            if lacking := asked - merged.keys():
                why = _why(plan, min(lacking))
                raise UnsupportedValue(f"an update doesn't tell column {plan.columns[min(lacking)].name} ({why})")
            yield OP_UPSERT, (image[0], merged)
        elif op == IMAGE_DELETE and needed - known.keys():
            raise _lacks_key(plan, needed - known.keys())
        else:
            yield OP_DELETE if op == IMAGE_DELETE else OP_UPSERT, image


def _lacks_key(plan: Plan, columns: set[int]) -> UnsupportedValue:
    name, why = plan.columns[min(columns)].name, _why(plan, min(columns))
    return UnsupportedValue(f"a before image lacks column {name}, which tells the row ({why})")


def _why(plan: Plan, i: int) -> str:
    if plan.defined and plan.defined[i].generated is not Generated.NO:
        return "it is generated, and MariaDB logs those in inserts alone; or binlog_row_image is not FULL"
    return "binlog_row_image is not FULL"


def logged_images(data: npt.NDArray[np.uint8], event: list[int], plan: Plan) -> Iterator[tuple[int, Image]]:
    """An event's images, as (IMAGE_*, image)."""
    start, end, op = event[L.EVENT_START], event[L.EVENT_END], event[L.EVENT_OP]
    cursor = ByteCursor(data[start:end].tobytes())
    count = cursor.packed()
    if count != len(plan.columns):
        raise DecodeError("rows event and TABLE_MAP differ in their column count")
    update = op in (L.OP_UPDATE, L.OP_PARTIAL_UPDATE)
    present = [_bits(cursor, count) for _ in range(2 if update else 1)]
    if not any(map(any, present)):
        raise UnsupportedValue("rows event without any column")
    single = IMAGE_DELETE if op == L.OP_DELETE else IMAGE_INSERT
    while cursor:
        at = start + cursor.at
        image = _image(cursor, plan, present[0])
        yield IMAGE_BEFORE if update else single, (at, image)
        if update:
            options = cursor.unsigned(1) if op == L.OP_PARTIAL_UPDATE else 0
            if options > 1:
                raise DecodeError("value options that aren't known")
            at = start + cursor.at
            yield IMAGE_AFTER, (at, _image(cursor, plan, present[1], image if options else None))


def _bits(cursor: ByteCursor, count: int) -> list[bool]:
    value = int.from_bytes(cursor.take((count + 7) // 8), "little")
    return [bool(value >> i & 1) for i in range(count)]


def _image(
    cursor: ByteCursor, plan: Plan, present: list[bool], patches: dict[int, Raw] | None = None
) -> dict[int, Raw]:
    """patches: the before image, when JSON columns may hold differences from it."""
    wires = plan.table_map.columns
    documents = [i for i, wire in enumerate(wires) if wire.type == Wire.JSON]
    partial: set[int] = set()
    if patches is not None:
        bits = _bits(cursor, len(documents))
        partial = {i for i, bit in zip(documents, bits, strict=True) if bit}
    shown = [i for i, there in enumerate(present) if there]
    nulls = _bits(cursor, len(shown))
    raws: dict[int, Raw] = {}
    for i, null in zip(shown, nulls, strict=True):
        if null:
            raws[i] = None
        elif patches is not None and i in partial:
            differences = cursor.take(cursor.unsigned(4))
            document = patches.get(i)
            if not isinstance(document, bytes):
                name = plan.columns[i].name
                raise UnsupportedValue(
                    f"column {name} holds JSON differences, and the before image lacks their document"
                )
            raws[i] = Patch(document, differences)
        else:
            raws[i] = _raw(cursor, wires[i], plan.columns[i])
    return raws


def _raw(cursor: ByteCursor, wire: WireColumn, column: ColumnPlan) -> bytes:
    """A value's bytes, without length prefix."""
    if wire.type in _HIRES and column.type.text.numbers > (0,):
        return cursor.take(_HIRES[wire.type][column.type.text.numbers[0]])
    if wire.type in _INTEGER_BYTES:
        return cursor.take(_INTEGER_BYTES[wire.type])
    fixed = {
        Wire.FLOAT: 4,
        Wire.DOUBLE: 8,
        Wire.YEAR: 1,
        Wire.DATE: 3,
        Wire.DATETIME: 8,
        Wire.TIMESTAMP: 4,
        Wire.TIME: 3,
    }
    if wire.type in fixed:
        return cursor.take(fixed[wire.type])
    if wire.type in (Wire.ENUM, Wire.SET):
        return cursor.take(wire.length)
    if wire.type in (Wire.DATETIME2, Wire.TIMESTAMP2, Wire.TIME2):
        whole = {Wire.DATETIME2: 5, Wire.TIMESTAMP2: 4, Wire.TIME2: 3}[wire.type]
        return cursor.take(whole + (wire.decimals + 1) // 2)
    if wire.type == Wire.BIT:
        return cursor.take((wire.length + 7) // 8)
    if wire.type == Wire.NEWDECIMAL:
        sizes = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
        whole, scale = wire.length - wire.decimals, wire.decimals
        return cursor.take(sizes[whole % 9] + whole // 9 * 4 + scale // 9 * 4 + sizes[scale % 9])
    if wire.type in (Wire.STRING, Wire.VARCHAR, Wire.VAR_STRING, Wire.VARCHAR_COMPRESSED):
        return cursor.take(cursor.unsigned(1 if wire.length < 256 else 2))
    return cursor.take(cursor.unsigned(wire.length))  # BLOB, JSON, GEOMETRY, VECTOR
