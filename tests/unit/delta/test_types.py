"""Arrow schemas as Delta's JSON, and back."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from deltalake import Schema

from tidegate import tables
from tidegate.delta.table.arrow_types import arrow_schema, delta_schema
from tidegate.errors import UnsupportedValue


@pytest.mark.parametrize("table", tables.ALL, ids=lambda table: table.path)
def test_a_tables_schema_is_the_one_that_delta_rs_would_write(table: tables.Table) -> None:
    assert delta_schema(table.schema) == json.loads(Schema.from_arrow(table.schema).to_json())


def test_each_type_comes_back_as_it_was() -> None:
    types = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.bool_(), pa.string()]
    types += [pa.binary(), pa.date32(), pa.timestamp("us", tz="UTC"), pa.timestamp("us"), pa.decimal128(38, 6)]
    types += [pa.list_(pa.field("element", pa.int64(), nullable=False)), pa.list_(pa.field("element", pa.string()))]
    schema = pa.schema([pa.field(f"c{n}", kind, nullable=n % 2 == 0) for n, kind in enumerate(types)])
    assert arrow_schema(delta_schema(schema)) == schema


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.timestamp("us", tz="+02:00"), pa.uint64(), pa.time64("us")])
def test_what_delta_has_no_name_for_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedValue, match="no name"):
        delta_schema(pa.schema([pa.field("c", kind)]))
