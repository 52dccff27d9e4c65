"""Each type of TiDB as canal-json and csv have it, and the value that a SELECT shows.

In:  nothing.
Out: TYPES. The left side is written by hand, by the rules of TiCDC's encoders; nothing is made by the product.
"""

from __future__ import annotations

import base64
import datetime as dt
from decimal import Decimal
from typing import Any, NamedTuple

from tests.support.changefeed_writer import Cell, number, text

BYTES = bytes(range(256))


def binary(value: bytes) -> Cell:
    """canal: each byte a character of ISO 8859-1; csv: base64."""
    return Cell(value.decode("latin-1"), base64.b64encode(value).decode(), quoted=True)


def member(place: int, name: str) -> Cell:
    """Of enum and set: canal has the number, csv the names."""
    return Cell(str(place), name, quoted=True)


class Type(NamedTuple):
    """sql: of the CREATE TABLE. shown: ColumnType of a schema file. cells -> what silver has."""

    sql: str
    shown: str
    values: list[tuple[Cell, Any]]


moment = dt.datetime.fromisoformat
TYPES = [
    Type("TINYINT", "TINYINT", [(number(-128), -128), (number(127), 127)]),
    Type("TINYINT UNSIGNED", "TINYINT UNSIGNED", [(number(255), 255), (number(0), 0)]),
    Type("SMALLINT", "SMALLINT", [(number(-32768), -32768), (number(32767), 32767)]),
    Type("MEDIUMINT UNSIGNED", "MEDIUMINT UNSIGNED", [(number(16777215), 16777215), (number(0), 0)]),
    Type("INT", "INT", [(number(-(2**31)), -(2**31)), (number(2**31 - 1), 2**31 - 1)]),
    Type("INT UNSIGNED", "INT UNSIGNED", [(number(2**32 - 1), 2**32 - 1), (number(0), 0)]),
    Type("BIGINT", "BIGINT", [(number(-(2**63)), -(2**63)), (number(2**63 - 1), 2**63 - 1)]),
    Type("BIGINT UNSIGNED", "BIGINT UNSIGNED", [(number(2**64 - 1), Decimal(2**64 - 1)), (number(0), Decimal(0))]),
    Type(
        "FLOAT",
        "FLOAT",
        [
            (number("0.1"), 0.10000000149011612),
            (number("-340282350000000000000000000000000000000"), -3.4028234663852886e38),
        ],
    ),
    Type("DOUBLE", "DOUBLE", [(number("0.1"), 0.1), (Cell("1" + "0" * 300, "1e+300"), 1e300)]),
    Type(
        "DECIMAL(20,5)",
        "DECIMAL",
        [(text("-123456789012345.67890"), Decimal("-123456789012345.67890")), (text("0.00001"), Decimal("0.00001"))],
    ),
    Type(
        "DECIMAL(65,30)",
        "DECIMAL",
        [
            (text("-" + "9" * 35 + "." + "9" * 30), "-" + "9" * 35 + "." + "9" * 30),
            (text("0." + "0" * 30), "0." + "0" * 30),
        ],
    ),
    Type("BIT(1)", "BIT", [(number(1), True), (number(0), False)]),
    Type("BIT(10)", "BIT", [(number(1023), b"\x03\xff"), (number(0), b"\x00\x00")]),
    Type("BIT(64)", "BIT", [(number(2**64 - 1), b"\xff" * 8), (number(5), b"\x00" * 7 + b"\x05")]),
    Type("DATE", "DATE", [(text("2024-02-29"), dt.date(2024, 2, 29)), (text("9999-12-31"), dt.date(9999, 12, 31))]),
    Type(
        "DATETIME",
        "DATETIME",
        [(text("1000-01-01 00:00:00"), moment("1000-01-01 00:00:00.000000")), (text("0000-00-00 00:00:00"), None)],
    ),
    Type(
        "DATETIME(6)",
        "DATETIME",
        [
            (text("9999-12-31 23:59:59.999999"), moment("9999-12-31 23:59:59.999999")),
            (text("2024-02-29 01:02:03.000004"), moment("2024-02-29 01:02:03.000004")),
        ],
    ),
    Type(
        "TIMESTAMP(3)",
        "TIMESTAMP",
        [
            (text("1970-01-01 00:00:01.001"), moment("1970-01-01 00:00:01.001000+00:00")),
            (text("2038-01-19 03:14:07.999"), moment("2038-01-19 03:14:07.999000+00:00")),
        ],
    ),
    Type("TIME", "TIME", [(text("-838:59:59"), "-838:59:59"), (text("00:00:00"), "00:00:00")]),
    Type("TIME(3)", "TIME", [(text("12:30:00.500"), "12:30:00.500"), (text("-00:00:00.001"), "-00:00:00.001")]),
    Type("YEAR", "YEAR", [(number(1901), 1901), (number(0), 0)]),
    Type("CHAR(10)", "CHAR", [(text(""), ""), (text("a,b\"c'"), "a,b\"c'")]),
    Type(
        "VARCHAR(200)",
        "VARCHAR",
        [
            (text("\\N"), "\\N"),
            (text('Zeile 1\r\nZeile "2"\t\\ \u0000 \U0001f600'), 'Zeile 1\r\nZeile "2"\t\\ \u0000 \U0001f600'),
        ],
    ),
    Type("TEXT", "TEXT", [(text("null"), "null"), (text("x" * 70000), "x" * 70000)]),
    Type(
        "BINARY(4)",
        "BINARY",
        [(binary(b"\x00\x00\x00\x00"), b"\x00" * 4), (binary(b"\xff\xfe\x80\x00"), b"\xff\xfe\x80\x00")],
    ),
    Type("VARBINARY(300)", "VARBINARY", [(binary(BYTES), BYTES), (binary(b""), b"")]),
    Type("BLOB", "BLOB", [(binary(BYTES * 300), BYTES * 300), (binary(b"\xc3\xa9"), b"\xc3\xa9")]),
    Type("ENUM('a','b''c',',')", "ENUM", [(member(2, "b'c"), "b'c"), (member(3, ","), ",")]),
    Type("SET('x','y','z')", "SET", [(member(5, "x,z"), "x,z"), (member(0, ""), "")]),
    Type("JSON", "JSON", [(text('{"a": [1, "é\\\\n", null]}'), '{"a": [1, "é\\\\n", null]}'), (text("null"), "null")]),
    Type(
        "VECTOR(3)",
        "VECTOR",
        [(text("[1,-2.5,3e-05]"), [1.0, -2.5, 2.9999999242136255e-05]), (text("[0,0,0]"), [0.0, 0.0, 0.0])],
    ),
]
