"""Values of a key's column as numbers, so a value between two others can be guessed.

In:  a column, its lowest and highest value as literals, for text the alphabet that the server puts
     it in order by.
Out: a Scale; None where nothing is known to lie between.

Neither a guess nor this order must be exact: the server compares, and a bound is always an existing
value. If this order isn't the server's, ranges are less even, but no row is missed.
"""

from __future__ import annotations

import ipaddress
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from tidegate.schema.model.columns import Column
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import canonical

_BYTES_PLACES: Final = 12
_FIRST_YEAR: Final = 1901  # that a YEAR may be, but for 0
_TEXT_PLACES: Final = 6
_DAY: Final = 86_400_000_000  # microseconds
_TIME: Final = re.compile(r"(-?)(\d+):(\d+):(\d+)(?:\.(\d+))?")
_RANDOM_VERSION: Final = 4
_ORDERED_VERSION: Final = 6  # UUIDs from this version on are in order of their text


@dataclass(frozen=True, slots=True)
class Scale:
    """low, high: numbers of the two ends. literal: a number's value."""

    low: int
    high: int
    literal: Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Alphabet:
    """Characters in the server's order, each as its bytes in the column's character set."""

    places: dict[str, int]
    characters: Sequence[bytes]


def scale_of(column: Column, low: str, high: str) -> Scale | None:
    """The scale of anything but text."""
    kind = canonical(column).kind
    match kind:
        case Kind.INT | Kind.UNSIGNED_BIGINT | Kind.BOOLEAN | Kind.BIT | Kind.ENUM | Kind.SET:
            scale = Scale(int(low), int(high), str)
        case Kind.YEAR:
            scale = Scale(int(low), int(high), lambda n: str(n if n >= _FIRST_YEAR else 0))
        case Kind.DECIMAL | Kind.DECIMAL_TEXT:
            digits = len(low.partition(".")[2])
            scale = Scale(_shifted(low, digits), _shifted(high, digits), lambda n: _decimal(n, digits))
        case Kind.FLOAT | Kind.DOUBLE:
            scale = Scale(_bits(float(low)), _bits(float(high)), lambda n: _double(_float(n)))
        case Kind.DATE | Kind.DATETIME | Kind.TIMESTAMP:
            shown = _day if kind is Kind.DATE else _moment
            scale = Scale(_micros(low), _micros(high), lambda n: f"'{shown(n)}'")
        case Kind.TIME:
            scale = Scale(_time_micros(low), _time_micros(high), _time)
        case Kind.UUID:
            scale = _of_uuids(low, high)
        case Kind.INET:
            scale = _of_addresses(low, high)
        case Kind.BINARY:
            scale = _of_bytes(bytes.fromhex(low[2:-1]), bytes.fromhex(high[2:-1]))
        case _:
            return None
    return scale if scale.low < scale.high else None


def scale_of_text(
    introducer: str, low: Sequence[str], high: Sequence[str], shared: bytes, alphabet: Alphabet
) -> Scale | None:
    """low, high: characters of the two ends after those that both begin with. shared: these, in bytes."""
    base = len(alphabet.characters) + 1  # 0: the text ends

    def number(text: Sequence[str]) -> int:
        digits = 0
        for n in range(_TEXT_PLACES):
            digits = digits * base + (alphabet.places.get(text[n], 0) + 1 if n < len(text) else 0)
        return digits

    def literal(place: int) -> str:
        digits = []
        for _ in range(_TEXT_PLACES):
            place, digit = divmod(place, base)
            digits.append(digit)
        rest = b"".join(alphabet.characters[digit - 1] for digit in reversed(digits) if digit)
        return f"{introducer} x'{(shared + rest).hex()}'"

    scale = Scale(number(low), number(high), literal)
    return scale if scale.low < scale.high else None


# --- numbers --------------------------------------------------------------------------------------------


def _shifted(text: str, digits: int) -> int:
    whole, _, rest = text.partition(".")
    return int(whole + rest.ljust(digits, "0"))


def _decimal(number: int, digits: int) -> str:
    whole, rest = divmod(abs(number), 10**digits)
    return f"{'-' * (number < 0)}{whole}" + (f".{rest:0{digits}}" if digits else "")


def _bits(value: float) -> int:
    """A float as an integer with the same order. Between two powers of two, half of the integers
    lie below the middle.
    """
    (bits,) = struct.unpack(">q", struct.pack(">d", value))
    return int(bits) if bits >= 0 else -(int(bits) & 0x7FFF_FFFF_FFFF_FFFF)


def _float(number: int) -> float:
    (value,) = struct.unpack(">d", struct.pack(">Q", number if number >= 0 else -number | 1 << 63))
    return float(value)


def _double(value: float) -> str:
    text = repr(value)
    return text if "e" in text else f"{text}e0"


# --- times ----------------------------------------------------------------------------------------------


def _micros(literal: str) -> int:
    """The number of a date or a moment; of an impossible one, a near one's, or 0."""
    day, _, rest = literal.strip("'").partition(" ")
    year, month, number = (int(part) for part in day.split("-"))
    if not year:
        return 0
    days = date(year, max(month, 1), 1).toordinal() + max(number, 1) - 1
    return days * _DAY + (_time_micros(rest) if rest else 0)


def _day(number: int) -> str:
    days = number // _DAY
    return date.fromordinal(days).isoformat() if days >= 1 else "0000-00-00"


def _moment(number: int) -> str:
    return f"{_day(number)} {_clock(number % _DAY if number >= _DAY else 0)}"


def _clock(micros: int) -> str:
    seconds, rest = divmod(micros, 1_000_000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:06}"


def _time_micros(literal: str) -> int:
    parts = _TIME.fullmatch(literal.strip("'"))
    assert parts is not None, "as a server writes a TIME"
    sign, hours, minutes, seconds, rest = parts.groups()
    micros = ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1_000_000 + int((rest or "").ljust(6, "0"))
    return -micros if sign else micros


def _time(number: int) -> str:
    return f"'{'-' * (number < 0)}{_clock(abs(number))}'"


# --- bytes ----------------------------------------------------------------------------------------------


def _of_bytes(low: bytes, high: bytes) -> Scale:
    """The common beginning of both is left out, then so many places."""
    count = next((n for n, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))

    def number(end: bytes) -> int:
        return int.from_bytes(end[count : count + _BYTES_PLACES].ljust(_BYTES_PLACES, b"\0"), "big")

    def literal(number: int) -> str:
        return f"x'{(low[:count] + number.to_bytes(_BYTES_PLACES, 'big')).hex()}'"

    return Scale(number(low), number(high), literal)


def _of_addresses(low: str, high: str) -> Scale:
    ends = [ipaddress.ip_address(end.strip("'")) for end in (low, high)]
    if any(end.version == 6 for end in ends):
        return Scale(int(ends[0]), int(ends[1]), lambda n: f"'{ipaddress.IPv6Address(n)}'")
    return Scale(int(ends[0]), int(ends[1]), lambda n: f"'{ipaddress.IPv4Address(n)}'")


def _of_uuids(low: str, high: str) -> Scale:
    """MariaDB puts them in order of their last group first, and so on; those of version 6 and above as they read."""
    ends = [end.strip("'").replace("-", "") for end in (low, high)]
    as_read = all(int(end[12], 16) >= _ORDERED_VERSION for end in ends)

    def turned(text: str) -> str:
        return text if as_read else text[20:] + text[16:20] + text[12:16] + text[8:12] + text[:8]

    def literal(number: int) -> str:
        text = f"{number:032x}"
        if not as_read:
            text = text[24:] + text[20:24] + text[16:20] + text[12:16] + text[:12]
            text = f"{text[:12]}{_RANDOM_VERSION:x}{text[13:16]}{int(text[16], 16) & 3 | 8:x}{text[17:]}"
        return f"'{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}'"

    return Scale(int(turned(ends[0]), 16), int(turned(ends[1]), 16), literal)
