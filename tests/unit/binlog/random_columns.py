"""Random column types of a real server, random values of them as SQL, and what SELECT must show of them.

In:  a seeded random.Random, the server's flavour.
Out: RandomColumns. Truth comes from the server's SELECT alone: a column says in which words to ask for its value, and
     how that answer is the canonical value; the decoder's code is not used.
"""

from __future__ import annotations

import datetime as dt
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

Random = random.Random
Value = Callable[[Random], str]


@dataclass(frozen=True)
class RandomColumn:
    """type: SQL. value: draws a literal. ask: SQL of what SELECT shows, with {} for the column. read: its answer as
    the canonical value. keyable: whether a primary key may hold it (values differ, and none becomes NULL).
    """

    type: str
    value: Value
    ask: str = "{}"
    read: Callable[[Any], Any] = lambda answer: answer
    keyable: bool = False


def quoted(text: str) -> str:
    text = (
        text.replace("\\", "\\\\").replace("'", "''").replace("\0", "\\0").replace("\n", "\\n").replace("\x1a", "\\Z")
    )
    return f"'{text}'"


def hexed(data: bytes) -> str:
    return f"x'{data.hex()}'"


# --- numbers -----------------------------------------------------------------------------------------------------

_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}


def integer(r: Random, _flavour: str) -> RandomColumn:
    name, bits = r.choice(list(_BITS.items()))
    sign = r.choice(["", " unsigned", " unsigned zerofill"])
    low, high = (0, (1 << bits) - 1) if sign else (-(1 << bits - 1), (1 << bits - 1) - 1)
    read = Decimal if name == "bigint" and sign else int
    shown = r.choice(["", f"({r.randrange(1, 30)})"]) if name != "tinyint" else ""

    def value(r: Random) -> str:
        return str(r.choice([low, high, 0, low + 1, high // 2 + 1, r.randint(low, high), r.randint(low, high)]))

    return RandomColumn(f"{name}{shown}{sign}", value, read=read, keyable=bits >= 32)


def boolean(_r: Random, _flavour: str) -> RandomColumn:
    return RandomColumn("bool", lambda r: str(r.choice([0, 1, 1, -128])), read=int)


def decimal(r: Random, _flavour: str) -> RandomColumn:
    digits = r.choice([1, 2, 8, 9, 10, 17, 18, 19, 36, 37, 38, 39, 64, 65, r.randint(1, 65)])
    scale = r.randint(0, min(digits, 30 if r.random() < 0.8 else 9))
    unsigned = r.random() < 0.2

    def value(r: Random) -> str:
        number = r.choice([0, 1, 10**digits - 1, r.randrange(10**digits), r.randrange(10 ** r.randint(1, digits))])
        text = f"{number:0{scale + 1}d}"
        text = f"{text[:-scale]}.{text[-scale:]}" if scale else text
        return f"-{text}" if r.random() < 0.5 and not unsigned else text

    wide = digits > 38
    kind = f"decimal({digits},{scale})" + (" unsigned" if unsigned else "")
    ask = "CAST({} AS CHAR)" if wide else "{}"
    return RandomColumn(kind, value, ask, str if wide else Decimal, keyable=digits >= 18)


def floating(r: Random, _flavour: str) -> RandomColumn:
    if r.random() < 0.5:
        # a FLOAT is printed with 6 digits, which aren't all of its value
        kind = r.choice(["float", "float unsigned", "float(10)"])
        return RandomColumn(kind, lambda r: repr(r.choice([0.0, 0.1, 3.25e10, 1e-30, r.random()])), "{} + 0e0", float)
    values = [0.0, 0.1, 1.7e308, 5e-324, 1 / 3]
    return RandomColumn(
        r.choice(["double", "real", "float(40)"]),
        lambda r: repr(r.choice([*values, r.random(), r.uniform(-1e9, 1e9), -values[r.randrange(5)]])),
        read=float,
    )


def bits(r: Random, _flavour: str) -> RandomColumn:
    count = r.choice([1, 1, 7, 8, 9, 63, 64, r.randint(1, 64)])
    value: Value = lambda r: str(r.choice([0, (1 << count) - 1, r.randrange(1 << count)]))  # noqa: E731
    return RandomColumn(f"bit({count})", value, read=(lambda raw: raw == b"\1") if count == 1 else bytes)


# --- dates and times ---------------------------------------------------------------------------------------------


def _day(r: Random) -> str:
    """Mostly a day; sometimes what only a lax sql_mode lets in."""
    if r.random() < 0.15:
        month, day = r.choice([(0, 0), (0, 7), (7, 0), (2, 30), (2, 29), (4, 31)])
        return f"{r.choice([0, 1, 1900, 2023, 9999]):04d}-{month:02d}-{day:02d}"
    return str(dt.date(1, 1, 1) + dt.timedelta(r.choice([0, 3652058, 719162, r.randrange(3652059)])))


def _clock(r: Random, decimals: int) -> str:
    micros = f".{r.choice([0, 1, 10**decimals - 1, r.randrange(10**decimals)]):0{decimals}d}" if decimals else ""
    return f"{r.choice([0, 23, r.randrange(24)]):02d}:{r.randrange(60):02d}:{r.choice([0, 59]):02d}{micros}"


def _date_of(text: str) -> dt.date | None:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return None


def _datetime_of(text: str) -> dt.datetime | None:
    day = _date_of(text[:10])
    return (
        None
        if day is None
        else dt.datetime.combine(day, dt.time.fromisoformat(text[11:].ljust(15, "0") if "." in text else text[11:]))
    )


def date(_r: Random, _flavour: str) -> RandomColumn:
    return RandomColumn("date", lambda r: f"'{_day(r)}'", "CAST({} AS CHAR)", _date_of)


def date_time(r: Random, _flavour: str) -> RandomColumn:
    n = r.randrange(7)
    return RandomColumn(f"datetime({n})", lambda r: f"'{_day(r)} {_clock(r, n)}'", "CAST({} AS CHAR)", _datetime_of)


def timestamp(r: Random, _flavour: str) -> RandomColumn:
    n = r.randrange(7)

    def value(r: Random) -> str:
        if r.random() < 0.1:
            return "'0000-00-00 00:00:00'"
        moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=r.randrange(1, (1 << 31) - 1))
        fraction = f".{r.randrange(10**n):0{n}d}" if n else ""
        return f"'{moment:%Y-%m-%d %H:%M:%S}{fraction}'"

    def read(text: str) -> dt.datetime | None:
        found = _datetime_of(text)
        return None if found is None else found.replace(tzinfo=dt.UTC)

    return RandomColumn(f"timestamp({n})", value, "CAST({} AS CHAR)", read)


def time(r: Random, _flavour: str) -> RandomColumn:
    n = r.randrange(7)

    def value(r: Random) -> str:
        hours = r.choice([0, 1, 99, 100, 837, r.randrange(838)])
        fraction = f".{r.choice([0, 1, r.randrange(10**n)]):0{n}d}" if n else ""
        return (
            f"'{r.choice(['', '-'])}{hours:02d}:{r.randrange(60):02d}:{r.choice([0, r.randrange(60)]):02d}{fraction}'"
        )

    return RandomColumn(f"time({n})", value, "CAST({} AS CHAR)")


def year(_r: Random, _flavour: str) -> RandomColumn:
    return RandomColumn("year", lambda r: str(r.choice([0, 1901, 2155, r.randint(1901, 2155)])), read=int)


# --- text and bytes ------------------------------------------------------------------------------------------------

ALPHABETS = {
    "utf8mb4": "aZ'\"\\\n\t\0é€中𝄞 ", "utf8mb3": "aZ' é€中", "latin1": "aé€ßÿ \x81", "ascii": "aZ ~", "gbk": "a中文錒 ",
    "sjis": "aｱ表漢 ", "ucs2": "aé中 ", "utf16": "aé中𝄞 ", "utf16le": "a中𝄞", "utf32": "a中𝄞 ", "koi8r": "aЯж ",
    "cp1251": "aЯж ", "big5": "a中文", "ujis": "a漢ｱ", "euckr": "a한글", "latin2": "ał ", "greek": "aΩ", "binary": "",
}  # fmt: skip


def _text_value(alphabet: str, longest: int) -> Value:
    def value(r: Random) -> str:
        size = r.choice([0, 1, longest, r.randrange(longest + 1), r.randrange(longest + 1)])
        return quoted("".join(r.choice(alphabet) for _ in range(size)))

    return value


def text(r: Random, flavour: str) -> RandomColumn:
    charset = r.choice(["utf8mb4", *ALPHABETS])
    binary = charset == "binary"
    if r.random() < 0.6:
        longest = r.choice([1, 5, 10, 63, 64, 85, 127, 128, 255, r.randint(1, 255)])
        base = r.choice(["char", "varchar"])
        kind = f"{base}({longest})"
        longest = min(longest, 40)
    else:
        kind, longest = r.choice(["tinytext", "text", "mediumtext", "longtext"]), r.choice([3, 60])
    compressed = " compressed" if flavour == "mariadb" and r.random() < 0.15 and not kind.startswith("char") else ""
    if compressed:
        value = (lambda r: hexed(bytes(r.randrange(200)))) if binary else _text_value(ALPHABETS[charset], longest)
        return RandomColumn(f"{kind}{compressed} character set {charset}", value)
    if binary:
        return RandomColumn(f"{kind} character set binary", lambda r: hexed(r.randbytes(r.randrange(longest + 1))))
    keyable = kind.startswith("varchar") and longest >= 5 and int(kind[8:-1]) <= 64 and charset != "ascii"
    return RandomColumn(f"{kind} character set {charset}", _text_value(ALPHABETS[charset], longest), keyable=keyable)


def octets(r: Random, _flavour: str) -> RandomColumn:
    base = r.choice(["binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"])
    longest = r.choice([1, 4, 16, 255, r.randint(1, 255)])
    kind = f"{base}({longest})" if "binary" in base else base

    def value(r: Random) -> str:
        size = r.choice([0, 1, longest, r.randrange(longest + 1)])
        return hexed(r.choice([r.randbytes(size), bytes(size), r.randbytes(size // 2) + bytes(size - size // 2)]))

    return RandomColumn(kind, value, keyable="binary" in base and 16 <= longest <= 64)


def listed(r: Random, _flavour: str) -> RandomColumn:
    charset = r.choice(["utf8mb4", "latin1"])
    if r.random() < 0.5:
        members = [f"é{i}" for i in range(r.choice([1, 2, 255, 256, 300]))]
        value: Value = lambda r: quoted(r.choice([*members, members[-1], "none of them"]))  # noqa: E731
        return RandomColumn(f"enum({','.join(map(quoted, members))}) character set {charset}", value)
    members = [f"m'{i}" for i in range(r.choice([1, 2, 8, 9, 16, 17, 33, 64]))]
    chosen: Value = lambda r: quoted(",".join(m for m in members if r.random() < 0.4))  # noqa: E731
    return RandomColumn(f"set({','.join(map(quoted, members))}) character set {charset}", chosen)


# --- what one flavour has, or both have differently -----------------------------------------------------------------


def _json_value(r: Random, depth: int = 0) -> str:
    pick = r.randrange(9 if depth < 3 else 6)
    if pick < 6:
        number = r.choice([0, -1, 32767, 1 << 31, (1 << 64) - 1, -(1 << 63), r.randrange(1 << 40)])
        double = r.choice([0.5, -1e100, 1 / 3, 1e15, 123456789012345680.0, r.random(), r.uniform(-1e9, 1e9)])
        return ['"é\\n中𝄞"', "null", "true", str(number), repr(double), '""'][pick]
    inner = [_json_value(r, depth + 1) for _ in range(r.randrange(4))]
    if pick == 6:
        return f"[{','.join(inner)}]"
    return "{" + ",".join(f'"{r.choice(["", "a", "é", "key"])}{i}": {v}' for i, v in enumerate(inner)) + "}"


def json(_r: Random, flavour: str) -> RandomColumn:
    if flavour == "mariadb":
        return RandomColumn("json", lambda r: quoted(_json_value(r)))
    opaque = ["JSON_ARRAY(CAST('2024-02-29 01:02:03.5' AS DATETIME(1)), 1.50)", "JSON_ARRAY(CAST('-01:02:03' AS TIME))"]
    opaque += ["JSON_ARRAY(x'00ff', CAST('2024-02-29' AS DATE), CAST('a' AS JSON))".replace("CAST('a' AS JSON)", "'a'")]
    return RandomColumn("json", lambda r: r.choice(opaque) if r.random() < 0.1 else quoted(_json_value(r)))


_SHAPES = {
    "point": "POINT({0} {1})",
    "linestring": "LINESTRING({0} {1},{1} {2},{2} {0})",
    "polygon": "POLYGON((0 0,{2} 0,{2} {2},0 0))",
    "multipoint": "MULTIPOINT({0} {1},{1} {2})",
    "geometrycollection": "GEOMETRYCOLLECTION(POINT({0} {1}))",
}


def geometry(r: Random, flavour: str) -> RandomColumn:
    kind = r.choice([*_SHAPES, "geometry"])

    def value(r: Random) -> str:
        shape = _SHAPES[r.choice(list(_SHAPES)) if kind == "geometry" else kind]
        numbers = [r.choice([0.5, -2.25, 7, 33]), r.randrange(1, 80), r.randrange(1, 80) + 0.125]
        srid = r.choice([", 0", ", 4326", ""])
        return f"ST_GeomFromText('{shape.format(*numbers)}'{srid})"

    # MySQL turns the axes of geographic systems when it shows them; what is stored is longitude first
    shape = "ST_AsBinary({0}, 'axis-order=long-lat')" if flavour == "mysql" else "ST_AsBinary({0})"
    return RandomColumn(kind, value, f"CONCAT(ST_SRID({{0}}), ':', HEX({shape}))", _geometry_of)


def _geometry_of(answer: str) -> bytes:
    """WKB; with an SRID, PostGIS's EWKB."""
    srid, _, shape = answer.partition(":")
    wkb = bytes.fromhex(shape)
    if srid == "0":
        return wkb
    return struct.pack("<BII", 1, int.from_bytes(wkb[1:5], "little") | 0x20000000, int(srid)) + wkb[5:]


def vector(r: Random, _flavour: str) -> RandomColumn:
    size = r.choice([1, 3, 64])
    numbers: Value = lambda r: ",".join(repr(r.choice([0.5, -1.25, 1e20, 1 / 3])) for _ in range(r.randint(1, size)))  # noqa: E731
    return RandomColumn(
        f"vector({size})",
        lambda r: f"TO_VECTOR('[{numbers(r)}]')",
        "HEX({})",
        lambda text: struct.unpack(f"<{len(text) // 8}f", bytes.fromhex(text)),
    )


def network(r: Random, _flavour: str) -> RandomColumn:
    kind, size = r.choice([("uuid", 16), ("inet6", 16), ("inet4", 4)])

    def value(r: Random) -> str:
        if kind == "uuid":
            return r.choice(["UUID()", "'00000000-0000-0000-0000-000000000000'", "UUID()"])
        zeros = r.randrange(size + 1)
        return hexed(r.choice([bytes(zeros) + r.randbytes(size - zeros), r.randbytes(size - zeros) + bytes(zeros)]))

    return RandomColumn(kind, value, "CAST({} AS CHAR)")


_BOTH = [integer, integer, boolean, decimal, decimal, floating, bits, date, date_time, timestamp, time, year]
_BOTH += [text, text, text, octets, octets, listed, json, geometry]
_KINDS = {"mysql": [*_BOTH, vector], "mariadb": [*_BOTH, network]}


def random_column(r: Random, flavour: str) -> RandomColumn:
    return r.choice(_KINDS[flavour])(r, flavour)
