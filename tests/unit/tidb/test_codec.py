"""Datums, decimals, JSON, payloads and rows are read as they were written; broken bytes are one of our errors."""

from __future__ import annotations

import contextlib
import json
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.tidb import encode
from tidegate.errors import DecodeError, StreamCorrupt, TidegateError, UnknownEvent
from tidegate.tidb.codec.datum import Json, datum, datums
from tidegate.tidb.codec.json_binary import json_text
from tidegate.tidb.codec.protobuf import number_field, varint, written_varint
from tidegate.tidb.jobs import ROWID, ColumnInfo, TableInfo, Tp
from tidegate.tidb.records.payload import BinlogType, Mutation, binlog_of, fake_payload, mutations_of
from tidegate.tidb.rows.mutation import row_change
from tidegate.tidb.values.cells import Moment, float_text, moment, packed

NUMBERS = st.integers(-(2**63), 2**64 - 1)
DECIMALS = st.builds(
    lambda digits, scale, sign: Decimal((sign, tuple(map(int, str(digits))), -scale)),
    st.integers(0, 10**60),
    st.integers(0, 20),
    st.integers(0, 1),
)
VALUES = st.one_of(st.none(), NUMBERS, st.floats(allow_nan=False), DECIMALS, st.binary(max_size=40))
TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=4)),
    max_leaves=12,
)


@given(st.lists(VALUES, max_size=12))
def test_datums_are_read_as_they_were_written(values: list) -> None:
    found = datums(b"".join(map(encode.datum, values)))
    assert len(found) == len(values)
    for one, value in zip(found, values, strict=True):
        if isinstance(value, Decimal):
            assert isinstance(one, Decimal)
            assert one.as_tuple().exponent == value.as_tuple().exponent
        assert one == value


@given(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=30))
def test_handles_are_read_as_they_were_written(number: int, text: bytes) -> None:
    data = encode.handle(number) + encode.handle(text)
    value, at = datum(data, 0)
    assert (value, datum(data, at)) == (number, (text, len(data)))


@given(TREES)
def test_json_is_shown_as_json(tree: object) -> None:
    shown = json_text(encode.json_value(tree))
    assert json.loads(shown) == tree


@given(st.binary(max_size=60))
def test_any_bytes_as_a_row_are_values_or_a_decode_error(data: bytes) -> None:
    with contextlib.suppress(DecodeError):
        datums(data)


@given(TREES, st.data())
def test_a_changed_byte_of_json_is_a_text_or_a_decode_error(tree: object, data: st.DataObject) -> None:
    broken = bytearray(encode.json_value(tree))
    broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(DecodeError):
        json_text(Json(broken))


@given(st.binary(max_size=80))
def test_any_bytes_as_a_payload_are_a_binlog_or_our_error(data: bytes) -> None:
    with contextlib.suppress(StreamCorrupt, UnknownEvent):
        list(mutations_of(binlog_of(data).prewrite_value))


@given(st.integers(0, 2**64 - 1))
def test_varints_are_read_as_they_were_written(value: int) -> None:
    assert varint(written_varint(value), 0) == (value, len(written_varint(value)))


@given(st.lists(st.sampled_from(list(Mutation)), max_size=20))
def test_mutations_come_in_the_order_in_which_they_were_done(kinds: list[Mutation]) -> None:
    changes = [(kind, bytes([8, 2 * n])) for n, kind in enumerate(kinds)]
    assert [(kind, row) for _, kind, row in mutations_of(encode.mutations(7, *changes))] == changes


def test_a_packed_sequence_is_taken_too() -> None:
    body = number_field(1, 7) + b"\x12\x01a\x32\x01b" + b"\x3a\x02\x04\x00"
    value = b"\x12" + written_varint(len(body)) + body
    assert list(mutations_of(value)) == [(7, Mutation.DELETE, b"b"), (7, Mutation.INSERT, b"a")]


def test_a_mutation_without_its_row_is_refused() -> None:
    body = number_field(1, 7) + b"\x12\x01a" + number_field(7, 0) + number_field(7, 4)
    with pytest.raises(StreamCorrupt, match="2 mutations are announced, 1 rows"):
        list(mutations_of(b"\x12" + written_varint(len(body)) + body))


def test_a_fake_binlog_is_one() -> None:
    assert binlog_of(fake_payload(470607434383884288)).is_fake
    assert not binlog_of(encode.binlog(BinlogType.ROLLBACK, 5)).is_fake


@given(st.integers(0, 9999), st.integers(0, 12), st.integers(0, 31), st.integers(0, 86399), st.integers(0, 999999))
def test_moments_are_unpacked_as_they_were_packed(year: int, month: int, day: int, second: int, micro: int) -> None:
    at = Moment(year, month, day, second // 3600, second // 60 % 60, second % 60, micro)
    assert moment(packed(at)) == at


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_is_shown_with_digits_that_read_as_it_again(value: float) -> None:
    text = float_text(value, is_float=False)
    assert math.copysign(1, float(text)) == math.copysign(1, value)
    assert float(text) == value


@pytest.mark.parametrize(
    ("value", "is_float", "text"),
    [
        (3.4e38, True, "3.4e38"), (0.1, True, "0.1"), (1.7e308, False, "1.7e308"), (1e15, False, "1e15"),
        (999999999999999.0, False, "999999999999999"), (1e-16, False, "1e-16"), (-2.5, False, "-2.5"),
        (1.17549435e-38, True, "1.17549e-38"), (16777216.0, True, "16777216"), (0.0, False, "0"),
    ],
)  # fmt: skip
def test_numbers_are_shown_as_tidb_shows_them(value: float, is_float: bool, text: str) -> None:
    assert float_text(value, is_float=is_float) == text


ID = ColumnInfo(1, "id", Tp.LONGLONG, flag=32)
PLAIN = TableInfo(7, "t", (ID, ColumnInfo(2, "v", Tp.LONG)))
KEYED = TableInfo(7, "t", (ID, ColumnInfo(2, "v", Tp.LONG)), (1,), (1,))


def test_an_unsigned_key_above_the_signed_ones_is_itself() -> None:
    change = row_change(Mutation.INSERT, encode.datum(-1) + encode.pairs({2: 5}), KEYED)
    assert change.after == {1: 2**64 - 1, 2: 5}


def test_a_row_of_which_nothing_is_to_be_said_has_its_handle() -> None:
    assert row_change(Mutation.INSERT, encode.datum(9) + b"\x00", PLAIN).after == {ROWID: 9}
    assert row_change(Mutation.DELETE, encode.pairs({1: 3, ROWID: 9}), PLAIN).before == {1: 3, ROWID: 9}


def test_an_update_is_split_in_the_middle() -> None:
    row = encode.pairs({1: 3, 2: None}) + encode.pairs({1: 3, 2: 8})
    assert row_change(Mutation.UPDATE, row, KEYED) == ({1: 3, 2: None}, {1: 3, 2: 8})
    with pytest.raises(DecodeError, match="different columns"):
        row_change(Mutation.UPDATE, encode.pairs({1: 3, 2: None}) + encode.pairs({1: 3, 4: 8}), KEYED)


@given(st.binary(max_size=40), st.sampled_from(list(Mutation)))
def test_any_bytes_as_a_change_are_cells_or_our_error(data: bytes, kind: Mutation) -> None:
    with contextlib.suppress(TidegateError):
        row_change(kind, data, KEYED)
