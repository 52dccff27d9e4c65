"""A column of JSON says what json_binary.py says of each value; broken bytes are an error of ours, as there."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.tidb import encode
from tidegate.errors import DecodeError
from tidegate.tidb.codec.datum import Json
from tidegate.tidb.codec.json_binary import json_text
from tidegate.tidb.kernel import json_text as K  # noqa: N812 - a page of constants
from tidegate.tidb.rows.json_column import json_column

NUMBERS = st.one_of(
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.builds(lambda whole, digits: whole / 10**digits, st.integers(-(10**16), 10**16), st.integers(0, 22)),
)
TEXTS = st.one_of(st.text(max_size=8), st.sampled_from(["\u2028\u2029\u2027", '"\\\n\r\t\x00\x1f\x7f', "â€¨"]))
TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)
# A date, a datetime, a duration and an opaque value.
RARE = [b"\x0e" + bytes([0, 0, 0, 0, 0, 66, 160, 31]), b"\x10" + bytes(8), b"\x11" + bytes(12), b"\x0d\xfc\x02ab"]


def column(values: list[bytes | None]) -> pa.Array:
    return pa.array([None if one is None else b"\x0a" + one for one in values], pa.binary())


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.none(), TREES.map(encode.json_value), st.sampled_from(RARE)), max_size=6))
def test_a_column_says_what_each_value_says(values: list[bytes | None]) -> None:
    shown = [None if one is None else json_text(one) for one in values]
    assert json_column(column(values)).to_pylist() == shown


@settings(max_examples=150, deadline=None)
@given(TREES.map(encode.json_value), st.data())
def test_a_changed_byte_is_told_the_same_way(value: Json, data: st.DataObject) -> None:
    broken = bytearray(value)
    broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    try:
        shown = json_text(bytes(broken))
    except DecodeError:
        with pytest.raises(DecodeError):
            json_column(column([bytes(broken)]))
    else:
        assert json_column(column([bytes(broken)])).to_pylist() == [shown]


@pytest.mark.parametrize("value", [1.0, 0.1, -2.5, 1e-6, 123456789.125, 0.30000000000000004, 99999999999999.9, -0.0])
def test_a_number_is_shown_with_the_fewest_digits(value: float) -> None:
    assert float(json_column(column([encode.json_value(value)]))[0].as_py()) == value
    assert json_column(column([encode.json_value(value)]))[0].as_py() == json_text(encode.json_value(value))


def test_a_text_that_stands_for_two_values_writes_nothing_behind_its_room() -> None:
    text, heads = bytes([60]) + bytes(60), 2
    at = 8 + 5 * heads
    array = struct.pack("<II", heads, at + len(text)) + struct.pack("<BI", 0x0C, at) * heads + text
    objects = 8 + 11 * heads
    object_ = struct.pack("<II", heads, objects + 60) + struct.pack("<IH", objects, 60) * heads
    object_ += struct.pack("<BI", 0x04, 0) * heads + bytes(60)
    for datum in (b"\x0a\x03" + array, b"\x0a\x01" + object_):
        with pytest.raises(DecodeError, match="outside of its container"):
            json_column(pa.array([datum], pa.binary()))
        offsets, ends, undone = np.array([0, len(datum)], np.int32), np.empty(2, np.int32), np.empty(1, np.uint8)
        data, room = np.frombuffer(datum, np.uint8), 6 * len(datum)
        out, stack = np.full(2 * room, 0xEE, np.uint8), np.empty(K.DEPTH * K.FRAME_WORDS, np.int64)
        state = np.array([one.ctypes.data for one in (offsets, data, ends, out, undone, stack)], np.int64)
        assert K.json_texts(state.ctypes.data, 1) == 0
        assert undone[0] == 1
        assert set(out[room:].tolist()) == {0xEE}


def test_a_value_as_deep_as_the_server_allows_is_made_without_python(monkeypatch: pytest.MonkeyPatch) -> None:
    tree: object = 1
    for _ in range(100):
        tree = [tree]
    monkeypatch.setattr("tidegate.tidb.rows.json_column._one_by_one", None)
    assert json_column(column([encode.json_value(tree)])).to_pylist() == ["[" * 100 + "1" + "]" * 100]
