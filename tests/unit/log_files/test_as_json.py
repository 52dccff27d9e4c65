"""Numbers as JSON give a reader the value back."""

from __future__ import annotations

import json
import math
import struct

import pyarrow as pa
import pytest

from tidegate.log_files.as_json.column import _floats

VALUES = [0.0, -0.0, 1.0, -1.0, 0.1, 1e300, -1e-300, 5e-324, 16777217.0]


@pytest.mark.parametrize(("kind", "layout"), [(pa.float64(), "<d"), (pa.float32(), "<f")])
def test_a_float_is_the_same_number_to_who_reads_it_zeros_sign_included(kind: pa.DataType, layout: str) -> None:
    given = pa.array([value for value in VALUES if kind == pa.float64() or abs(value) < 1e38], kind)
    read = [json.loads(text) for text in _floats(given).to_pylist()]
    assert [struct.pack(layout, value) for value in read] == [struct.pack(layout, v) for v in given.to_pylist()]
    assert math.copysign(1, json.loads(_floats(pa.array([-0.0], kind))[0].as_py())) == -1


def test_what_json_has_no_number_for_is_a_string() -> None:
    found = _floats(pa.array([math.nan, math.inf, -math.inf, -0.0, None])).to_pylist()
    assert found == ['"NaN"', '"Infinity"', '"-Infinity"', "-0.0", None]
