# ruff: noqa: DTZ001 - DATETIME has no zone
"""One list of values that every decoder must read alike: the type, how SQL writes the value, its bytes in a row image,
and what it canonically is.

In:  nothing.
Out: CASES. test_cases.py runs them through the kernel, the slow twin and mysql-replication, and has real servers write
     them: so a literal's bytes are the server's own, and no case rests on our own reading of a format.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from datetime import date as day
from datetime import datetime as at
from decimal import Decimal as D  # noqa: N817 - stands in every other line
from typing import Any

from tests.unit.binlog.encoding.types import WireType, wire_type

X = bytes.fromhex

# Why mysql-replication is left out of a case (1.0.17).
YEAR_0 = "gives 1900"
NEGATIVE_TIME = "reads the whole seconds of a negative TIME with a fraction one too large"
ZERO_TIMESTAMP = "gives 1970-01-01 00:00:00"
BINARY_ZEROS = "gives bytes without the zeros at the end"
LATIN1 = "Python's cp1252 has no character for 81, 8D, 8F, 90 and 9D"
UCS2 = "gives its bytes"
UTF16 = "reads utf16 with its bytes swapped"
UTF32 = "raises on utf32"
JSON_TIME = "loses the sign"
VECTOR = "raises on VECTOR"
GEOMETRY = "gives the SRID and the shape together"
FIXED_BYTES = "knows neither UUID nor INET: it gives bytes"
OLD_TIME = "reads it without its sign"


@dataclass(frozen=True)
class Case:
    """literal: as SQL writes it. wire: the value in a row image, length prefix included. value: canonical.

    third: why mysql-replication is left out. only: "mysql9" or "mariadb"; "old" for temporal types in the format of
    before 5.6, which MariaDB writes with mysql56_temporal_format=OFF.
    """

    type: str
    literal: str
    wire: bytes
    value: Any
    charset: str = ""
    third: str = ""
    only: str = ""

    @property
    def wire_type(self) -> WireType:
        return wire_type(self.type, self.charset, old=self.only == "old")

    @property
    def name(self) -> str:
        return f"{self.type[:30]} {self.charset} {self.literal[:40]}"


def wide_lists() -> list[Case]:
    """Two bytes for an ENUM, all eight for a SET."""
    enum = "enum(" + ",".join(f"'e{i}'" for i in range(256)) + ")"
    whole = ",".join(f"m{i}" for i in range(64))
    wide = "set(" + ",".join(f"'{member}'" for member in whole.split(",")) + ")"
    return [
        Case(enum, "'e255'", X("0001"), "e255", charset="utf8mb4"),
        Case(enum, "'e254'", X("ff00"), "e254", charset="utf8mb4"),
        Case(wide, f"'{whole}'", X("ff" * 8), whole, charset="utf8mb4"),
        Case(wide, "'m63'", X("0000000000000080"), "m63", charset="utf8mb4"),
    ]


CASES = [
    # --- integers
    Case("tinyint", "-128", X("80"), -128),
    Case("tinyint", "127", X("7f"), 127),
    Case("tinyint", "-1", X("ff"), -1),
    Case("tinyint unsigned", "0", X("00"), 0),
    Case("tinyint unsigned", "255", X("ff"), 255),
    Case("tinyint unsigned", "128", X("80"), 128),
    Case("smallint", "-32768", X("0080"), -32768),
    Case("smallint", "32767", X("ff7f"), 32767),
    Case("smallint", "-1", X("ffff"), -1),
    Case("smallint unsigned", "0", X("0000"), 0),
    Case("smallint unsigned", "65535", X("ffff"), 65535),
    Case("smallint unsigned", "32768", X("0080"), 32768),
    Case("mediumint", "-8388608", X("000080"), -8388608),
    Case("mediumint", "8388607", X("ffff7f"), 8388607),
    Case("mediumint", "-1", X("ffffff"), -1),
    Case("mediumint unsigned", "0", X("000000"), 0),
    Case("mediumint unsigned", "16777215", X("ffffff"), 16777215),
    Case("mediumint unsigned", "8388608", X("000080"), 8388608),
    Case("int", "-2147483648", X("00000080"), -2147483648),
    Case("int", "2147483647", X("ffffff7f"), 2147483647),
    Case("int", "-1", X("ffffffff"), -1),
    Case("int unsigned", "0", X("00000000"), 0),
    Case("int unsigned", "4294967295", X("ffffffff"), 4294967295),
    Case("int unsigned", "2147483648", X("00000080"), 2147483648),
    Case("bigint", "-9223372036854775808", X("0000000000000080"), -9223372036854775808),
    Case("bigint", "9223372036854775807", X("ffffffffffffff7f"), 9223372036854775807),
    Case("bigint", "-1", X("ffffffffffffffff"), -1),
    Case("bigint unsigned", "0", X("0000000000000000"), D(0)),
    Case("bigint unsigned", "18446744073709551615", X("ffffffffffffffff"), D(18446744073709551615)),
    Case("bigint unsigned", "9223372036854775808", X("0000000000000080"), D(9223372036854775808)),
    # --- decimals
    Case("decimal(1,0)", "-9", X("76"), D(-9)),
    Case("decimal(1,1)", "0.9", X("89"), D("0.9")),
    Case("decimal(5,2)", "-999.99", X("7c189c"), D("-999.99")),
    Case("decimal(5,2)", "0.05", X("800005"), D("0.05")),
    Case("decimal(9,9)", "-0.000000001", X("7ffffffe"), D("-1E-9")),
    Case("decimal(10,0)", "1000000000", X("8100000000"), D(1000000000)),
    Case("decimal(18,4)", "-12345678901234.5678", X("7fcfc6d788ca0de9d1"), D("-12345678901234.5678")),
    Case("decimal(18,18)", "0.999999999999999999", X("bb9ac9ff3b9ac9ff"), D("0.999999999999999999")),
    Case("decimal(19,0)", "-9999999999999999999", X("76c4653600c4653600"), D(-9999999999999999999)),
    Case("decimal(20,10)", "1234567890.0123456789", X("810dfb38d200bc614e09"), D("1234567890.0123456789")),
    Case(
        "decimal(38,30)",
        "-12345678.123456789012345678901234567890",
        X("7f439eb1f8a432eaff439eb1ca484078fc85"),
        D("-12345678.123456789012345678901234567890"),
    ),
    Case(
        "decimal(38,0)",
        "99999999999999999999999999999999999999",
        X("e33b9ac9ff3b9ac9ff3b9ac9ff3b9ac9ff"),
        D(99999999999999999999999999999999999999),
    ),
    Case(
        "decimal(39,0)",
        "-999999999999999999999999999999999999999",
        X("7c18c4653600c4653600c4653600c4653600"),
        "-999999999999999999999999999999999999999",
    ),
    Case(
        "decimal(65,30)",
        "-12345678901234567890123456789012345.123456789012345678901234567890",
        X("7f439eb1ca484078caf1cb3fd0f8a086f8a432eaff439eb1ca484078fc85"),
        "-12345678901234567890123456789012345.123456789012345678901234567890",
    ),
    Case(
        "decimal(65,30)",
        "0.000000000000000000000000000000",
        X("800000000000000000000000000000000000000000000000000000000000"),
        "0.000000000000000000000000000000",
    ),
    Case(
        "decimal(65,0)",
        "10000000000000000000000000000000000000000000000000000000000000000",
        X("8a00000000000000000000000000000000000000000000000000000000"),
        "10000000000000000000000000000000000000000000000000000000000000000",
    ),
    # --- floating point, bits
    Case("float", "0", X("00000000"), 0.0),
    Case("float", "-1.5", X("0000c0bf"), -1.5),
    Case("float", "3.25e9", X("10b7414f"), 3249999872.0),
    Case("double", "-0.1", X("9a9999999999b9bf"), -0.1),
    Case("double", "1.7e308", X("763b7730d142ee7f"), 1.7e308),
    Case("double", "5e-324", X("0100000000000000"), 5e-324),
    Case("double", "0.1", X("9a9999999999b93f"), 0.1),
    Case("bit(1)", "b'1'", X("01"), True),
    Case("bit(1)", "b'0'", X("00"), False),
    Case("bit(9)", "b'100000001'", X("0101"), X("0101")),
    Case("bit(64)", "18446744073709551615", X("ffffffffffffffff"), X("ffffffffffffffff")),
    Case("bit(33)", "1", X("0000000001"), X("0000000001")),
    # --- dates and times
    Case("year", "1901", X("01"), 1901),
    Case("year", "2155", X("ff"), 2155),
    Case("year", "0", X("00"), 0, third=YEAR_0),
    Case("date", "'0001-01-01'", X("210200"), day(1, 1, 1)),
    Case("date", "'9999-12-31'", X("9f1f4e"), day(9999, 12, 31)),
    Case("date", "'2024-02-29'", X("5dd00f"), day(2024, 2, 29)),
    Case("date", "'0000-00-00'", X("000000"), None),
    Case("date", "'2024-00-10'", X("0ad00f"), None),
    Case("date", "'2024-10-00'", X("40d10f"), None),
    Case("date", "'0000-01-01'", X("210000"), None),
    Case("datetime", "'0001-01-01 00:00:00'", X("8003820000"), at(1, 1, 1, 0, 0)),
    Case("datetime(6)", "'9999-12-31 23:59:59.999999'", X("fef3ff7efb0f423f"), at(9999, 12, 31, 23, 59, 59, 999999)),
    Case("datetime", "'2024-02-29 12:34:56'", X("99b2bac8b8"), at(2024, 2, 29, 12, 34, 56)),
    Case("timestamp", "'2024-02-29 12:34:56'", X("65e079f0"), at(2024, 2, 29, 12, 34, 56, tzinfo=UTC)),
    Case("time", "'12:34:56'", X("80c8b8"), "12:34:56"),
    Case("time", "'-01:02:03'", X("7fef7d"), "-01:02:03"),
    Case("datetime(1)", "'2024-02-29 12:34:56.4'", X("99b2bac8b828"), at(2024, 2, 29, 12, 34, 56, 400000)),
    Case("timestamp(1)", "'2024-02-29 12:34:56.4'", X("65e079f028"), at(2024, 2, 29, 12, 34, 56, 400000, tzinfo=UTC)),
    Case("time(1)", "'12:34:56.4'", X("80c8b828"), "12:34:56.4"),
    Case("time(1)", "'-01:02:03.4'", X("7fef7cd8"), "-01:02:03.4", third=NEGATIVE_TIME),
    Case("datetime(2)", "'2024-02-29 12:34:56.04'", X("99b2bac8b804"), at(2024, 2, 29, 12, 34, 56, 40000)),
    Case("timestamp(2)", "'2024-02-29 12:34:56.04'", X("65e079f004"), at(2024, 2, 29, 12, 34, 56, 40000, tzinfo=UTC)),
    Case("time(2)", "'12:34:56.04'", X("80c8b804"), "12:34:56.04"),
    Case("time(2)", "'-01:02:03.04'", X("7fef7cfc"), "-01:02:03.04", third=NEGATIVE_TIME),
    Case("datetime(3)", "'2024-02-29 12:34:56.004'", X("99b2bac8b80028"), at(2024, 2, 29, 12, 34, 56, 4000)),
    Case("timestamp(3)", "'2024-02-29 12:34:56.004'", X("65e079f00028"), at(2024, 2, 29, 12, 34, 56, 4000, tzinfo=UTC)),
    Case("time(3)", "'12:34:56.004'", X("80c8b80028"), "12:34:56.004"),
    Case("time(3)", "'-01:02:03.004'", X("7fef7cffd8"), "-01:02:03.004", third=NEGATIVE_TIME),
    Case("datetime(4)", "'2024-02-29 12:34:56.0004'", X("99b2bac8b80004"), at(2024, 2, 29, 12, 34, 56, 400)),
    Case("timestamp(4)", "'2024-02-29 12:34:56.0004'", X("65e079f00004"), at(2024, 2, 29, 12, 34, 56, 400, tzinfo=UTC)),
    Case("time(4)", "'12:34:56.0004'", X("80c8b80004"), "12:34:56.0004"),
    Case("time(4)", "'-01:02:03.0004'", X("7fef7cfffc"), "-01:02:03.0004", third=NEGATIVE_TIME),
    Case("datetime(5)", "'2024-02-29 12:34:56.00004'", X("99b2bac8b8000028"), at(2024, 2, 29, 12, 34, 56, 40)),
    Case(
        "timestamp(5)", "'2024-02-29 12:34:56.00004'", X("65e079f0000028"), at(2024, 2, 29, 12, 34, 56, 40, tzinfo=UTC)
    ),
    Case("time(5)", "'12:34:56.00004'", X("80c8b8000028"), "12:34:56.00004"),
    Case("time(5)", "'-01:02:03.00004'", X("7fef7cffffd8"), "-01:02:03.00004", third=NEGATIVE_TIME),
    Case("datetime(6)", "'2024-02-29 12:34:56.000004'", X("99b2bac8b8000004"), at(2024, 2, 29, 12, 34, 56, 4)),
    Case(
        "timestamp(6)", "'2024-02-29 12:34:56.000004'", X("65e079f0000004"), at(2024, 2, 29, 12, 34, 56, 4, tzinfo=UTC)
    ),
    Case("time(6)", "'12:34:56.000004'", X("80c8b8000004"), "12:34:56.000004"),
    Case("time(6)", "'-01:02:03.000004'", X("7fef7cfffffc"), "-01:02:03.000004", third=NEGATIVE_TIME),
    Case("datetime(3)", "'0000-00-00 00:00:00'", X("80000000000000"), None),
    Case("datetime", "'2024-00-10 12:34:56'", X("99b214c8b8"), None),
    Case("timestamp", "'1970-01-01 00:00:01'", X("00000001"), at(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
    Case(
        "timestamp(6)",
        "'2038-01-19 03:14:07.999999'",
        X("7fffffff0f423f"),
        at(2038, 1, 19, 3, 14, 7, 999999, tzinfo=UTC),
    ),
    Case("timestamp", "'0000-00-00 00:00:00'", X("00000000"), None, third=ZERO_TIMESTAMP),
    Case("time", "'-838:59:59'", X("4b9105"), "-838:59:59"),
    Case("time", "'838:59:59'", X("b46efb"), "838:59:59"),
    Case("time(6)", "'-00:00:00.000001'", X("7fffffffffff"), "-00:00:00.000001", third=NEGATIVE_TIME),
    Case("time", "'00:00:00'", X("800000"), "00:00:00"),
    # --- text
    Case("char(10)", "'aé中𝄞'", X("0a61c3a9e4b8adf09d849e"), "aé中𝄞", charset="utf8mb4"),
    Case("char(10)", "''", X("00"), "", charset="utf8mb4"),
    Case("varchar(20)", "'a''\\\\\"\\0 '", X("0661275c220020"), "a'\\\"\u0000 ", charset="utf8mb4"),
    Case("varchar(300)", "'é'", X("0200c3a9"), "é", charset="utf8mb4"),
    Case("varchar(5)", "'é€\x81'", X("03e98081"), "é€\x81", charset="latin1", third=LATIN1),
    Case("varchar(5)", "'éÿ'", X("02e9ff"), "éÿ", charset="latin1"),
    Case("varchar(5)", "'中文'", X("04d6d0cec4"), "中文", charset="gbk"),
    Case("varchar(5)", "'表ｱ'", X("03955cb1"), "表ｱ", charset="sjis"),
    Case("varchar(5)", "'aЯ'", X("0261f1"), "aЯ", charset="koi8r"),
    Case("varchar(5)", "'a中'", X("0400614e2d"), "a中", charset="ucs2", third=UCS2),
    Case("varchar(5)", "'a𝄞'", X("060061d834dd1e"), "a𝄞", charset="utf16", third=UTF16),
    Case("varchar(5)", "'a𝄞'", X("08000000610001d11e"), "a𝄞", charset="utf32", third=UTF32),
    Case("char(5)", "'a中'", X("0461e4b8ad"), "a中", charset="utf8mb3"),
    Case("char(5)", "'az'", X("02617a"), "az", charset="ascii"),
    Case("tinytext", "'é'", X("02c3a9"), "é", charset="utf8mb4"),
    Case("text", "'é'", X("0200c3a9"), "é", charset="utf8mb4"),
    Case("mediumtext", "'é'", X("020000c3a9"), "é", charset="utf8mb4"),
    Case("longtext", "'é'", X("02000000c3a9"), "é", charset="utf8mb4"),
    # --- bytes
    Case("binary(4)", "x'0102'", X("020102"), X("01020000"), third=BINARY_ZEROS),
    Case("binary(4)", "x'01020304'", X("0401020304"), X("01020304")),
    Case("varbinary(4)", "x'ff00'", X("02ff00"), X("ff00")),
    Case("varbinary(300)", "x'00'", X("010000"), X("00")),
    Case("tinyblob", "x'00ff'", X("0200ff"), X("00ff")),
    Case("blob", "x'00ff'", X("020000ff"), X("00ff")),
    Case("mediumblob", "x'00ff'", X("02000000ff"), X("00ff")),
    Case("longblob", "x'00ff'", X("0200000000ff"), X("00ff")),
    # --- enum and set
    Case("enum('a','b','c''d','é')", "'é'", X("04"), "é", charset="utf8mb4"),
    Case("enum('a','b','c''d','é')", "'c''d'", X("03"), "c'd", charset="utf8mb4"),
    Case("enum('a')", "'x'", X("00"), "", charset="utf8mb4"),
    *wide_lists(),
    Case("set('x','y','z')", "'z,x'", X("05"), "x,z", charset="utf8mb4"),
    Case("set('x','y','z')", "''", X("00"), "", charset="utf8mb4"),
    # --- MySQL's own
    Case("json", "'null'", X("020000000400"), "null", only="mysql9"),
    Case("json", "'true'", X("020000000401"), "true", only="mysql9"),
    Case("json", "'-1'", X("0300000005ffff"), "-1", only="mysql9"),
    Case("json", "'2147483648'", X("09000000090000008000000000"), "2147483648", only="mysql9"),
    Case("json", "'\"é\"'", X("040000000c02c3a9"), '"é"', only="mysql9"),
    Case("json", "'[]'", X("050000000200000400"), "[]", only="mysql9"),
    Case(
        "json",
        '\'{"b": 1, "a": [1.5, "x"]}\'',
        X("29000000000200280012000100130001000214000501006162020014000b0a000c1200000000000000f83f0178"),
        '{"a": [1.5, "x"], "b": 1}',
        only="mysql9",
    ),
    Case(
        "json", "CAST(CAST('-1.50' AS DECIMAL(5,2)) AS JSON)", X("0a0000000ff6070b027ffffffecd"), "-1.50", only="mysql9"
    ),
    Case(
        "json",
        "CAST(CAST('-12:34:56.5' AS TIME(1)) AS JSON)",
        X("0b0000000f0b08e05ef84737ffffff"),
        '"-12:34:56.500000"',
        only="mysql9",
        third=JSON_TIME,
    ),
    Case("vector(2)", "TO_VECTOR('[1.5,-2]')", X("080000000000c03f000000c0"), [1.5, -2.0], only="mysql9", third=VECTOR),
    Case(
        "point",
        "ST_GeomFromText('POINT(1.5 -2.25)')",
        X("19000000000000000101000000000000000000f83f00000000000002c0"),
        X("0101000000000000000000f83f00000000000002c0"),
        third=GEOMETRY,
    ),
    Case(
        "point",
        "ST_GeomFromText('POINT(1.5 -2.25)', 4326)",
        X("19000000e61000000101000000000000000000f83f00000000000002c0"),
        X("0101000020e6100000000000000000f83f00000000000002c0"),
        only="mariadb",
        third=GEOMETRY,
    ),
    # --- MariaDB's own
    Case(
        "uuid",
        "'e1c5f0aa-8771-11ee-b9d1-0242ac120002'",
        X("10e1c5f0aa877111eeb9d10242ac120002"),
        "e1c5f0aa-8771-11ee-b9d1-0242ac120002",
        only="mariadb",
        third=FIXED_BYTES,
    ),
    Case(
        "inet6",
        "'2001:db8::ff00:42:8329'",
        X("1020010db8000000000000ff0000428329"),
        "2001:db8::ff00:42:8329",
        only="mariadb",
        third=FIXED_BYTES,
    ),
    Case("inet6", "'::'", X("00"), "::", only="mariadb", third=FIXED_BYTES),
    Case(
        "inet6",
        "'::ffff:1.2.3.4'",
        X("1000000000000000000000ffff01020304"),
        "::ffff:1.2.3.4",
        only="mariadb",
        third=FIXED_BYTES,
    ),
    Case(
        "inet6",
        "'1:0:3:4:5:6:7:8'",
        X("1000010000000300040005000600070008"),
        "1::3:4:5:6:7:8",
        only="mariadb",
        third=FIXED_BYTES,
    ),
    Case(
        "inet6",
        "'0:2:0:0:5:0:0:8'",
        X("1000000002000000000005000000000008"),
        "0:2::5:0:0:8",
        only="mariadb",
        third=FIXED_BYTES,
    ),
    Case(
        "inet6", "'::1.2.3.4'", X("1000000000000000000000000001020304"), "::1.2.3.4", only="mariadb", third=FIXED_BYTES
    ),
    Case("inet4", "'10.0.0.255'", X("040a0000ff"), "10.0.0.255", only="mariadb", third=FIXED_BYTES),
    Case("inet4", "'10.0.0.0'", X("010a"), "10.0.0.0", only="mariadb", third=FIXED_BYTES),
    # --- temporal types in the format of before 5.6: MariaDB writes them with mysql56_temporal_format=OFF
    Case("datetime", "'2024-02-29 12:34:56'", X("80c5aa8b68120000"), at(2024, 2, 29, 12, 34, 56), only="old"),
    Case("datetime", "'0000-00-00 00:00:00'", X("0000000000000000"), None, only="old"),
    Case("timestamp", "'2024-02-29 12:34:56'", X("f079e065"), at(2024, 2, 29, 12, 34, 56, tzinfo=UTC), only="old"),
    Case("time", "'-01:02:03'", X("25d8ff"), "-01:02:03", only="old", third=OLD_TIME),
    Case("time", "'838:59:59'", X("a7f57f"), "838:59:59", only="old"),
]
