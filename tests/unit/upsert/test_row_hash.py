"""Row hashes against a second way to compute them, and what must and must not change them."""

from __future__ import annotations

import hashlib
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import UnsupportedValue
from tidegate.upsert.row_hash import row_hashes

KINDS = {
    "b": pa.bool_(),
    "a long name of a column": pa.int32(),
    "ü": pa.int64(),
    "day": pa.date32(),
    "at": pa.timestamp("us"),
    "real": pa.float32(),
    "double": pa.float64(),
    "amount": pa.decimal128(12, 3),
    "text": pa.string(),
    "bytes": pa.binary(),
    "vector": pa.list_(pa.float32()),
}
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "b": st.booleans(),
    "a long name of a column": st.integers(-(1 << 31), (1 << 31) - 1),
    "ü": st.integers(-(1 << 63), (1 << 63) - 1),
    "day": st.dates(),
    "at": st.datetimes(),
    "real": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "amount": st.decimals(-(10**8), 10**8, places=3),
    "text": st.text(),
    "bytes": st.binary(max_size=300),
    "vector": st.lists(st.floats(width=32, allow_nan=False), max_size=5),
}
ROW = st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()})


def number(value: int) -> bytes:
    return value.to_bytes(8, "little", signed=True)


def counted(data: bytes) -> bytes:
    return number(len(data)) + data


def bytes_of(value: Any, kind: pa.DataType) -> bytes:
    """As row_hash's docstring says it."""
    if kind == pa.float32():
        return b"f" + struct.pack("<fI", value, 0)
    if kind == pa.float64():
        return b"d" + struct.pack("<d", value)
    if isinstance(value, Decimal):
        return b"m" + bytes([kind.scale]) + int(value.scaleb(kind.scale)).to_bytes(16, "little", signed=True)
    if isinstance(value, datetime):
        since = value - datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)
        return b"t" + number(since // timedelta(microseconds=1))
    if isinstance(value, date):
        return b"i" + number((value - date(1970, 1, 1)).days)
    if isinstance(value, list):
        return b"v" + counted(struct.pack(f"<{len(value)}f", *value))
    if isinstance(value, str | bytes):
        return b"b" + counted(value.encode() if isinstance(value, str) else value)
    return b"i" + number(int(value))


def expected(row: dict[str, Any]) -> str:
    data = b""
    for name in sorted(row):
        if row[name] is not None:
            data += struct.pack("<I", len(name.encode())) + name.encode() + bytes_of(row[name], KINDS[name])
    return hashlib.blake2b(data, digest_size=16).hexdigest()


@settings(deadline=None)
@given(st.lists(ROW, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_the_hash_is_what_its_page_says_whatever_the_order_of_columns(rows: list[dict[str, Any]], random_: Any) -> None:
    names = list(KINDS)
    random_.shuffle(names)
    columns = {name: pa.array([row[name] for row in rows], KINDS[name]) for name in names}
    assert row_hashes(columns).to_pylist() == [expected(row) for row in rows]
    sliced = {name: column[1:] for name, column in columns.items()}
    assert row_hashes(sliced).to_pylist() == [expected(row) for row in rows[1:]]
    chunked = {name: pa.chunked_array([column[:1], column[1:]]) for name, column in columns.items()}
    assert row_hashes(chunked).to_pylist() == [expected(row) for row in rows]


def one(**columns: Any) -> str:
    hashed: str = row_hashes(columns)[0].as_py()
    return hashed


def test_null_is_neither_empty_nor_in_another_column() -> None:
    null, empty = pa.array([None], pa.string()), pa.array([""])
    hashes = {one(a=null, b=empty), one(a=empty, b=null), one(a=null, b=null), one(a=empty, b=empty)}
    assert len(hashes) == 4


def test_a_wider_integer_and_an_added_null_leave_the_hash() -> None:
    narrow = one(a=pa.array([5], pa.int8()))
    assert narrow == one(a=pa.array([5], pa.int64())) == one(a=pa.array([5]), b=pa.array([None], pa.string()))


def test_vectors_that_are_all_null_hash_as_null() -> None:
    """Such an array has no buffer of floats at all when the decoder made it."""
    valid = pa.py_buffer(b"\0")
    floats = pa.Array.from_buffers(pa.float32(), 0, [None, None])
    none = pa.ListArray.from_buffers(
        pa.list_(pa.float32()), 2, [valid, pa.py_buffer(bytes(12))], null_count=2, children=[floats]
    )
    ids = pa.array([1, 2])
    assert row_hashes({"id": ids, "v": none}) == row_hashes({"id": ids})


def test_more_rows_than_a_block_have_their_own_hashes() -> None:
    count = 70_000
    hashes = row_hashes({"a": pa.array(range(count))}).to_pylist()
    assert len(set(hashes)) == count
    assert hashes[-1] == one(a=pa.array([count - 1]))


def test_a_type_that_silver_does_not_have_is_refused() -> None:
    with pytest.raises(UnsupportedValue):
        row_hashes({"a": pa.array([{"b": 1}])})
    with pytest.raises(UnsupportedValue):
        row_hashes({"a": pa.array([[1]])})
