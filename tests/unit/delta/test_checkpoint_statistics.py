"""Statistics that a checkpoint holds as columns only become the text that the log has, or nothing."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tidegate.delta.checkpoints.statistics import statistics_text
from tidegate.errors import DeltaUnsupported

UTC = pa.timestamp("us", tz="UTC")
CASES: list[tuple[pa.DataType, Any, Any]] = [
    (pa.int8(), -128, "-128"),
    (pa.int64(), 2**63 - 1, "9223372036854775807"),
    (pa.float64(), 0.1, "0.1"),
    (pa.float64(), 1e300, "1e+300"),
    (pa.float64(), float("nan"), None),
    (pa.float64(), float("inf"), None),
    (
        pa.decimal128(38, 10),
        Decimal("1234567890123456789012345678.0123456789"),
        "1234567890123456789012345678.0123456789",
    ),
    (pa.string(), "", '""'),
    (pa.string(), 'q"\\\n\x00é\u2028\U0001f600', json.dumps('q"\\\n\x00é\u2028\U0001f600')),
    (pa.large_string(), "é", '"é"'),
    (pa.date32(), dt.date(1, 1, 1), '"0001-01-01"'),
    (pa.date32(), dt.date(9999, 12, 31), '"9999-12-31"'),
    (pa.date32(), 2_932_897, None),
    (UTC, dt.datetime(2024, 1, 31, 10, 0, 0, 123_999, tzinfo=dt.UTC), '"2024-01-31T10:00:00.123Z"'),
    (UTC, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC), '"1969-12-31T23:59:59.999Z"'),
    (UTC, dt.datetime(1, 1, 1, tzinfo=dt.UTC), '"0001-01-01T00:00:00.000Z"'),
    (UTC, dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.UTC), '"9999-12-31T23:59:59.000Z"'),
    (pa.timestamp("us"), dt.datetime(2024, 1, 31, 10, tzinfo=dt.UTC), '"2024-01-31T10:00:00.000"'),
    (pa.bool_(), True, "true"),
]


@pytest.mark.parametrize(("kind", "value", "text"), CASES, ids=str)
def test_a_bound_is_said_exactly_or_left_out(kind: pa.DataType, value: Any, text: str | None) -> None:
    low = pa.StructArray.from_arrays([pa.array([value, None], kind)], names=['a "b'])
    parsed = pa.StructArray.from_arrays([pa.array([7, 7]), low], names=["numRecords", "minValues"])
    bounds = "{}" if text is None else '{"a \\"b":' + text + "}"
    assert statistics_text(parsed).to_pylist() == [
        '{"numRecords":7,"minValues":' + bounds + "}",
        '{"numRecords":7,"minValues":{}}',
    ]


def test_no_statistics_are_none() -> None:
    kind = pa.struct({"numRecords": pa.int64(), "minValues": pa.struct({"s": pa.struct({"x": pa.int32()})})})
    parsed = pa.array([None, {"numRecords": 1}, {"minValues": {"s": {"x": 3}}}, {}], kind)
    assert statistics_text(parsed).to_pylist() == [None, '{"numRecords":1}', '{"minValues":{"s":{"x":3}}}', "{}"]


def test_a_type_that_has_no_such_bounds_is_refused() -> None:
    with pytest.raises(DeltaUnsupported, match="statistics of type binary"):
        statistics_text(pa.array([{"minValues": {"v": b"\0"}}]))
