"""A cursor over the bytes of one event. Every read is checked against the event's end.

In:  bytes.
Out: integers and byte strings; DecodeError instead of a read past the end.
"""

from __future__ import annotations

from tidegate.errors import DecodeError
from tidegate.remedy import REPORT


class ByteCursor:
    """Reads from left to right. Integers are little-endian, unless the method's name says
    otherwise.
    """

    def __init__(self, data: bytes, at: int = 0, end: int | None = None) -> None:
        self.data = data
        self.at = at
        self.end = len(data) if end is None else end

    def __bool__(self) -> bool:
        return self.at < self.end

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > self.end:
            raise DecodeError(f"needs {count} bytes at offset {self.at} of {self.end}", remedy=REPORT)
        self.at += count
        return self.data[self.at - count : self.at]

    def unsigned(self, width: int) -> int:
        return int.from_bytes(self.take(width), "little")

    def big_endian(self, width: int) -> int:
        return int.from_bytes(self.take(width), "big")

    def packed(self) -> int:
        """Length-encoded integer (MySQL source docs "Protocol::LengthEncodedInteger")."""
        first = self.unsigned(1)
        if first < 251:
            return first
        if first in (251, 255):
            raise DecodeError(f"length-encoded integer begins with {first}", remedy=REPORT)
        return self.unsigned({252: 2, 253: 3, 254: 8}[first])

    def text(self, count: int) -> str:
        """Count bytes of UTF-8."""
        taken = self.take(count)
        try:
            return taken.decode("utf-8")
        except UnicodeDecodeError:
            raise DecodeError(f"{taken[:40]!r} is not UTF-8", remedy=REPORT) from None

    def rest(self) -> bytes:
        return self.take(self.end - self.at)
