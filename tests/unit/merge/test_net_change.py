"""Net change: the last change of each key and nothing else, against a dict."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.merge.net_change import net_last_per_key


def by_dict(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    last: dict[Any, int] = {}
    for index, row in enumerate(rows):
        last[row[:-1]] = index
    return [rows[index] for index in sorted(last.values())]


def netted(rows: list[tuple[Any, ...]], types: list[pa.DataType]) -> list[tuple[Any, ...]]:
    names = [f"k{i}" for i in range(len(types))]
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(types)]
    batch = pa.record_batch([*columns, pa.array([row[-1] for row in rows], pa.int64())], names=[*names, "v"])
    found = net_last_per_key(batch, names)
    return [tuple(row.values()) for row in found.to_pylist()]


@settings(deadline=None)  # the first call loads the kernel
@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), st.integers(0, 9))))
def test_single_integer_key_keeps_the_last_change_of_each_key(rows: list[tuple[int, int]]) -> None:
    assert netted(rows, [pa.int64()]) == by_dict(rows)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.decimal128(20, 0), pa.string()])
def test_every_key_type_keeps_the_last_change_of_each_key(kind: pa.DataType) -> None:
    values = ["a", "b", "a", "c", "b"] if kind == pa.string() else [1, 2, 1, 3, 2]
    rows = list(zip(values, range(5), strict=True))
    assert [row[-1] for row in netted(rows, [kind])] == [2, 3, 4]


@settings(deadline=None)  # the first call loads the kernel
@given(
    st.lists(
        st.tuples(
            st.integers(-2, 2), st.sampled_from(["", "a", "A", "é"]), st.none() | st.integers(0, 1), st.integers()
        )
    )
)
def test_composite_key_keeps_the_last_change_of_each_key(rows: list[tuple[Any, ...]]) -> None:
    numbered = [(*row[:-1], index) for index, row in enumerate(rows)]
    assert netted(numbered, [pa.int32(), pa.string(), pa.int64()]) == by_dict(numbered)


def test_rows_keep_their_order() -> None:
    rows = [(key % 50, key) for key in range(10_000)]
    found = netted(rows, [pa.int64()])
    assert [row[1] for row in found] == sorted(row[1] for row in found)
    assert len(found) == 50


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_minus_zero_is_the_key_zero_as_it_is_to_the_server(kind: pa.DataType) -> None:
    rows = [(0.0, 0), (-0.0, 1), (1.0, 2), (1.0, 3), (0.0, 4), (-0.0, 5)]
    assert [row[-1] for row in netted(rows, [kind])] == [3, 5]
    batch = pa.record_batch([pa.array([-0.0, 0.0], kind)], names=["k"])
    assert str(net_last_per_key(batch.slice(0, 1), ["k"])["k"][0].as_py()) == "-0.0", "values stay as they came"
