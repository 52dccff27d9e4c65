"""A zero or impossible date as text, for the error that names it.

In:  the cell of its column (CELL_*), and the bytes of its value.
Out: the day as the server shows it, without a time: '2024-02-31'.
"""

from __future__ import annotations

from tidegate.columnar.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.errors import UnsupportedValue


def date_text(cell: int, units: int, raw: bytes) -> str:
    """cell: CELL_*. units: for a CELL_HIRES_DATETIME, the parts of a second it counts. raw: the
    value's bytes.
    """
    little, big = int.from_bytes(raw, "little"), int.from_bytes(raw, "big")
    if cell == L.CELL_DATE:
        return _text(little >> 9, little >> 5 & 15, little & 31)
    if cell == L.CELL_DATETIME:
        packed = int.from_bytes(raw[:5], "big") - (1 << 39)
        months = packed >> 22
        return _text(months // 13, months % 13, packed >> 17 & 31)
    if cell == L.CELL_OLD_DATETIME:
        day = little // 1_000_000
        return _text(day // 10_000, day // 100 % 100, day % 100)
    if cell == L.CELL_HIRES_DATETIME:
        day = big // units // 86_400
        return _text(day // 32 // 13, day // 32 % 13, day % 32)
    return _text(0, 0, 0)


def _text(year: int, month: int, day: int) -> str:
    return f"{year:04d}-{month:02d}-{day:02d}"


def refused_date(name: str, text: str, *, key: bool) -> UnsupportedValue:
    """The error for such a date where it is refused. Only a key's value is shown, since others may
    be private.
    """
    if key:
        return UnsupportedValue(
            f"column {name} of the key holds {text}, which no calendar has: NULL would stand for all such keys",
            remedy="repair the row at the source, or leave the table out",
        )
    return UnsupportedValue(
        f"column {name} holds a date that no calendar has (zero_dates: error)",
        remedy="repair the row at the source, or set apply.zero_dates to null in the pipeline file",
    )
