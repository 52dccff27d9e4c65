"""A column of canonical values as JSON values, whole columns at a time.

In:  a column's plan and its Arrow array.
Out: a large_string array of the same length without nulls: JSON text, `null` where the value is
     NULL.

Integers and floats are JSON numbers (the shortest digits that give the same value back), bit(1) is
true or false, a vector is an array; all else is a string: binary as base64, the rest as the server
writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.binlog.kernel import json_out
from tidegate.columnar.column_plan import ColumnPlan
from tidegate.log_files.as_json.dates import RawDate, is_raw, raw_texts
from tidegate.schema.model.type_table import Kind

TEXT: Final = pa.large_string()
_NULL: Final = pa.scalar("null", TEXT)
_QUOTE: Final = pa.scalar('"', TEXT)
_EMPTY: Final = pa.scalar("", TEXT)
_NEGATIVE_ZERO: Final = pa.scalar("-0.0", TEXT)
_DATETIME_CHARACTERS: Final = 19
# Arrow's texts for these; JSON has no such numbers.
_NOT_NUMBERS: Final = {"nan": '"NaN"', "-nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}


@dataclass(frozen=True, slots=True)
class ShownJson:
    """A column in its shown form. guessed: bytes, shown as text when they are valid UTF-8. raw: a date's plan, for
    dates in the server's form.
    """

    column: ColumnPlan
    raw: RawDate
    guessed: bool = False


def json_column(shown: ShownJson, values: pa.Array) -> pa.Array:
    if shown.guessed:
        return _guessed(values)
    if pa.types.is_floating(values.type):
        return _or_null(_floats(values))
    return _WRITERS[shown.column.type.kind](shown, values)


def _or_null(texts: pa.Array) -> pa.Array:
    return pc.fill_null(texts, _NULL)


def _floats(values: pa.Array) -> pa.Array:
    texts = pc.cast(values, TEXT)
    if not pc.all(pc.is_finite(values), skip_nulls=True).as_py():
        mask = pc.fill_null(pc.invert(pc.is_finite(values)), False)
        texts = pc.replace_with_mask(
            texts, mask, pa.array([_NOT_NUMBERS[text] for text in pc.filter(texts, mask).to_pylist()], TEXT)
        )
    # Without a point a reader takes it for an integer, which has no negative zero.
    return pc.if_else(pc.equal(texts, "-0"), _NEGATIVE_ZERO, texts)


def _number(_: ShownJson, values: pa.Array) -> pa.Array:
    return _or_null(pc.cast(values, TEXT))


def _in_quotes(texts: pa.Array) -> pa.Array:
    """Text that holds nothing to escape."""
    return _or_null(pc.binary_join_element_wise(_QUOTE, pc.cast(texts, TEXT), _QUOTE, _EMPTY))


def _plain(_: ShownJson, values: pa.Array) -> pa.Array:
    return _in_quotes(values)


def _decimal(_: ShownJson, values: pa.Array) -> pa.Array:
    texts = pc.cast(values, TEXT)
    small = pc.fill_null(pc.match_substring(texts, "E"), False)
    if pc.any(small).as_py():  # 0E-10: Arrow turns to exponents below 1e-6, as Python's Decimal does
        distinct = pc.dictionary_encode(pc.filter(values, small))
        shown = pa.array([format(value, "f") for value in distinct.dictionary.to_pylist()], TEXT)
        texts = pc.replace_with_mask(texts, small, pc.take(shown, distinct.indices))
    return _in_quotes(texts)


def _date(shown: ShownJson, values: pa.Array) -> pa.Array:
    if is_raw(values):
        return _in_quotes(raw_texts(shown.column, shown.raw, values))
    return _in_quotes(values)


def _datetime(shown: ShownJson, values: pa.Array) -> pa.Array:
    """Arrow writes six digits of a second; the column says how many the server shows."""
    if is_raw(values):
        return _in_quotes(raw_texts(shown.column, shown.raw, values))
    decimals = (shown.column.type.text.numbers or (0,))[0]
    texts = pc.cast(pc.cast(values, pa.timestamp("us")), pa.string())
    stop = _DATETIME_CHARACTERS + (decimals + 1 if decimals else 0)
    return _in_quotes(pc.binary_slice(pc.cast(texts, pa.binary()), 0, stop))


def _text(_: ShownJson, values: pa.Array) -> pa.Array:
    return _written(values, json_out.quoted_bytes, json_out.write_quoted)


def _base64(_: ShownJson, values: pa.Array) -> pa.Array:
    return _encoded(values)


def _encoded(values: pa.Array) -> pa.Array:
    return _written(values, lambda _data, offsets, valid: json_out.base64_bytes(offsets, valid), json_out.write_base64)


def _written(values: pa.Array, room: Callable[..., int], write: Callable[..., int]) -> pa.Array:
    wide = pa.large_string() if pa.types.is_string(values.type) else pa.large_binary()
    values = pc.cast(values, wide)
    _, offsets_buffer, data_buffer = values.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64)[values.offset : values.offset + len(values) + 1]
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    valid = _valid(values)
    made = pa.allocate_buffer(int(room(data, offsets, valid)))
    ends = np.empty(len(values) + 1, np.int64)
    write(data, offsets, valid, np.frombuffer(made, np.uint8), ends)
    return pa.Array.from_buffers(TEXT, len(values), [None, pa.py_buffer(ends), made], 0)


def _valid(values: pa.Array) -> npt.NDArray[np.uint8]:
    if not values.null_count:
        return np.ones(len(values), np.uint8)
    return np.asarray(pc.cast(values.is_valid(), pa.uint8()), np.uint8)


def _guessed(values: pa.Array) -> pa.Array:
    """Text where the bytes are UTF-8, else {"base64": ...}, value by value only when one isn't."""
    try:
        texts = pc.cast(pc.cast(values, pa.large_binary()), TEXT)
    except pa.ArrowInvalid:
        shown = [None if value is None else _as_text(value) for value in values.to_pylist()]
        odd = pc.and_(values.is_valid(), pa.array([text is None for text in shown]))
        texts = _written(pa.array(shown, TEXT), json_out.quoted_bytes, json_out.write_quoted)
        encoded = _base64_objects(pc.filter(values, odd))
        return pc.replace_with_mask(texts, odd, encoded)
    return _written(texts, json_out.quoted_bytes, json_out.write_quoted)


def _as_text(value: bytes) -> str | None:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _base64_objects(values: pa.Array) -> pa.Array:
    encoded = _encoded(values)
    return pc.binary_join_element_wise(pa.scalar('{"base64":', TEXT), encoded, pa.scalar("}", TEXT), _EMPTY)


def _vector(_: ShownJson, values: pa.Array) -> pa.Array:
    texts = _floats(values.flatten())
    counts = pc.fill_null(pc.list_value_length(values), 0)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts.to_numpy(zero_copy_only=False).astype(np.int64))])
    joined = pc.binary_join(pa.LargeListArray.from_arrays(pa.array(ends), texts), pa.scalar(",", TEXT))
    shown = pc.binary_join_element_wise(pa.scalar("[", TEXT), joined, pa.scalar("]", TEXT), _EMPTY)
    return pc.if_else(values.is_valid(), shown, _NULL)


_WRITERS: Final[dict[Kind, Callable[[ShownJson, pa.Array], pa.Array]]] = {
    **dict.fromkeys((Kind.INT, Kind.UNSIGNED_BIGINT, Kind.YEAR, Kind.BOOLEAN), _number),
    **dict.fromkeys((Kind.TEXT, Kind.ENUM, Kind.SET, Kind.JSON), _text),
    **dict.fromkeys((Kind.BINARY, Kind.BIT, Kind.GEOMETRY), _base64),
    **dict.fromkeys((Kind.TIME, Kind.UUID, Kind.INET, Kind.DECIMAL_TEXT), _plain),
    Kind.DECIMAL: _decimal,
    Kind.DATE: _date,
    Kind.DATETIME: _datetime,
    Kind.TIMESTAMP: _datetime,
    Kind.VECTOR: _vector,
}
