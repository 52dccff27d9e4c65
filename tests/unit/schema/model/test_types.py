"""Canonical types, one by one."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import UnsupportedValue
from tidegate.schema.model.columns import Column
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import canonical, enum_members, members_text

TABLE = [
    ("tinyint(4)", pa.int8(), "tinyint"),
    ("tinyint(1)", pa.int8(), "tinyint"),
    ("smallint", pa.int16(), "smallint"),
    ("mediumint(9)", pa.int32(), "int"),
    ("int", pa.int32(), "int"),
    ("bigint(20)", pa.int64(), "bigint"),
    ("tinyint(3) unsigned", pa.int16(), "smallint"),
    ("smallint unsigned", pa.int32(), "int"),
    ("mediumint unsigned", pa.int32(), "int"),
    ("int(10) unsigned zerofill", pa.int64(), "bigint"),
    ("bigint unsigned", pa.decimal128(20, 0), "decimal(20,0)"),
    ("decimal(12,2)", pa.decimal128(12, 2), "decimal(12,2)"),
    ("decimal(12,2) unsigned", pa.decimal128(12, 2), "decimal(12,2)"),
    ("decimal(38,30)", pa.decimal128(38, 30), "decimal(38,30)"),
    ("decimal(39,0)", pa.string(), "string"),
    ("decimal(65,30)", pa.string(), "string"),
    ("float", pa.float32(), "float"),
    ("float(7,3)", pa.float32(), "float"),
    ("double(8,2) unsigned", pa.float64(), "double"),
    ("bit(1)", pa.bool_(), "boolean"),
    ("bit(8)", pa.binary(), "binary"),
    ("date", pa.date32(), "date"),
    ("datetime", pa.timestamp("us"), "timestamp_ntz"),
    ("datetime(6)", pa.timestamp("us"), "timestamp_ntz"),
    ("timestamp(3)", pa.timestamp("us", tz="UTC"), "timestamp"),
    ("datetime /* mariadb-5.3 */", pa.timestamp("us"), "timestamp_ntz"),
    ("time(6)", pa.string(), "string"),
    ("year(4)", pa.int16(), "smallint"),
    ("char(10)", pa.string(), "string"),
    ("varchar(255)", pa.string(), "string"),
    ("longtext", pa.string(), "string"),
    ("enum('a','b')", pa.string(), "string"),
    ("set('a','b')", pa.string(), "string"),
    ("binary(16)", pa.binary(), "binary"),
    ("varbinary(16)", pa.binary(), "binary"),
    ("mediumblob", pa.binary(), "binary"),
    ("json", pa.string(), "string"),
    ("point", pa.binary(), "binary"),
    ("vector(3)", pa.list_(pa.float32()), "array<float>"),
    ("uuid", pa.string(), "string"),
    ("inet6", pa.string(), "string"),
]


@pytest.mark.parametrize(("text", "arrow", "delta"), TABLE)
def test_a_server_type_has_one_arrow_and_one_delta_type(text: str, arrow: pa.DataType, delta: str) -> None:
    found = canonical(Column(id=1, name="c", type=text))
    assert (found.arrow, found.delta) == (arrow, delta)


def test_a_text_column_of_charset_binary_is_binary() -> None:
    assert canonical(Column(id=1, name="c", type="varchar(3)", charset="binary")).kind is Kind.BINARY


@pytest.mark.parametrize("text", ["blurb", "int(x)", "varchar(10) compressed", "", "enum('a',)", "enum(a)", "enum('a"])
def test_a_type_not_understood_is_an_error_that_names_column_and_type(text: str) -> None:
    with pytest.raises(UnsupportedValue) as caught:
        canonical(Column(id=1, name="price", type=text))
    assert "price" in str(caught.value)
    assert repr(text)[1:-1] in str(caught.value)


def test_enum_members_are_unquoted_as_the_server_quotes_them() -> None:
    assert enum_members("enum('a','b''c','d,e','(f)','','G\\\\h','表')") == ("a", "b'c", "d,e", "(f)", "", "G\\h", "表")


@given(st.lists(st.text(), min_size=1, max_size=8))
def test_members_written_and_read_again_are_the_same(members: list[str]) -> None:
    assert enum_members(f"set({members_text(tuple(members))})") == tuple(members)
