"""Types of columns, and values for them as SQL writes them: of all kinds that the servers have.

In:  a seeded random.Random; what information_schema says of a column.
Out: a type for a new column; a literal that a server mostly takes, in whichever mode it is.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tests.support.random_ddl import TYPES
from tests.support.random_definitions import MARIADB_TYPES

# Those that hold rows which differ, so that a key of them takes more than a few.
KEY_TYPES: Final = (
    *("INT", "BIGINT UNSIGNED", "SMALLINT", "DECIMAL(8,2)", "VARCHAR(20)", "VARCHAR(9) COLLATE utf8mb4_bin"),
    *("CHAR(7)", "VARBINARY(9)", "BINARY(4)", "DATE", "DATETIME(6)", "DATETIME(3)", "TIMESTAMP(2) NULL", "TIME(3)"),
    *("VARCHAR(30) CHARACTER SET latin1", "DOUBLE", "FLOAT", "ENUM('a','b','c','d','é')", "BIT(9)", "YEAR"),
)
_GENERATED: Final = re.compile(r"\b(VIRTUAL|STORED|PERSISTENT)\b|ROW (START|END)", re.IGNORECASE)
_TEXTS: Final = (
    *("", "a", "A", "b", "á", "ß", "ss", "x ", " x", "it''s", "ä€", "😀", "Ж", "%_", "0", "1", "-7", "1.5", "2020-1-2"),
    *("NULL", "a,b", "x,y", "{}", "\ttab", "end\\\\", "long " * 12, "A" * 30, "é", "'' OR 1"),
)
_MOMENTS: Final = (
    *("2020-02-29", "1999-12-31", "9999-12-31", "1000-01-01", "0000-00-00", "2024-02-31", "2020-00-10", "1969-12-31"),
    *("2021-03-28", "2021-10-31", "2038-01-19", "1971-01-01"),
)
_CLOCKS: Final = (
    "00:00:00",
    "23:59:59.999999",
    "02:30:00",
    "03:14:08",
    "12:34:56.5",
    "23:59:59.9999995",
    "01:00:00.01",
)
_POINTS: Final = ("POINT(1 -2)", "POINT(0 0)", "LINESTRING(0 0,1 1)", "POLYGON((0 0,1 0,1 1,0 0))")
_JSONS: Final = (
    *('{"b": 1, "a": [1.0, "x"]}', "[]", '"text"', "1", "1.0", "null", '{"a": {"b": "ä€"}}', "[1, 2, 3, [4]]", "true"),
    *('{"a": 18446744073709551615, "b": 1e300}', '{"k": "' + "v" * 200 + '"}'),
)


@dataclass(frozen=True, slots=True)
class Column:
    """kind: the plain type's word; whole: with its length and members."""

    name: str
    kind: str
    whole: str
    nullable: bool
    extra: str
    key: str

    @property
    def generated(self) -> bool:
        return bool(_GENERATED.search(self.extra))

    @property
    def quoted(self) -> str:
        return "`" + self.name.replace("`", "``") + "`"


def random_type(rng: random.Random, *, mariadb: bool) -> str:
    """Any type that the server knows."""
    return rng.choice([*TYPES, *(MARIADB_TYPES if mariadb else ["VECTOR(3)"])])


def literal(rng: random.Random, column: Column) -> str:
    """A value of this column, now and then one that doesn't fit or is of another type."""
    if column.nullable and rng.random() < 0.1:
        return "NULL"
    if rng.random() < 0.04:
        return rng.choice(["DEFAULT", "'x'", "1", "''", "-1", "1e9"])
    return _MAKERS.get(column.kind, _text)(rng, column)


def _pick(values: Sequence[str]) -> Callable[[random.Random, Column], str]:
    return lambda rng, _: rng.choice(values)


def _whole_number(rng: random.Random, column: Column) -> str:
    bits = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}[column.kind]
    low, high = (0, 2**bits - 1) if "unsigned" in column.whole else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return str(rng.choice([low, high, 0, 1, rng.randint(0, 100), rng.randint(0, 100), rng.randint(low, high)]))


def _decimal(rng: random.Random, column: Column) -> str:
    digits = [int(word) for word in re.findall(r"\d+", column.whole)] or [10, 0]
    precision, scale = (*digits, 0)[:2]
    whole = rng.randrange(10 ** rng.randint(0, max(precision - scale, 0))) if precision > scale else 0
    sign = rng.choice(["", "-"]) if "unsigned" not in column.whole else ""
    return f"{sign}{whole}.{rng.randrange(10 ** min(scale + 1, 12))}"


def _real(rng: random.Random, _: Column) -> str:
    return rng.choice(["0", "-0e0", "1.5", "0.1", "-3.25e10", "1e-30", "123456.789", f"{rng.uniform(-100, 100):.6f}"])


def _bit(rng: random.Random, column: Column) -> str:
    width = int((re.findall(r"\d+", column.whole) or ["1"])[0])
    return f"b'{rng.randrange(2**width):b}'"


def _date(rng: random.Random, column: Column) -> str:
    """Mostly one that a calendar has, in a key: a table waits for a person as soon as there is another."""
    return (
        f"'{rng.choice(_MOMENTS)}'"
        if rng.random() < (0.02 if column.key else 0.4)
        else f"'20{rng.randint(0, 37):02}-{rng.randint(1, 12)}-7'"
    )


def _moment(rng: random.Random, column: Column) -> str:
    if rng.random() < 0.1 and not column.key:
        return rng.choice(["NOW(6)", "CURRENT_TIMESTAMP", "'0000-00-00 00:00:00'", "'9999-12-31 23:59:59.999999'"])
    return f"{_date(rng, column)[:-1]} {rng.choice(_CLOCKS)}'"


def _time(rng: random.Random, _: Column) -> str:
    return f"'{rng.choice(['', '-', '', '8', '-8'])}{rng.choice(_CLOCKS)}'"


def _year(rng: random.Random, _: Column) -> str:
    return str(rng.choice([0, 1901, 2155, rng.randint(1990, 2030)]))


def _text(rng: random.Random, column: Column) -> str:
    if rng.random() < 0.15:
        return f"CONCAT('{rng.choice(_TEXTS)}', {rng.randrange(50)})"
    if rng.random() < 0.05 and column.kind in ("text", "mediumtext", "longtext"):
        return f"REPEAT('{rng.choice(['ä', 'x', 'Ж'])}', {rng.choice([300, 5000, 70000])})"
    return f"'{rng.choice(_TEXTS)}'"


def _bytes(rng: random.Random, _: Column) -> str:
    return rng.choice(["''", "x'00'", "x'00ff80'", "'a'", "x'e282ac'", f"x'{rng.randrange(256):02x}'", "'plain text'"])


def _member(rng: random.Random, column: Column) -> str:
    members = re.findall(r"'((?:[^']|'')*)'", column.whole)
    if not members:
        return "''"
    if column.kind == "set" and rng.random() < 0.3:
        return f"'{','.join(rng.sample(members, rng.randint(0, len(members))))}'"
    return f"'{rng.choice(members)}'" if rng.random() < 0.8 else str(rng.randint(1, len(members)))


def _uuid(rng: random.Random, _: Column) -> str:
    return f"'{rng.getrandbits(32):08x}-e89b-12d3-a456-{rng.getrandbits(48):012x}'"


def _vector(rng: random.Random, column: Column) -> str:
    width = int((re.findall(r"\d+", column.whole) or ["3"])[0])
    return f"STRING_TO_VECTOR('[{','.join(f'{rng.uniform(-1, 1):.3f}' for _ in range(width))}]')"


_SHAPES: Final = (
    *("geometry", "point", "linestring", "polygon", "geomcollection", "geometrycollection"),
    *("multipoint", "multilinestring", "multipolygon"),
)
_MAKERS: Final[dict[str, Callable[[random.Random, Column], str]]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), _whole_number),
    **dict.fromkeys(("float", "double"), _real),
    **dict.fromkeys(("binary", "varbinary", "blob", "tinyblob", "mediumblob", "longblob"), _bytes),
    **dict.fromkeys(("datetime", "timestamp"), _moment),
    **dict.fromkeys(("enum", "set"), _member),
    **dict.fromkeys(_SHAPES, _pick([f"ST_GeomFromText('{text}')" for text in _POINTS])),
    "decimal": _decimal,
    "bit": _bit,
    "date": _date,
    "time": _time,
    "year": _year,
    "json": _pick([f"'{text}'" for text in _JSONS]),
    "uuid": _uuid,
    "inet4": _pick(["'1.2.3.4'", "'255.255.255.255'", "'0.0.0.0'"]),
    "inet6": _pick(["'::1'", "'::ffff:1.2.3.4'", "'2001:db8::ff00:42:8329'"]),
    "vector": _vector,
}
