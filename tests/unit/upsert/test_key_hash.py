"""Key hashes: equal for equal keys whoever wrote them down, different for different ones; leads keep order."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.seeds import many
from tidegate.errors import UnsupportedValue
from tidegate.upsert.keys.hash import key_hashes, leads

Make = Callable[[list[Any]], pa.Array]
UTC_US = pa.timestamp("us", tz="UTC")


def of(kind: pa.DataType) -> Make:
    return lambda values: pa.array(values, kind)


def through_parquet(kind: pa.DataType, **options: Any) -> Make:
    def make(values: list[Any]) -> pa.Array:
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"k": pa.array(values, kind)}), sink, **{"store_schema": False, **options})
        return pq.read_table(pa.BufferReader(sink.getvalue()), coerce_int96_timestamp_unit="us").column("k")

    return make


TEXTS = ["", "a", "abcdefgh", "abcdefghi", "ü" * 9, "a\0"]
MOMENTS = [datetime.fromisoformat(text) for text in ("0001-01-01", "1969-12-31T23:59:59.999999", "9999-12-31")]
AWARE = [moment.replace(tzinfo=UTC) for moment in MOMENTS]
AMOUNTS = [Decimal("0.00"), Decimal("-0.01"), Decimal("99999999.99")]
HUGE = [Decimal(0), Decimal(18446744073709551615), Decimal(1)]
FORMS: list[tuple[list[Any], list[Make]]] = [
    ([0, 1, -1, 127], [of(kind) for kind in (pa.int64(), pa.int32(), pa.int16(), pa.int8())]),
    ([0, 5, -(1 << 40)], [of(pa.int64()), through_parquet(pa.int64(), use_dictionary=False)]),
    (
        TEXTS,
        [
            of(pa.string()),
            of(pa.large_string()),
            of(pa.string_view()),
            lambda values: pa.array(values).dictionary_encode(),
            lambda values: pa.array([value.encode() for value in values], pa.binary()),
            through_parquet(pa.string(), use_dictionary=True),
            through_parquet(pa.string(), use_dictionary=False, compression="zstd"),
        ],
    ),
    ([b"\0\xff", b"\xfe\0"], [of(pa.binary()), of(pa.large_binary()), of(pa.binary(2)), through_parquet(pa.binary())]),
    (
        AMOUNTS,
        [
            of(pa.decimal128(10, 2)),
            of(pa.decimal128(38, 2)),
            of(pa.decimal64(10, 2)),
            through_parquet(pa.decimal128(10, 2), store_decimal_as_integer=True),
            through_parquet(pa.decimal128(10, 2), store_decimal_as_integer=False),
        ],
    ),
    (HUGE, [of(pa.decimal128(20, 0)), through_parquet(pa.decimal128(20, 0))]),
    (MOMENTS, [of(pa.timestamp("us")), through_parquet(pa.timestamp("us"), coerce_timestamps="us")]),
    (AWARE, [of(UTC_US), of(pa.timestamp("us", tz="Asia/Tokyo")), through_parquet(UTC_US, coerce_timestamps="us")]),
    ([AWARE[1]], [of(UTC_US), through_parquet(UTC_US, use_deprecated_int96_timestamps=True)]),
    ([datetime.fromisoformat("2024-02-29T01:02:03")], [of(pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")]),
    ([date(1, 1, 1), date(2024, 2, 29)], [of(pa.date32()), of(pa.date64()), through_parquet(pa.date32())]),
    ([0.5, -1.25, 3e30], [of(pa.float64()), through_parquet(pa.float64())]),
    (
        [0.1, -1.25],
        [of(pa.float32()), through_parquet(pa.float32()), lambda values: of(pa.float32())(values).cast(pa.float64())],
    ),
    ([True, False, True], [of(pa.bool_()), through_parquet(pa.bool_())]),
]  # fmt: skip


@pytest.mark.parametrize(("values", "makes"), FORMS)
def test_a_key_hashes_alike_in_every_form(values: list[Any], makes: list[Make]) -> None:
    expected = key_hashes([makes[0](values)])
    assert len({tuple(pair) for pair in expected.tolist()}) == len(set(values))
    for make in makes[1:]:
        assert (key_hashes([make(values)]) == expected).all()


@pytest.mark.parametrize(("values", "makes"), FORMS)
def test_a_slice_hashes_as_its_rows_did(values: list[Any], makes: list[Make]) -> None:
    for make in makes:
        longer = make(values * 5)
        whole = key_hashes([longer, longer])
        for at in range(len(values) * 3):
            part = longer[at : at + 9]
            assert (key_hashes([part, part]) == whole[at : at + len(part)]).all()


def test_both_zeros_are_one_key_and_so_are_all_nans() -> None:
    values = np.array([0.0, -0.0, np.nan, -np.nan])
    for kind in (pa.float64(), pa.float32()):
        first, second, third, fourth = key_hashes([pa.array(values, kind, from_pandas=False)]).tolist()
        assert first == second != third == fourth


def test_a_key_with_null_matches_nothing() -> None:
    hashes = key_hashes([pa.array([1, None, 3]), pa.array(["a", "b", None])])
    assert (hashes == 0).all(axis=1).tolist() == [False, True, True]
    assert (key_hashes([pa.array([None, 7])])[1] == key_hashes([pa.array([7])])[0]).all()


def test_where_one_text_ends_and_the_next_begins_counts() -> None:
    left = key_hashes([pa.array(["ab"]), pa.array(["c"])])
    right = key_hashes([pa.array(["a"]), pa.array(["bc"])])
    assert (left != right).all()


def test_a_seed_makes_other_hashes() -> None:
    for column in (pa.array([1, 2]), pa.array(["x", "y"])):
        assert (key_hashes([column], (1, 2)) != key_hashes([column], (1, 3))).any(axis=1).all()


def test_no_two_of_a_million_texts_share_a_lane() -> None:
    count = many(1_000_000, 1_000_000)
    hashes = key_hashes([pa.array(np.arange(count)).cast(pa.string())])
    assert len(np.unique(hashes[:, 0])) == len(np.unique(hashes[:, 1])) == count


def test_what_can_not_be_a_key_is_refused() -> None:
    refused = [pa.array([[1]]), pa.array([1 << 63], pa.uint64()), pa.array([1], pa.timestamp("ns"))]
    for column in refused:
        with pytest.raises(UnsupportedValue):
            key_hashes([column])


ORDERED: dict[str, tuple[st.SearchStrategy[Any], pa.DataType, Callable[[Any], Any]]] = {
    "integer": (st.integers(-(1 << 63), (1 << 63) - 1), pa.int64(), lambda v: v),
    "text": (st.text(), pa.string(), lambda v: v.encode()),
    "bytes": (st.binary(), pa.binary(), lambda v: v),
    "decimal": (st.decimals(-(10**34), 10**34, places=2), pa.decimal128(38, 2), lambda v: v),
    "double": (st.floats(allow_nan=False), pa.float64(), lambda v: v),
    "float": (st.floats(allow_nan=False, width=32), pa.float32(), lambda v: v),
    "date": (st.dates(), pa.date32(), lambda v: v),
    "timestamp": (st.datetimes(), pa.timestamp("us"), lambda v: v),
    "boolean": (st.booleans(), pa.bool_(), lambda v: v),
}


@pytest.mark.parametrize("name", ORDERED)
def test_leads_keep_the_order_of_values(name: str) -> None:
    values, kind, order = ORDERED[name]

    @settings(deadline=None)
    @given(st.lists(values, min_size=2))
    def holds(some: list[Any]) -> None:
        found = leads(pa.array(sorted(some, key=order), kind))
        assert (np.diff(found.astype(object)) >= 0).all()

    holds()
