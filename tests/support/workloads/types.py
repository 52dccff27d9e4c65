"""Columns of random workloads: their types, defaults, values, and what each type may become.

In:  a seeded random.Random.
Out: ColumnType by name. Values are such that every change of `becomes` leaves no doubt, so silver must follow it.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

Draw = Callable[[random.Random], object]


@dataclass(frozen=True)
class ColumnType:
    """sql: its text. default: a literal for DEFAULT; "" when it takes none. becomes: types that all its values fit."""

    sql: str
    draw: Draw
    default: str = ""
    becomes: tuple[str, ...] = ()


def _integer(bits: int, *, unsigned: bool = False) -> Draw:
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return lambda rng: rng.choice((low, high, rng.randint(0, 9), rng.randint(low, high)))


def _decimal(digits: int, scale: int) -> Draw:
    def draw(rng: random.Random) -> str:
        number = rng.choice((rng.randint(-(10**digits) + 1, 10**digits - 1), rng.randint(-9, 9)))
        text = f"{abs(number):0{scale + 1}}"
        return f"{'-' * (number < 0)}{text[: len(text) - scale]}.{text[len(text) - scale :]}"

    return draw


def _text(letters: str, most: int) -> Draw:
    return lambda rng: "".join(rng.choices(letters, k=rng.randint(0, most)))


def _bytes(most: int) -> Draw:
    return lambda rng: rng.randbytes(rng.randint(0, most))


def _moment(digits: int) -> Draw:
    def draw(rng: random.Random) -> str:
        day = f"{rng.choice((1971, 2024, 2037))}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
        text = f"{day} {rng.randint(3, 23):02}:{rng.randrange(60):02}:{rng.randrange(60):02}"
        return text + (f".{rng.randrange(10**digits):0{digits}}" if digits else "")

    return draw


def _day(rng: random.Random) -> str:
    return f"{rng.choice((1000, 1582, 1969, 2024, 9999)):04}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


def _time(digits: int) -> Draw:
    def draw(rng: random.Random) -> str:
        text = f"{rng.choice(('', '-'))}{rng.choice((0, 1, 838)):02}:{rng.randrange(59):02}:{rng.randrange(59):02}"
        return text + (f".{rng.randrange(10**digits):0{digits}}" if digits else "")

    return draw


def _point(rng: random.Random) -> bytes:
    return bytes(4) + struct.pack("<BIdd", 1, 1, rng.randint(-9, 9) / 4, rng.randint(-9, 9))


_WORDS: Final = "aAé漢x '\\"
_LATIN: Final = "aAéß Z"
_DOCUMENTS: Final = (
    '{"a": 1, "b": [1, 2.5, null]}', "[]", "null", '"é漢"', "1e30", '{"é": {"k": true}}', "-9007199254740993",
)  # fmt: skip


def _document(rng: random.Random) -> str:
    return rng.choice(_DOCUMENTS)


def _choice(*members: str) -> Draw:
    return lambda rng: rng.choice(members)


_BOTH: Final = {
    "tinyint": ColumnType("TINYINT", _integer(8), "-3", ("int", "decimal", "varchar")),
    "bool": ColumnType("BOOL", _integer(1, unsigned=True), "TRUE", ("tinyint",)),
    "usmallint": ColumnType("SMALLINT UNSIGNED", _integer(16, unsigned=True), "65535", ("int", "ubigint", "varchar")),
    "mediumint": ColumnType("MEDIUMINT", _integer(24), "-8388608", ("int", "bigint")),
    "int": ColumnType("INT", _integer(32), "7", ("bigint", "wide", "varchar")),
    "uint": ColumnType("INT UNSIGNED", _integer(32, unsigned=True), "4294967295", ("bigint", "ubigint")),
    "bigint": ColumnType("BIGINT", _integer(64), "-9", ("varchar",)),
    "ubigint": ColumnType("BIGINT UNSIGNED", _integer(64, unsigned=True), "18446744073709551615", ("varchar",)),
    "float": ColumnType("FLOAT", lambda rng: rng.randint(-999, 999) / 8, "0.1", ("double",)),
    "double": ColumnType("DOUBLE", lambda rng: rng.choice((0.1, -1e300, 5e-324, rng.random())), "1e-7"),
    "decimal": ColumnType("DECIMAL(12,3)", _decimal(9, 3), "1.5", ("wide", "varchar")),
    "wide": ColumnType("DECIMAL(20,3)", _decimal(17, 3), "-0.25", ("varchar",)),
    "long": ColumnType("DECIMAL(50,5)", _decimal(50, 5), "12"),
    "bit": ColumnType("BIT", _integer(1, unsigned=True), "b'1'"),
    "bits": ColumnType("BIT(12)", _integer(12, unsigned=True), "b'101'"),
    "date": ColumnType("DATE", _day, "'2020-02-29'", ("datetime",)),
    "datetime": ColumnType("DATETIME(3)", _moment(3), "'2020-01-02 03:04:05.006'", ("micros",)),
    "micros": ColumnType("DATETIME(6)", _moment(6), "'1000-01-02 03:04:05'"),
    "timestamp": ColumnType("TIMESTAMP(2) NULL", _moment(2), "CURRENT_TIMESTAMP(2)"),
    "time": ColumnType("TIME(3)", _time(3), "'-12:00:01'"),
    "hours": ColumnType("TIME", _time(0), "'100:00:01'"),
    "year": ColumnType("YEAR", lambda rng: rng.choice((0, 1901, 2024, 2155)), "1999"),
    "varchar": ColumnType("VARCHAR(70)", _text(_WORDS, 5), "'it''s é'", ("short", "text", "char")),
    "short": ColumnType("VARCHAR(25)", _text(_WORDS, 5), "''", ("varchar", "bin")),
    "bin": ColumnType("VARCHAR(70) COLLATE utf8mb4_bin", _text(_WORDS, 5), "'x '"),
    "char": ColumnType("CHAR(70)", _text(_WORDS, 5), "'none'", ("varchar",)),
    "text": ColumnType("TEXT", _text(_WORDS, 30), "", ("medium",)),
    "medium": ColumnType("MEDIUMTEXT", _text(_WORDS, 30)),
    "latin": ColumnType("VARCHAR(20) CHARACTER SET latin1", _text(_LATIN, 9), "'ß'", ("varchar",)),
    "enum": ColumnType("ENUM('a','é','b''c')", _choice("a", "é", "b'c"), "'é'", ("more", "varchar")),
    "more": ColumnType("ENUM('new','a','é','b''c')", _choice("a", "é", "b'c", "new"), "'new'", ("varchar",)),
    "set": ColumnType("SET('x','y','z')", _choice("", "x", "x,z", "x,y,z"), "'z,x'", ("varchar",)),
    "varbinary": ColumnType("VARBINARY(8)", _bytes(8), "X'00FF'", ("blob",)),
    "binary": ColumnType("BINARY(4)", _bytes(4), "'a'"),
    "blob": ColumnType("BLOB", _bytes(20)),
    "json": ColumnType("JSON", _document),
}  # fmt: skip
MARIADB: Final = _BOTH | {
    "uuid": ColumnType("UUID", lambda rng: f"{rng.getrandbits(128):032x}"),
    "inet": ColumnType("INET6", _choice("::1", "fe80::1:2", "::ffff:1.2.3.4")),
    "packed": ColumnType("VARCHAR(90) COMPRESSED", _text(_WORDS, 80)),
}
# MariaDB 11.4 crashes when a row with a POINT moves to another partition.
MYSQL: Final = _BOTH | {
    "point": ColumnType("POINT", _point),
    "vector": ColumnType("VECTOR(3)", lambda rng: struct.pack("<3f", *(rng.random(), 0.5, -1.0))),
}
