"""A column's texts as its canonical Arrow type.

In:  an Arrow array of texts, as a data file has them, and the column of a table version.
Out: an array of the canonical type; UnsupportedValue where a text is no such value. It is exact:
     Arrow's own casts take only a text that means the value, and this file does what they can't.

The protocols differ: canal-json has numbers of enum and set members, and bytes as ISO 8859-1 text;
csv has the members' names, and bytes in base64 or hexadecimal digits.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.config import BinaryEncoding, Protocol
from tidegate.errors import UnsupportedValue
from tidegate.schema.model.columns import Column
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import UNKNOWN, CanonicalType, ZeroDates, canonical
from tidegate.ticdc.pieces import Form

_LATIN_LEADS: Final = (0xC2, 0xC3)
_LATIN_SHIFT: Final = 0x40  # C3 80 is the byte C0, C2 80 is 80
_ASCII_MAX: Final = 0x80
_REAL_DATE: Final = r"^(?:[1-9]\d{3}|0[1-9]\d{2}|00[1-9]\d|000[1-9])-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"


@dataclass(frozen=True, slots=True)
class TextCells:
    """values: of the canonical type. null_dates: zero and impossible dates among them that became NULL."""

    values: pa.Array
    null_dates: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """One column of one form."""

    column: Column
    type: CanonicalType
    form: Form
    zero_dates: ZeroDates

    def wrong(self, what: str, remedy: str = "report it") -> UnsupportedValue:
        return UnsupportedValue(f"column {self.column.name} ({self.column.type}): {what}", remedy=remedy)


def cells(texts: pa.Array, column: Column, form: Form, zero_dates: ZeroDates) -> TextCells:
    """Raises UnsupportedValue."""
    asked = Asked(column, canonical(column), form, zero_dates)
    kind = asked.type.kind
    if kind in _DATES:
        return _dates(texts, asked)
    convert = _CONVERT.get(kind)
    if convert is None:
        raise asked.wrong("TiCDC writes no such column")
    try:
        return TextCells(convert(texts, asked))
    except pa.ArrowInvalid:
        raise asked.wrong("a value isn't written as those of its type are") from None


def _cast(texts: pa.Array, asked: Asked) -> pa.Array:
    return texts.cast(asked.type.arrow)


def _text(texts: pa.Array, asked: Asked) -> pa.Array:
    del asked
    return texts


def _bits(texts: pa.Array, asked: Asked) -> pa.Array:
    """A bit column's number; of more than one bit its bytes, the highest first."""
    numbers = texts.cast(pa.uint64())
    width = asked.type.text.numbers[0] if asked.type.text.numbers else 1
    if asked.type.kind is Kind.BOOLEAN:
        return pc.not_equal(numbers, pa.scalar(0, pa.uint64()))
    size = (width + 7) // 8
    valid = numbers.is_valid()
    plain = numbers.fill_null(0).to_numpy(zero_copy_only=False).astype(">u8")
    if len(plain) and width < 64 and int(plain.max()) >> width:
        raise asked.wrong(f"a number has more than {width} bits")
    whole = plain.view(np.uint8).reshape(-1, 8)[:, 8 - size :]
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(size), len(plain), [None, pa.py_buffer(np.ascontiguousarray(whole))]
    )
    return pc.if_else(valid, fixed.cast(pa.binary()), pa.scalar(None, pa.binary()))


def _binary(texts: pa.Array, asked: Asked) -> pa.Array:
    if asked.form.protocol is Protocol.CANAL_JSON:
        return _latin(texts, asked)
    decode: Callable[[str], bytes] = (
        _base64 if asked.form.csv.binary_encoding is BinaryEncoding.BASE64 else bytes.fromhex
    )
    try:
        return pa.array([None if text is None else decode(text) for text in texts.to_pylist()], pa.binary())
    except (ValueError, binascii.Error) as error:
        encoding = asked.form.csv.binary_encoding
        raise asked.wrong(
            f"a value isn't in {encoding}: {error}", "set csv.binary_encoding as the changefeed has it"
        ) from None


def _base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _latin(texts: pa.Array, asked: Asked) -> pa.Array:
    """Each character of the text is one byte of the value."""
    texts = _packed(texts)
    valid, offsets, data = texts.buffers()
    bytes_of = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    ends = np.frombuffer(offsets, np.int32)[: len(texts) + 1]
    bytes_of = bytes_of[: ends[-1]] if len(ends) else bytes_of
    leads = bytes_of >= _ASCII_MAX + _LATIN_SHIFT
    if np.any(leads & ~np.isin(bytes_of, _LATIN_LEADS)):
        raise asked.wrong("bytes hold characters beyond ISO 8859-1, which TiCDC writes for none")
    high = np.zeros(len(bytes_of), np.uint8)
    high[1:][bytes_of[:-1] == _LATIN_LEADS[1]] = _LATIN_SHIFT
    made = (bytes_of + high)[~leads]
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(leads)])
    shifted = (ends - before[ends]).astype(np.int32)
    buffers = [valid, pa.py_buffer(shifted), pa.py_buffer(np.ascontiguousarray(made))]
    return pa.Array.from_buffers(pa.binary(), len(texts), buffers, texts.null_count)


def _packed(texts: pa.Array) -> pa.Array:
    """The same array in buffers of its own, with offset 0."""
    return pa.concat_arrays([texts, pa.array([], pa.string())]) if texts.offset else texts


def _enum(texts: pa.Array, asked: Asked) -> pa.Array:
    if asked.form.protocol is Protocol.CSV:
        return texts
    members = _members(asked)
    numbers = texts.cast(pa.int32())
    most = pc.max(numbers).as_py() or 0
    if most > len(members):
        raise asked.wrong(f"a number beyond its {len(members)} members")
    # number 0 is the empty string that a server without strict mode stores for a value it refuses
    return pa.DictionaryArray.from_arrays(numbers, pa.array(["", *members], pa.string())).dictionary_decode()


def _set(texts: pa.Array, asked: Asked) -> pa.Array:
    if asked.form.protocol is Protocol.CSV:
        return texts
    members, coded = _members(asked), texts.cast(pa.uint64()).dictionary_encode()
    names = []
    for mask in coded.dictionary.to_pylist():
        if mask >> len(members):
            raise asked.wrong(f"a number beyond its {len(members)} members")
        names.append(",".join(member for n, member in enumerate(members) if mask >> n & 1))
    return pa.DictionaryArray.from_arrays(coded.indices, pa.array(names, pa.string())).dictionary_decode()


def _members(asked: Asked) -> tuple[str, ...]:
    members = asked.type.text.members
    if any(UNKNOWN in member for member in members):
        raise asked.wrong(
            "the changefeed's files don't tell its members, and have its values by their numbers",
            "use protocol=csv, which has their names, or DROP and CREATE the table while the changefeed runs",
        )
    return members


def _vector(texts: pa.Array, asked: Asked) -> pa.Array:
    def numbers(text: str) -> list[float]:
        if not (text.startswith("[") and text.endswith("]")):
            raise asked.wrong("a value is no vector")
        return [float(part) for part in text[1:-1].split(",")] if text != "[]" else []

    return pa.array([None if text is None else numbers(text) for text in texts.to_pylist()], asked.type.arrow)


def _dates(texts: pa.Array, asked: Asked) -> TextCells:
    """Dates; one that no calendar has is NULL or an error, as zero_dates says."""
    good = _real(texts)
    impossible = len(texts) - texts.null_count - int(pc.sum(good).as_py() or 0)
    if impossible and asked.zero_dates is ZeroDates.ERROR:
        raise asked.wrong("an impossible date", "change it at the source, or set apply.zero_dates: null")
    texts = pc.if_else(good, texts, pa.scalar(None, pa.string()))
    try:
        if asked.type.kind is Kind.DATE:
            return TextCells(texts.cast(pa.date32()), impossible)
        moments = texts.cast(pa.timestamp("us"))
        if asked.type.kind is Kind.DATETIME:
            return TextCells(moments, impossible)
        zoned = pc.assume_timezone(moments, asked.form.time_zone, ambiguous="raise", nonexistent="raise")
        return TextCells(zoned.cast(asked.type.arrow), impossible)
    except (pa.ArrowInvalid, ValueError):  # their texts have the value
        what = f"a moment that {asked.form.time_zone} doesn't have once"
        raise asked.wrong(what, "run the TiCDC servers with --tz UTC, where each hour of a year is once") from None


def _real(texts: pa.Array) -> pa.Array:
    """Whether each text is a date of the calendar; null for null."""
    shaped = pc.match_substring_regex(texts, _REAL_DATE)
    if not pc.any(shaped).as_py():
        return shaped
    days = pc.utf8_slice_codeunits(texts, 8, 10)
    if not pc.any(pc.greater(days, pa.scalar("28"))).as_py():
        return shaped
    # Days that some months lack: looked at by value, each date once.
    coded = pc.utf8_slice_codeunits(texts, 0, 10).dictionary_encode()
    is_real = [_in_calendar(text) for text in coded.dictionary.to_pylist()]
    return pc.and_(shaped, pa.array(is_real, pa.bool_()).take(coded.indices))


def _in_calendar(text: str) -> bool:
    try:
        np.datetime64(text, "D")
    except ValueError:
        return False
    return True


_DATES: Final = frozenset({Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP})
_CONVERT: Final[dict[Kind, Callable[[pa.Array, Asked], pa.Array]]] = {
    **dict.fromkeys((Kind.INT, Kind.UNSIGNED_BIGINT, Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL, Kind.YEAR), _cast),
    **dict.fromkeys((Kind.TEXT, Kind.JSON, Kind.TIME, Kind.DECIMAL_TEXT), _text),
    **dict.fromkeys((Kind.BOOLEAN, Kind.BIT), _bits),
    Kind.BINARY: _binary,
    Kind.ENUM: _enum,
    Kind.SET: _set,
    Kind.VECTOR: _vector,
}
