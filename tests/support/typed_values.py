"""A value of each column type: as SQL writes it, and as silver has it.

In:  nothing; this is data.
Out: (column type, value as SQL, silver's Arrow type, silver's value), of both servers and of each alone.
"""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa

UTC = dt.UTC

INSTANT = dt.datetime(2020, 1, 2, 3, 4, 5, 678000, UTC)


def _naive(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


# column type, value as SQL, silver's Arrow type, silver's value
SAME: list[tuple[str, str, pa.DataType, Any]] = [
    ("TINYINT", "-128", pa.int8(), -128),
    ("TINYINT UNSIGNED", "255", pa.int16(), 255),
    ("INT ZEROFILL", "42", pa.int64(), 42),
    ("BIGINT UNSIGNED", "18446744073709551615", pa.decimal128(20, 0), Decimal(18446744073709551615)),
    ("DECIMAL(10,3)", "-1.5", pa.decimal128(10, 3), Decimal("-1.500")),
    ("DECIMAL(10,2) ZEROFILL", "1.5", pa.decimal128(10, 2), Decimal("1.50")),
    ("DECIMAL(65,30)", "12345678901234567890.5", pa.string(), "12345678901234567890.500000000000000000000000000000"),
    ("FLOAT", "0.1", pa.float32(), 0.1),
    ("FLOAT(10,2)", "1.1", pa.float32(), 1.1),
    ("FLOAT", "-0e0", pa.float32(), -0.0),
    ("DOUBLE", "1e300", pa.float64(), 1e300),
    ("DOUBLE", "0.1e0 + 0.2e0", pa.float64(), 0.1 + 0.2),
    ("BIT(1)", "b'1'", pa.bool_(), True),
    ("BIT(10)", "b'1000000001'", pa.binary(), b"\x02\x01"),
    ("DATE", "'9999-12-31'", pa.date32(), dt.date(9999, 12, 31)),
    ("DATE", "'0000-00-00'", pa.date32(), None),
    ("DATE", "'2020-00-10'", pa.date32(), None),
    ("DATETIME(6)", "'1000-01-01 00:00:00.000001'", pa.timestamp("us"), _naive("1000-01-01T00:00:00.000001")),
    ("DATETIME", "'2020-02-29 23:59:59'", pa.timestamp("us"), _naive("2020-02-29T23:59:59")),
    (
        "TIMESTAMP(3)",
        "'2020-01-02 03:04:05.678'",
        pa.timestamp("us", "UTC"),
        dt.datetime(2020, 1, 2, 3, 4, 5, 678000, UTC),
    ),
    ("TIME(2)", "'-838:59:58.25'", pa.string(), "-838:59:58.25"),
    ("TIME", "'-00:00:01'", pa.string(), "-00:00:01"),
    ("YEAR", "2155", pa.int16(), 2155),
    ("YEAR", "0", pa.int16(), 0),
    ("CHAR(5)", "'a  '", pa.string(), "a"),
    ("VARCHAR(9)", "'a  '", pa.string(), "a  "),
    ("VARCHAR(9) CHARACTER SET latin1", "'é€'", pa.string(), "é€"),
    ("TEXT", "'line\\nend\\0'", pa.string(), "line\nend\0"),
    ("ENUM('x','y''z')", "'y''z'", pa.string(), "y'z"),
    ("SET('a','b','c')", "'c,a'", pa.string(), "a,c"),
    ("BINARY(3)", "'a'", pa.binary(), b"a\0\0"),
    ("VARBINARY(9)", "x'00ff80'", pa.binary(), b"\0\xff\x80"),
    ("BLOB", "''", pa.binary(), b""),
    ("POINT", "ST_GeomFromText('POINT(1 -2)')", pa.binary(), struct.pack("<BIdd", 1, 1, 1, -2)),
]
ONLY_MYSQL: list[tuple[str, str, pa.DataType, Any]] = [
    ("JSON", """'{"b":1,"a":[1.0,"x"]}'""", pa.string(), '{"a": [1.0, "x"], "b": 1}'),
    ("VECTOR(2)", "STRING_TO_VECTOR('[0.1,-2]')", pa.list_(pa.float32()), [0.1, -2.0]),
]
ONLY_MARIADB: list[tuple[str, str, pa.DataType, Any]] = [
    ("JSON", '\'{"b":1, "a":2}\'', pa.string(), '{"b":1, "a":2}'),
    ("UUID", "'123E4567-E89B-12D3-A456-426655440000'", pa.string(), "123e4567-e89b-12d3-a456-426655440000"),
    ("INET6", "'::1'", pa.string(), "::1"),
]
