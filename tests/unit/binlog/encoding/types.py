"""Column types and values on the wire, written from the formats' descriptions alone: nothing of the decoder is used.

In:  a type's text as information_schema shows it, a character set; a canonical value.
Out: the type's code and metadata in a TABLE_MAP, and the bytes of a value in a row image.

Formats: MySQL source docs "Table_map_event", "Rows_event"; temporal types mysys/my_time.cc (my_*_packed_to_binary);
decimals strings/decimal.cc (decimal2bin). A value that is None here is NULL, which has no bytes. Zero dates have no
canonical value: they are written as text ("0000-00-00").
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
import struct
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tests.unit.binlog.encoding.events import packed
from tests.unit.binlog.encoding.json_values import binary_json

CODECS = {
    "utf8mb4": "utf-8", "utf8mb3": "utf-8", "ascii": "ascii", "latin1": "cp1252", "gbk": "gbk", "sjis": "shift_jis",
    "ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be", "koi8r": "koi8-r",
}  # fmt: skip
COLLATIONS = {
    "utf8mb4": 45, "utf8mb3": 33, "ascii": 11, "latin1": 8, "gbk": 28, "sjis": 13, "ucs2": 35, "utf16": 54,
    "utf16le": 56, "utf32": 60, "koi8r": 7, "binary": 63,
}  # fmt: skip
WIDEST = {"utf8mb4": 4, "utf8mb3": 3, "gbk": 2, "sjis": 2, "ucs2": 2, "utf16": 4, "utf16le": 4, "utf32": 4}
_INTEGERS = {"tinyint": (1, 1), "smallint": (2, 2), "mediumint": (9, 3), "int": (3, 4), "bigint": (8, 8)}
_NUMERIC = frozenset({1, 2, 3, 4, 5, 8, 9, 13, 246})
# Types with a collation in the metadata, of MySQL and of MariaDB. 242 (VECTOR) is MySQL's alone: drawn in a log of
# MariaDB's all the same, it has its collation there too.
_CHARACTER = {True: frozenset({15, 242, 252, 254}), False: frozenset({15, 242, 252, 254, 255})}
_LISTED = frozenset({247, 248})
_GROUP_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


@dataclass(frozen=True)
class WireType:
    """code, metadata: as they stand in TABLE_MAP. put: a canonical value's bytes. kind: the code of the real type."""

    type: str
    charset: str
    code: int
    metadata: bytes
    put: Callable[[Any], bytes]
    members: tuple[str, ...] = ()

    @property
    def kind(self) -> int:
        listed = self.code == 254 and self.metadata[0] in _LISTED
        return self.metadata[0] if listed else self.code


def little(number: int, width: int) -> bytes:
    return (number & ((1 << 8 * width) - 1)).to_bytes(width, "little")


def prefixed(width: int) -> Callable[[bytes], bytes]:
    return lambda value: little(len(value), width) + value


def as_digits(value: Decimal | str) -> str:
    return value if isinstance(value, str) else f"{value:f}"


def decimal_bytes(text: str, digits: int, scale: int) -> bytes:
    """Groups of nine digits from the point to both sides; a negative number has all bits inverted."""
    negative = text.startswith("-")
    whole, _, fraction = text.lstrip("-").partition(".")
    whole = whole.lstrip("0").rjust(digits - scale, "0")
    assert len(whole) <= digits - scale, text
    assert len(fraction) <= scale, text
    fraction = fraction.ljust(scale, "0")
    lead = len(whole) % 9
    groups = [whole[:lead]] + [whole[i : i + 9] for i in range(lead, len(whole), 9)]
    groups += [fraction[i : i + 9] for i in range(0, len(fraction), 9)]
    made = bytearray(b"".join(int(g or "0").to_bytes(_GROUP_BYTES[len(g)], "big") for g in groups))
    made[0] ^= 0x80
    return bytes(b ^ 0xFF for b in made) if negative else bytes(made)


def _fraction(micros: int, decimals: int) -> bytes:
    width = (decimals + 1) // 2
    return (micros // (1, 10_000, 100, 1)[width]).to_bytes(width, "big")


def _moment(value: str) -> tuple[list[int], int]:
    """Year to second as numbers, and microseconds; any that the text has not are 0."""
    text, _, fraction = value.partition(".")
    numbers = [int(n) for n in re.split("[- :]", text)]
    return numbers + [0] * (6 - len(numbers)), int(fraction.ljust(6, "0"))


def date_bytes(value: Any) -> bytes:
    year, month, day = (int(n) for n in str(value).split("-"))
    return little(year << 9 | month << 5 | day, 3)


def datetime_bytes(decimals: int) -> Callable[[Any], bytes]:
    def put(value: Any) -> bytes:
        (year, month, day, hour, minute, second), micros = _moment(str(value))
        number = ((year * 13 + month) << 5 | day) << 17 | hour << 12 | minute << 6 | second
        return (number + (1 << 39)).to_bytes(5, "big") + _fraction(micros, decimals)

    return put


def old_datetime_bytes(value: Any) -> bytes:
    (year, month, day, hour, minute, second), _ = _moment(str(value))
    return little((year * 10000 + month * 100 + day) * 1000000 + hour * 10000 + minute * 100 + second, 8)


def _epoch(value: Any) -> tuple[int, int]:
    if isinstance(value, str):  # 0000-00-00 00:00:00
        return 0, 0
    since = value - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return since.days * 86400 + since.seconds, since.microseconds


def timestamp_bytes(decimals: int) -> Callable[[Any], bytes]:
    def put(value: Any) -> bytes:
        seconds, micros = _epoch(value)
        return seconds.to_bytes(4, "big") + _fraction(micros, decimals)

    return put


def _clock(value: str) -> tuple[bool, int, int, int, int]:
    found = re.fullmatch(r"(-?)(\d+):(\d\d):(\d\d)(?:\.(\d+))?", value)
    assert found, value
    return bool(found[1]), int(found[2]), int(found[3]), int(found[4]), int((found[5] or "").ljust(6, "0"))


def time_bytes(decimals: int) -> Callable[[str], bytes]:
    width = (decimals + 1) // 2

    def put(value: str) -> bytes:
        negative, hours, minutes, seconds, micros = _clock(value)
        number = int.from_bytes((hours << 12 | minutes << 6 | seconds).to_bytes(3, "big") + _fraction(micros, decimals))
        return ((1 << (23 + 8 * width)) + (-number if negative else number)).to_bytes(3 + width, "big")

    return put


def old_time_bytes(value: str) -> bytes:
    negative, hours, minutes, seconds, _ = _clock(value)
    number = hours * 10000 + minutes * 100 + seconds
    return little(-number if negative else number, 3)


def _text(charset: str) -> Callable[[str], bytes]:
    codec = CODECS[charset]
    return lambda value: value.encode(codec)


def _numeric(base: str, numbers: list[int], unsigned: bool) -> tuple[int, bytes, Callable[[Any], bytes]] | None:
    if base in _INTEGERS:
        code, width = _INTEGERS[base]
        return code, b"", lambda value: int(value).to_bytes(width, "little", signed=not unsigned)
    if base == "decimal":
        digits, scale = [*numbers, 10, 0][:2] if len(numbers) != 1 else (numbers[0], 0)
        return 246, bytes([digits, scale]), lambda value: decimal_bytes(as_digits(value), digits, scale)
    if base == "float":
        return 4, b"\x04", lambda value: struct.pack("<f", value)
    if base == "double":
        return 5, b"\x08", lambda value: struct.pack("<d", value)
    if base == "year":
        return 13, b"", lambda value: bytes([value - 1900 if value else 0])
    if base == "bit":
        bits = (numbers or [1])[0]
        width = (bits + 7) // 8
        return 16, bytes([bits % 8, bits // 8]), lambda v: v if isinstance(v, bytes) else int(v).to_bytes(width, "big")
    return None


def _temporal(base: str, decimals: int, old: bool) -> tuple[int, bytes, Callable[[Any], bytes]] | None:
    if base == "date":
        return 10, b"", date_bytes
    if base == "datetime":
        return (12, b"", old_datetime_bytes) if old else (18, bytes([decimals]), datetime_bytes(decimals))
    if base == "timestamp":
        if old:
            return 7, b"", lambda value: little(_epoch(value)[0], 4)
        return 17, bytes([decimals]), timestamp_bytes(decimals)
    if base == "time":
        return (11, b"", old_time_bytes) if old else (19, bytes([decimals]), time_bytes(decimals))
    return None


def _string(base: str, numbers: list[int], charset: str) -> tuple[int, bytes, Callable[[Any], bytes]] | None:
    raw: Callable[[Any], bytes] = _text(charset) if charset not in ("", "binary") else bytes
    size = (numbers or [1])[0] * WIDEST.get(charset, 1)
    put = prefixed(1 if size < 256 else 2)
    if base == "char":
        return 254, bytes([254 ^ (size >> 8 & 3) << 4, size & 255]), lambda value: put(raw(value))
    if base == "binary":  # the server leaves zeros at the end out
        return 254, bytes([254, size & 255]), lambda value: put(value.rstrip(b"\0"))
    if base in ("varchar", "varbinary"):
        return 15, little(size, 2), lambda value: put(raw(value))
    for name, width in (("tiny", 1), ("medium", 3), ("long", 4), ("", 2)):
        if base in (f"{name}text", f"{name}blob"):
            return 252, bytes([width]), lambda value, width=width: prefixed(width)(raw(value))
    return None


def _special(base: str, members: tuple[str, ...]) -> tuple[int, bytes, Callable[[Any], bytes]] | None:
    if base == "enum":
        width = 1 if len(members) < 256 else 2
        return 254, bytes([247, width]), lambda value: little(members.index(value) + 1 if value else 0, width)
    if base == "set":
        width = (len(members) + 7) // 8
        width = 8 if width > 4 else width
        chosen = {member: 1 << i for i, member in enumerate(members)}
        return 254, bytes([248, width]), lambda v: little(sum(chosen[m] for m in v.split(",")) if v else 0, width)
    if base == "json":
        return 245, b"\x04", lambda value: prefixed(4)(binary_json(value))
    if base == "vector":
        return 242, b"\x04", lambda value: prefixed(4)(struct.pack(f"<{len(value)}f", *value))
    if base == "uuid":  # stored with its groups in another order; the log has them in the text's
        return 254, b"\xfe\x10", lambda value: prefixed(1)(uuid.UUID(value).bytes.rstrip(b"\0"))
    if base == "inet6":
        return 254, b"\xfe\x10", lambda value: prefixed(1)(ipaddress.IPv6Address(value).packed.rstrip(b"\0"))
    if base == "inet4":
        return 254, b"\xfe\x04", lambda value: prefixed(1)(ipaddress.IPv4Address(value).packed.rstrip(b"\0"))
    if base in ("geometry", "point", "linestring", "polygon"):
        return 255, b"\x04", lambda value: prefixed(4)(bytes(4) + value)
    return None


def wire_type(text: str, charset: str = "", *, old: bool = False) -> WireType:
    """old: temporal types in the format of before 5.6."""
    base = re.match("[a-z0-9]+", text)[0]
    members = tuple(m.replace("''", "'") for m in re.findall(r"'((?:[^']|'')*)'", text))
    numbers = [] if members else [int(n) for n in re.findall(r"\d+", text.removeprefix(base))]
    found = (
        _numeric(base, numbers, "unsigned" in text)
        or _temporal(base, (numbers or [0])[0], old)
        or _string(base, numbers, charset)
        or _special(base, members)
    )
    assert found, text
    return WireType(text, charset, *found, members)


# --- TABLE_MAP's optional metadata ------------------------------------------------------------------------


def _field(kind: int, value: bytes) -> bytes:
    return bytes([kind]) + packed(len(value)) + value


def _bits(flags: Sequence[bool]) -> bytes:
    made = bytearray((len(flags) + 7) // 8)
    for i, flag in enumerate(flags):
        made[i // 8] |= 0x80 >> i % 8 if flag else 0
    return bytes(made)


def _named(text: bytes) -> bytes:
    return packed(len(text)) + text


def _members(types: Sequence[WireType]) -> bytes:
    made = b""
    for t in types:
        made += packed(len(t.members)) + b"".join(_named(m.encode(CODECS[t.charset])) for m in t.members)
    return made


def _charsets(types: Sequence[WireType], default_kind: int, each_kind: int, *, default: bool) -> bytes:
    ids = [COLLATIONS[t.charset or "binary"] for t in types]
    if not ids:
        return b""
    if not default:
        return _field(each_kind, b"".join(map(packed, ids)))
    common = max(set(ids), key=ids.count)
    others = b"".join(packed(i) + packed(n) for i, n in enumerate(ids) if n != common)
    return _field(default_kind, packed(common) + others)


def optional_metadata(
    types: Sequence[WireType], names: Sequence[str], key: Sequence[int], *, full: bool, default: bool, mysql: bool
) -> bytes:
    """MINIMAL or FULL metadata. default: charsets as a default with exceptions, rather than one for each column.

    mysql: False for MariaDB, whose geometries have a collation.
    """
    numeric = [t for t in types if t.kind in _NUMERIC]
    made = _field(1, _bits(["unsigned" in t.type for t in numeric])) if numeric else b""
    made += _charsets([t for t in types if t.kind in _CHARACTER[mysql]], 2, 3, default=default)
    if not full:
        return made
    made += _field(4, b"".join(_named(name.encode()) for name in names))
    for kind, number in ((248, 5), (247, 6)):
        listed = [t for t in types if t.kind == kind]
        made += _field(number, _members(listed)) if listed else b""
    made += _charsets([t for t in types if t.kind in _LISTED], 10, 11, default=default)
    made += _field(8, b"".join(map(packed, key))) if key else b""
    return made + _field(12, _bits([True] * len(types)))
