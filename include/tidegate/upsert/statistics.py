"""A data file's statistics as Delta's log has them (PROTOCOL.md, "Per-file Statistics").

In:  the rows of one file, the columns to describe.
Out: JSON text: numRecords, minValues, maxValues, nullCount, tightBounds.

Bounds may be wide, never narrow: a text longer than 32 characters is cut, its maximum with a character on top that is
larger than what was cut off; a timestamp has milliseconds, its maximum rounded up. What can't be said truly is left
out: columns with NaN, dates no ISO text has, types without an order (binary, boolean, arrays).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

TEXT_CHARACTERS: Final = 32
_TIE_ASCII: Final = "\x7f"
_TIE: Final = "\U0010ffff"
_MILLISECOND: Final = timedelta(milliseconds=1)
_TIGHT: Final = re.compile(r'"tightBounds"\s*:\s*true')


def statistics(rows: pa.Table, indexed: Sequence[str]) -> str:
    """JSON text for a file of these rows, none of which is dead."""
    lows, highs, nulls = [], [], []
    for name in indexed:
        column = rows.column(name)
        key = json.dumps(name, ensure_ascii=False)
        nulls.append(f"{key}:{column.null_count}")
        low, high = _bounds(column)
        if low is not None and high is not None:
            lows.append(f"{key}:{low}")
            highs.append(f"{key}:{high}")
    return (
        f'{{"numRecords":{rows.num_rows},"minValues":{{{",".join(lows)}}},"maxValues":{{{",".join(highs)}}},'
        f'"nullCount":{{{",".join(nulls)}}},"tightBounds":true}}'
    )


def loosened(text: str | None) -> str | None:
    """The statistics of a file that got a deletion vector: they are then of all its rows, dead ones too."""
    if not text:
        return text
    known = json.loads(text).get("tightBounds")
    if known is None:
        inner = text.lstrip()[1:]
        return '{"tightBounds":false' + ("" if inner.lstrip().startswith("}") else ",") + inner
    # As text, so that decimals keep their digits; quotes within a value are escaped and can't match.
    return _TIGHT.sub('"tightBounds":false', text) if known else text


def _bounds(column: pa.ChunkedArray) -> tuple[str | None, str | None]:
    """JSON text of (min, max); None for what has none."""
    kind = column.type
    if not _ordered(kind) or column.null_count == len(column):
        return None, None
    if pa.types.is_floating(kind) and pc.any(pc.is_nan(column)).as_py():
        return None, None
    found = pc.min_max(column)
    try:
        low, high = found["min"].as_py(), found["max"].as_py()
    except (ValueError, OverflowError):  # a date that Python can't hold
        return None, None
    return _json(low, upper=False), _json(high, upper=True)


def _ordered(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_date(kind)
        or types.is_timestamp(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
    )


def _json(value: Any, *, upper: bool) -> str | None:
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, str):
        cut = upper_text(value) if upper else value[:TEXT_CHARACTERS]
        return None if cut is None else json.dumps(cut, ensure_ascii=False)
    if isinstance(value, datetime):
        return _instant(value, upper=upper)
    assert isinstance(value, date), value
    return f'"{value.isoformat()}"'


def upper_text(text: str) -> str | None:
    """The text, or something of about 32 characters that is no less in code point (and UTF-8) order; None: neither."""
    if len(text) <= TEXT_CHARACTERS:
        return text
    head, beyond = text[:TEXT_CHARACTERS], text[TEXT_CHARACTERS]
    if beyond < _TIE_ASCII:
        return head + _TIE_ASCII
    return head + _TIE if beyond < _TIE else None


def _instant(value: datetime, *, upper: bool) -> str | None:
    whole = value.replace(microsecond=value.microsecond // 1000 * 1000)
    try:
        whole = whole + _MILLISECOND if upper and whole < value else whole
    except OverflowError:
        return None
    plain = whole.astimezone(UTC).replace(tzinfo=None) if whole.tzinfo else whole
    zone = "Z" if whole.tzinfo else ""
    return f'"{plain.isoformat(timespec="milliseconds")}{zone}"'
