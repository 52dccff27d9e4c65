"""Base85 in the alphabet of ZeroMQ RFC 32, as Delta names deletion vectors' files and writes inline ones.

In:  bytes, or text of five characters per four bytes. Out: the other.
"""

from __future__ import annotations

from typing import Final

_ALPHABET: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_VALUES: Final = {character: value for value, character in enumerate(_ALPHABET)}


def encode(data: bytes) -> str:
    """Five characters per four bytes; zeros are added to a multiple of four."""
    numbers = _numbers(data + bytes(-len(data) % 4))
    return "".join(_ALPHABET[number // 85**power % 85] for number in numbers for power in (4, 3, 2, 1, 0))


def _numbers(data: bytes) -> list[int]:
    return [int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4)]


def decode(text: str) -> bytes:
    """Raises ValueError for text that no bytes have."""
    if len(text) % 5:
        raise ValueError(f"{len(text)} characters are no multiple of five")
    out = bytearray()
    for at in range(0, len(text), 5):
        number = 0
        for character in text[at : at + 5]:
            if character not in _VALUES:
                raise ValueError(f"{character!r} isn't in the alphabet")
            number = number * 85 + _VALUES[character]
        if number >> 32:
            raise ValueError(f"{text[at : at + 5]!r} is more than four bytes")
        out += number.to_bytes(4, "big")
    return bytes(out)
