"""For each column type, a Hypothesis strategy of its values: bounds first, then anything.

In:  nothing.
Out: TYPES: type text and character set -> ColumnType, whose cells are (bytes in the row image, canonical value); a zero
     or impossible date has bytes, and None as its value.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
import struct
import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from tests.unit.binlog.encoding.json_values import Large, Opaque, binary_json, json_shown
from tests.unit.binlog.encoding.types import CODECS, WireType, decimal_bytes, prefixed, wire_type

Cell = tuple[bytes, Any]
Cells = st.SearchStrategy[Cell]


@dataclass(frozen=True)
class ColumnType:
    """name: for test ids. wire: as TABLE_MAP has it. cells: (bytes, canonical value)."""

    name: str
    wire: WireType
    cells: Cells


def _of(wire: WireType, values: st.SearchStrategy[Any]) -> Cells:
    return values.map(lambda value: (wire.put(value), value))


def _integer(text: str, bits: int) -> ColumnType:
    unsigned = "unsigned" in text
    low, high = (0, (1 << bits) - 1) if unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
    values = st.sampled_from([low, high, 0, 1, low + 1, high >> 1, (high >> 1) + 1]) | st.integers(low, high)
    wire = wire_type(text)
    made: Cells = _of(wire, values)
    if text == "bigint unsigned":
        made = values.map(lambda value: (wire.put(value), Decimal(value)))
    return ColumnType(text, wire, made)


def _decimal(digits: int, scale: int) -> ColumnType:
    most = 10**digits - 1
    numbers = st.sampled_from([0, 1, -1, most, -most, min(10**scale, most), most // 9]) | st.integers(-most, most)

    def cell(number: int) -> Cell:
        whole, fraction = divmod(abs(number), 10**scale)
        text = ("-" if number < 0 else "") + str(whole) + (f".{fraction:0{scale}d}" if scale else "")
        return decimal_bytes(text, digits, scale), text if digits > 38 else Decimal(text)

    text = f"decimal({digits},{scale})"
    return ColumnType(text, wire_type(text), numbers.map(cell))


def _micros(decimals: int) -> st.SearchStrategy[int]:
    step = 10 ** (6 - decimals)
    return st.integers(0, 10**decimals - 1).map(lambda n: n * step)


_DATES = st.sampled_from([dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2000, 2, 29), dt.date(1969, 12, 31)])
_DATES |= st.dates()
_CLOCKS = st.times().map(lambda t: t.replace(microsecond=0))
# A server without NO_ZERO_IN_DATE, or with ALLOW_INVALID_DATES, stores these.
_NO_DATES = st.sampled_from(["0000-00-00", "2024-00-00", "2024-00-10", "2024-10-00", "2023-02-30", "1900-02-29"])
_NO_DATES |= st.builds("{:04d}-{:02d}-00".format, st.integers(0, 9999), st.integers(0, 12))


def _temporal() -> list[ColumnType]:
    date = wire_type("date")
    made = [ColumnType("date", date, _of(date, _DATES) | _NO_DATES.map(lambda v: (date.put(v), None)))]
    for n in range(7):
        wire = wire_type(f"datetime({n})" if n else "datetime")
        values = st.builds(
            lambda d, t, f: dt.datetime.combine(d, t.replace(microsecond=f)), _DATES, _CLOCKS, _micros(n)
        )
        nowhere = _NO_DATES.map(lambda value, put=wire.put: (put(f"{value} 12:34:56"), None))
        made.append(ColumnType(wire.type, wire, _of(wire, values) | nowhere))
        wire = wire_type(f"timestamp({n})" if n else "timestamp")
        seconds = st.sampled_from([1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1]) | st.integers(1, (1 << 32) - 1)
        moments = st.builds(
            lambda s, f: dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=s, microseconds=f),
            seconds,
            _micros(n),
        )
        zero = st.just((wire.put("0000-00-00 00:00:00"), None))
        made.append(ColumnType(wire.type, wire, _of(wire, moments) | zero))
        wire = wire_type(f"time({n})" if n else "time")
        made.append(ColumnType(wire.type, wire, _of(wire, _times(n))))
    return made + _old_temporal()


def _times(decimals: int) -> st.SearchStrategy[str]:
    def text(sign: str, hours: int, rest: int, micros: int) -> str:
        shown = f"{hours:02d}:{rest // 60:02d}:{rest % 60:02d}"
        fraction = f".{micros:06d}"[: decimals + 1] if decimals else ""
        return (sign if rest or hours or micros else "") + shown + fraction

    hours = st.sampled_from([0, 1, 99, 100, 838]) | st.integers(0, 838)
    return st.builds(text, st.sampled_from(["", "-"]), hours, st.integers(0, 3599), _micros(decimals))


def _old_temporal() -> list[ColumnType]:
    """Of tables made before 5.6, and of MariaDB with mysql56_temporal_format=OFF."""
    date_time, moment, clock = (wire_type(name, old=True) for name in ("datetime", "timestamp", "time"))
    values = st.builds(dt.datetime.combine, _DATES, _CLOCKS)
    nowhere = _NO_DATES.map(lambda value: (date_time.put(f"{value} 12:34:56"), None))
    moments = st.integers(1, (1 << 32) - 1).map(lambda s: dt.datetime.fromtimestamp(s, dt.UTC))
    zero = st.just((bytes(4), None))
    return [
        ColumnType("datetime, old", date_time, _of(date_time, values) | nowhere),
        ColumnType("timestamp, old", moment, _of(moment, moments) | zero),
        ColumnType("time, old", clock, _of(clock, _times(0))),
    ]


# Characters that the character set has, of each length in bytes.
_ALPHABETS = {
    "utf8mb4": None, "utf8mb3": "aZ\x00'\\é中￿", "ascii": "aZ\x00\x7f", "latin1": "aéÿ€\x00", "gbk": "a中文錒",
    "sjis": "aｱ表漢", "ucs2": "aé中￿", "utf16": "aé中𝄞", "utf16le": "aé中𝄞", "utf32": "aé中𝄞", "koi8r": "aЯж",
}  # fmt: skip


def _texts(charset: str, longest: int) -> st.SearchStrategy[str]:
    chosen = _ALPHABETS[charset]
    alphabet = st.characters(exclude_categories=["Cs"]) if chosen is None else st.sampled_from(chosen)
    return st.text(alphabet, max_size=longest)


def _strings() -> list[ColumnType]:
    made = []
    for charset in CODECS:
        for base in ("char(10)", "varchar(7)", "varchar(300)"):
            wire = wire_type(base, charset)
            made.append(ColumnType(f"{base} {charset}", wire, _of(wire, _texts(charset, 7))))
    for base in ("char(255)", "tinytext", "text", "mediumtext", "longtext"):
        wire = wire_type(base, "utf8mb4")
        longest = st.just("中" * (80 if base == "tinytext" else 255))
        made.append(ColumnType(base, wire, _of(wire, _texts("utf8mb4", 40) | longest)))
    for base in ("varbinary(7)", "varbinary(300)", "tinyblob", "blob", "mediumblob", "longblob"):
        wire = wire_type(base)
        made.append(ColumnType(base, wire, _of(wire, st.binary(max_size=7) | st.just(bytes(7)))))
    for size in (1, 16, 255):
        wire = wire_type(f"binary({size})")
        short = st.binary(max_size=size).map(lambda value, size=size: value.ljust(size, b"\0"))
        made.append(ColumnType(wire.type, wire, _of(wire, short)))
    wire = wire_type("varchar(9)", "binary")
    return [*made, ColumnType("varchar(9) binary", wire, _of(wire, st.binary(max_size=9)))]


def _listed() -> list[ColumnType]:
    made = []
    for count in (1, 3, 255, 256, 1000):
        wire = wire_type("enum(" + ",".join(f"'é{i}'" for i in range(count)) + ")", "utf8mb4")
        # number 0: what a server without strict mode stores for a value it refuses
        made.append(ColumnType(f"enum of {count}", wire, _of(wire, st.sampled_from(["", *wire.members]))))
    for count in (1, 8, 9, 17, 25, 33, 63, 64):
        wire = wire_type("set(" + ",".join(f"'m{i}'" for i in range(count)) + ")", "latin1")
        chosen = st.lists(st.booleans(), min_size=count, max_size=count) | st.just([True] * count)
        values = chosen.map(lambda v, m=wire.members: ",".join(x for x, on in zip(m, v, strict=True) if on))
        made.append(ColumnType(f"set of {count}", wire, _of(wire, values)))
    return made


_JSON_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.integers(-(10**9), 10**9).map(lambda n: n / 64)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.just("x" * 200)
    | st.builds(
        lambda n: Opaque(246, bytes([5, 2]) + decimal_bytes(f"{n / 100:.2f}", 5, 2), f"{n / 100:.2f}"),
        st.integers(-99999, 99999),
    )
)
_KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
_JSON = st.recursive(
    _JSON_LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(_KEYS, inner, max_size=4)
        | st.lists(inner, max_size=3).map(Large)
        | st.dictionaries(_KEYS, inner, max_size=3).map(Large)
    ),
    max_leaves=12,
)


def _special() -> list[ColumnType]:
    made = [ColumnType("json", wire_type("json"), _JSON.map(lambda v: (prefixed(4)(binary_json(v)), json_shown(v))))]
    wire = wire_type("vector(8)")
    made.append(
        ColumnType("vector", wire, _of(wire, st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=8)))
    )
    wire = wire_type("uuid")
    made.append(ColumnType("uuid", wire, _of(wire, st.uuids().map(str) | st.just(str(uuid.UUID(int=0))))))
    wire = wire_type("inet4")
    made.append(ColumnType("inet4", wire, _of(wire, st.ip_addresses(v=4).map(str))))
    point = struct.pack("<BIdd", 1, 1, 1.5, -2.25)
    line = struct.pack("<BIIdddd", 1, 2, 2, 0.0, 1.0, 2.0, 3.0)
    for name, shape in (("point", point), ("linestring", line), ("geometry", point)):
        wire = wire_type(name)
        made.append(ColumnType(name, wire, _of(wire, st.just(shape))))
    for bits in (1, 2, 8, 9, 17, 63, 64):
        wire = wire_type(f"bit({bits})")
        numbers = st.sampled_from([0, (1 << bits) - 1]) | st.integers(0, (1 << bits) - 1)
        width = (bits + 7) // 8
        values = st.booleans() if bits == 1 else numbers.map(lambda n, width=width: n.to_bytes(width, "big"))
        made.append(ColumnType(wire.type, wire, _of(wire, values)))
    return [*made, _inet6()]


def _inet6() -> ColumnType:
    """As MariaDB shows it: "::" for the first of the longest runs of zeros, were it a single group."""
    wire = wire_type("inet6")

    def shown(address: ipaddress.IPv6Address) -> str:
        groups = [group.lstrip("0") for group in address.exploded.split(":")]
        run = max(re.findall("0*", "".join("x" if group else "0" for group in groups)), key=len)
        if not run:
            return ":".join(groups)
        at = "".join("x" if group else "0" for group in groups).index(run)
        before, after = ([group or "0" for group in part] for part in (groups[:at], groups[at + len(run) :]))
        if not before and (len(run) == 6 or (len(run) == 5 and after[0] == "ffff")):
            after = [*after[:-2], str(ipaddress.IPv4Address(address.packed[12:]))]
        return ":".join(before) + "::" + ":".join(after)

    addresses = st.ip_addresses(v=6) | st.integers(0, (1 << 48) - 1).map(ipaddress.IPv6Address)
    return ColumnType("inet6", wire, addresses.map(lambda a: (wire.put(str(a)), shown(a))))


def _numbers() -> list[ColumnType]:
    bits = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
    made = [_integer(name + sign, n) for name, n in bits.items() for sign in ("", " unsigned")]
    made += [_decimal(p, s) for p, s in DECIMALS]
    float_wire, double_wire, year = wire_type("float"), wire_type("double"), wire_type("year")
    made.append(ColumnType("float", float_wire, _of(float_wire, st.floats(width=32, allow_nan=False))))
    made.append(ColumnType("double", double_wire, _of(double_wire, st.floats(allow_nan=False))))
    years = st.sampled_from([0, 1901, 2155]) | st.integers(1901, 2155)
    return [*made, ColumnType("year", year, _of(year, years))]


DECIMALS = ((1, 0), (1, 1), (5, 2), (9, 0), (9, 9), (10, 0), (12, 2), (15, 7), (18, 4), (18, 9), (18, 18), (19, 0))
DECIMALS += ((20, 10), (28, 1), (36, 27), (38, 30), (38, 0), (39, 0), (47, 29), (65, 30), (65, 0))
TYPES = {found.name: found for found in [*_numbers(), *_temporal(), *_strings(), *_listed(), *_special()]}
