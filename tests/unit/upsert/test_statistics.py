"""Statistics: bounds that hold for every value, in the forms that Delta's readers expect."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.upsert.files.statistics import loosened, statistics, upper_text, with_both_zeros


def of(column: pa.Array) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(statistics(pa.table({"c": column}), ["c"]), parse_float=Decimal)
    return parsed


@settings(deadline=None)
@given(st.text(min_size=1, max_size=80))
def test_a_cut_text_is_no_less_than_the_text(text: str) -> None:
    upper = upper_text(text)
    if upper is None:
        assert text[32] == "\U0010ffff"
    else:
        assert upper.encode() >= text.encode()
        assert len(upper) <= 33


def test_cut_texts_are_those_that_delta_writes() -> None:
    assert upper_text("a" * 32) == "a" * 32
    assert upper_text("a" * 33) == "a" * 32 + "\x7f"
    assert upper_text("a" * 32 + "\x7f") == "a" * 32 + "\U0010ffff"
    assert upper_text("a" * 32 + "ü") == "a" * 32 + "\U0010ffff"
    assert upper_text("a" * 32 + "\U0010ffff") is None
    found = of(pa.array(["a" * 32 + "\U0010ffff", "b" * 32 + "\U0010ffff"]))
    assert found["minValues"] == found["maxValues"] == {}


@pytest.mark.parametrize(
    ("column", "low", "high"),
    [
        (pa.array([3, None, -7], pa.int8()), -7, 3),
        (pa.array([Decimal("12345678901234567890123456789012345.678"), Decimal("-0.001")], pa.decimal128(38, 3)),
         Decimal("-0.001"), Decimal("12345678901234567890123456789012345.678")),
        (pa.array([0.1, 1e300]), Decimal("0.1"), Decimal("1e300")),
        (pa.array([date(1, 1, 1), date(9999, 12, 31)]), "0001-01-01", "9999-12-31"),
        (pa.array(['ü"\\\n', "a"]), "a", 'ü"\\\n'),
        (pa.array([datetime(2024, 1, 1, 0, 0, 0, 1001, tzinfo=UTC)], pa.timestamp("us", tz="UTC")),
         "2024-01-01T00:00:00.001Z", "2024-01-01T00:00:00.002Z"),
        (pa.array(["2024-01-01T00:00:00.001", "2024-01-02T00:00:00"]).cast(pa.timestamp("us")),
         "2024-01-01T00:00:00.001", "2024-01-02T00:00:00.000"),
    ],
)  # fmt: skip
def test_bounds_by_type(column: pa.Array, low: Any, high: Any) -> None:
    found = of(column)
    assert found["minValues"]["c"] == low
    assert found["maxValues"]["c"] == high
    assert found["nullCount"] == {"c": column.null_count}
    assert found["numRecords"] == len(column)
    assert found["tightBounds"] is True


@pytest.mark.parametrize(
    "column",
    [
        pa.array([None, None], pa.int64()),
        pa.array([], pa.int64()),
        pa.array([True, False]),
        pa.array([b"x"]),
        pa.array([[1.0]], pa.list_(pa.float32())),
        pa.array(np.array([1.0, np.nan]), from_pandas=False),
        pa.array([float("inf"), 1.0]),
        pa.array([2932897], pa.date32()),  # the day after 9999-12-31
    ],
)
def test_what_has_no_bounds_says_none(column: pa.Array) -> None:
    found = of(column)
    assert found["minValues"] == found["maxValues"] == {}
    assert found["nullCount"] == {"c": column.null_count}


def test_only_indexed_columns_are_described() -> None:
    rows = pa.table({"a": [1], "b": [2]})
    assert json.loads(statistics(rows, ["b"]))["nullCount"] == {"b": 0}


@pytest.mark.parametrize(
    "text",
    [
        statistics(pa.table({"tightBounds": pa.array(['"tightBounds":true'])}), ["tightBounds"]),
        '{"numRecords":1,"minValues":{"d":0.10000000000000000555},"tightBounds" : true}',
        '{"numRecords":1,"minValues":{"d":0.10000000000000000555},"tightBounds":false}',
        '{"numRecords":1,"minValues":{"d":0.10000000000000000555}}',
        "{}",
    ],
)
def test_loosened_statistics_differ_in_nothing_else(text: str) -> None:
    was = json.loads(text, parse_float=Decimal)
    now = json.loads(loosened(text, 7), parse_float=Decimal)
    assert now == {"numRecords": 7, **was, "tightBounds": False}


@pytest.mark.parametrize("text", [None, "", "{}", '{"numRecords":null}', '{"tightBounds":true,"numRecords" : null}'])
def test_a_file_with_a_vector_says_its_rows_whatever_its_writer_left_out(text: str | None) -> None:
    assert json.loads(loosened(text, 7)) == {"numRecords": 7, "tightBounds": False}


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("values", [[-0.0], [0.0], [-0.0, 0.0], [-5.0, -0.0], [-0.0, 5.0], [None, 0.0]])
def test_a_bound_of_zero_holds_both_zeros_in_the_order_of_any_reader(kind: pa.DataType, values: list[Any]) -> None:
    """-0.0 is less than 0.0 for some readers' bounds, and equal to it for their rows."""
    text = statistics(pa.table({"c": pa.array(values, kind)}), ["c"])
    found = json.loads(text, parse_float=str)
    there = [value for value in values if value is not None]
    assert found["minValues"]["c"] == ("-0.0" if min(there) == 0 else "-5.0")
    assert found["maxValues"]["c"] == ("0.0" if max(there) == 0 else "5.0")


def test_another_writers_bounds_of_zero_are_made_to_hold_both() -> None:
    text = (
        '{"numRecords":2,"minValues":{"d":0.0,"f":-1.5,"amount":0.0,"t":"\\"d\\":0.0,","wide":0.10000000000000000555},'
        '"maxValues":{"d":-0.0,"f":-0.0,"amount":0.0,"t":"ü\\u0001"},"nullCount":{"d":0,"f":0}}'
    )
    made = with_both_zeros(text, {"d", "f", "gone"})
    assert made is not None
    was, now = (json.loads(one, parse_float=str) for one in (text, made))
    was["minValues"]["d"], was["maxValues"]["d"], was["maxValues"]["f"] = "-0.0", "0.0", "0.0"
    assert now == was
    assert with_both_zeros(text, set()) == text
    assert with_both_zeros(None, {"d"}) is None
