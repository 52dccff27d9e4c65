"""From the kernel's buffers to a column's canonical Arrow array.

In:  where the kernel put a column's values, offsets and bytes in the arena.
Out: a pyarrow Array of the column's canonical type; UnsupportedValue if bytes aren't valid in their
     charset.

Fixed-width values and UTF-8 text stay in the kernel's buffers. Other kinds cost a pass per column:
enum and set go through a dictionary, other charsets through Python's codec, JSON and UUIDs value by
value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.columnar.column_compression import inflated
from tidegate.columnar.column_plan import OUT_BYTES, VARIABLE, ColumnPlan
from tidegate.columnar.inet import inet4_text, inet6_text, uuid_text
from tidegate.columnar.json_document import patched_json_text
from tidegate.columnar.json_text import json_text
from tidegate.columnar.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.columnar.kernel.recode import recode
from tidegate.errors import DecodeError, UnsupportedValue
from tidegate.remedy import REFILL, REPORT
from tidegate.schema.model.charset_text import (
    ASCII_BASED,
    SINGLE_BYTE,
    TWICE,
    UTF8,
    decode_text,
    has_second_code,
    utf8_table,
)
from tidegate.schema.model.type_table import Kind

_ASCII_MAX: Final = 0x80
_FLOAT_BYTES: Final = 4
_OFFSETS_MAX: Final = (1 << 31) - 1


def part(arena: pa.Buffer, address: int, size: int) -> pa.Buffer:
    """The arena's bytes at an address."""
    return arena.slice(address - arena.address, size)


def finish_column(
    column: ColumnPlan, words: npt.NDArray[np.int64], rows: int, arena: pa.Buffer, *, patched: bool = False
) -> pa.Array:
    """words: the column's COLUMN_WORDS after the kernel ran. patched: some JSON documents come with
    differences.
    """
    nulls = int(words[L.NULLS])
    valid = part(arena, int(words[L.VALID]), (rows + 7) // 8) if nulls else None
    at = int(words[L.VALUES])
    if column.cell not in VARIABLE:
        return _fixed(column, part(arena, at, rows * OUT_BYTES[column.cell]), valid, rows, nulls)
    offsets, data = part(arena, at, 4 * (rows + 1)), part(arena, int(words[L.BYTES]), int(words[L.USED]))
    if column.inflated_max:
        offsets, data = inflated(offsets, data, column.inflated_max)
    kind = column.type.kind
    if kind is Kind.VECTOR:
        return _vectors(offsets, data, valid, rows, nulls)
    if kind in BY_VALUE:
        convert = patched_json_text if patched and kind is Kind.JSON else BY_VALUE[kind](column)
        return _by_value(pa.Array.from_buffers(pa.binary(), rows, [valid, offsets, data], nulls), convert)
    if kind is not Kind.TEXT:
        return pa.Array.from_buffers(column.type.arrow, rows, [valid, offsets, data], nulls)
    return _text(column, [valid, offsets, data], rows, nulls)


def _fixed(column: ColumnPlan, values: pa.Buffer, valid: pa.Buffer | None, rows: int, nulls: int) -> pa.Array:
    if column.cell == L.CELL_BIT:
        bits = np.packbits(np.frombuffer(values, np.uint8), bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), rows, [valid, pa.py_buffer(bits)], nulls)
    if column.cell == L.CELL_ENUM:
        numbers = pa.Array.from_buffers(pa.int32(), rows, [valid, values], nulls)
        if column.in_key and "" in column.members and pc.any(pc.equal(numbers, 0)).as_py():
            raise _read_the_same(column, "number 0 and the member ''")
        # number 0 is the empty string that a server without strict mode stores in place of a refused value
        return pa.DictionaryArray.from_arrays(numbers, pa.array(["", *column.members], pa.string())).dictionary_decode()
    if column.cell == L.CELL_SET:
        return _sets(column, np.frombuffer(values, np.uint64), valid, rows, nulls)
    return pa.Array.from_buffers(column.type.arrow, rows, [valid, values], nulls)


def _sets(
    column: ColumnPlan, values: npt.NDArray[np.uint64], valid: pa.Buffer | None, rows: int, nulls: int
) -> pa.Array:
    distinct, where = np.unique(values, return_inverse=True)
    if column.in_key and "" in column.members and 1 << column.members.index("") in distinct.tolist():
        raise _read_the_same(column, "nothing and the member ''")
    texts = [",".join(m for i, m in enumerate(column.members) if bits >> i & 1) for bits in distinct.tolist()]
    numbers = pa.Array.from_buffers(pa.int32(), rows, [valid, pa.py_buffer(where.astype(np.int32))], nulls)
    return pa.DictionaryArray.from_arrays(numbers, pa.array(texts, pa.string())).dictionary_decode()


def _text(column: ColumnPlan, buffers: list[Any], rows: int, nulls: int) -> pa.Array:
    """Bytes in a charset as UTF-8. They stay as they are if this is the same; else the codec
    converts them.
    """
    data = np.frombuffer(buffers[2], np.uint8)
    if column.in_key and column.charset in TWICE:
        array = pa.Array.from_buffers(pa.binary(), rows, buffers, nulls)
        return _by_value(array, lambda value: _key_text(column, value))
    ascii_only = column.charset in ASCII_BASED and (len(data) == 0 or int(data.max()) < _ASCII_MAX)
    if ascii_only or (column.charset in UTF8 and column.charset != "ascii"):
        array = pa.Array.from_buffers(pa.string(), rows, buffers, nulls)
        if not ascii_only:
            _check_utf8(array)
        return array
    if column.charset in SINGLE_BYTE:
        return pa.Array.from_buffers(pa.string(), rows, [buffers[0], *_recoded(column.charset, buffers, rows)], nulls)
    array = pa.Array.from_buffers(pa.binary(), rows, buffers, nulls)
    return _by_value(array, lambda value: decode_text(column.charset, value))


def _key_text(column: ColumnPlan, value: bytes) -> str:
    text = decode_text(column.charset, value)
    if has_second_code(column.charset, value, text):
        raise _read_the_same(column, f"{text!r} in {column.charset}, which has two codes for one of its characters,")
    return text


def _read_the_same(column: ColumnPlan, what: str) -> UnsupportedValue:
    return UnsupportedValue(
        f"column {column.name} belongs to the key, and {what} read the same: two rows of the source would be one",
        remedy="change such values at the source, or leave the table out",
    )


def _recoded(charset: str, buffers: list[Any], rows: int) -> tuple[pa.Buffer, pa.Buffer]:
    """Offsets and UTF-8 bytes of a column in a single-byte character set."""
    data = buffers[2]
    if 3 * data.size + 1 > _OFFSETS_MAX:
        raise UnsupportedValue(
            "text of one column and segment may pass 2 GiB in UTF-8",
            remedy="lower capture.segment_bytes in the pipeline file, then: `tidegate snapshot start`",
        )
    table = utf8_table(charset)
    made, out = pa.allocate_buffer(4 * (rows + 1)), pa.allocate_buffer(3 * data.size + 1)
    used = int(recode(buffers[1].address, rows, data.address, table.ctypes.data, made.address, out.address))
    if used < 0:
        ends = np.frombuffer(buffers[1], np.int32)
        row = int(np.searchsorted(ends, -1 - used, side="right")) - 1
        decode_text(charset, data.to_pybytes()[ends[row] : ends[row + 1]])  # names the bytes
    return made, out.slice(0, used)


def _check_utf8(array: pa.Array) -> None:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        for value in array.cast(pa.binary(), safe=False):
            if value.is_valid:
                decode_text("utf8mb4", value.as_py())  # names the bytes
        raise DecodeError("text buffers are inconsistent", remedy=REPORT) from None


def _by_value(array: pa.Array, convert: Callable[[bytes], str]) -> pa.Array:
    return pa.array([None if value is None else convert(value) for value in array.to_pylist()], pa.string())


def _vectors(offsets: pa.Buffer, data: pa.Buffer, valid: pa.Buffer | None, rows: int, nulls: int) -> pa.Array:
    """MySQL's VECTOR: 32-bit floats, little-endian, one after another."""
    ends = np.frombuffer(offsets, np.int32)
    if np.any(ends % _FLOAT_BYTES):
        said = "a vector isn't a row of 32-bit floats, as MySQL keeps one that was another type before an ALTER"
        raise UnsupportedValue(said, remedy=REFILL.after("store whole floats there, or a binary column"))
    floats = pa.Array.from_buffers(pa.float32(), data.size // _FLOAT_BYTES, [None, data])
    buffers = [valid, pa.py_buffer(np.ascontiguousarray(ends // _FLOAT_BYTES))]
    return pa.Array.from_buffers(pa.list_(pa.float32()), rows, buffers, nulls, children=[floats])


def _inet(column: ColumnPlan) -> Callable[[bytes], str]:
    return inet4_text if column.type.text.base == "inet4" else inet6_text


# Kinds that are converted value by value: kind -> (column -> (bytes -> text)).
BY_VALUE: Final[dict[Kind, Callable[[ColumnPlan], Callable[[bytes], Any]]]] = {
    Kind.JSON: lambda _column: json_text,
    Kind.UUID: lambda _column: uuid_text,
    Kind.INET: _inet,
}
