"""A data file's statistics as Delta's log has them (PROTOCOL.md, "Per-file Statistics").

In:  the rows of one file, the columns to describe.
Out: JSON text: numRecords, minValues, maxValues, nullCount, tightBounds.

Bounds may be too wide, never too narrow. A text of more than 32 characters is cut; its maximum gets
a character that is larger than the cut part. A timestamp has milliseconds; its maximum is rounded
up. A bound of zero has the sign that covers both zeros: some readers order -0.0 below 0.0 when they
skip files, although the two are equal in rows. A bound that can't be right is left out: columns
with NaN, dates without an ISO text, types without an order (binary, boolean, arrays).
"""

from __future__ import annotations

import json
import math
import re
import uuid
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

TEXT_CHARACTERS: Final = 32
_TIE_ASCII: Final = "\x7f"
_TIE: Final = "\U0010ffff"
_MILLISECOND: Final = timedelta(milliseconds=1)
_ZERO_BOUND: Final = re.compile(r":\s*-?0\.0\s*[,}]")
_NO_COUNT: Final = re.compile(r'("numRecords"\s*:\s*)null\b')
_TIGHT: Final = re.compile(r'"tightBounds"\s*:\s*true')


def statistics(rows: pa.Table, indexed: Sequence[str]) -> str:
    """JSON text for a file of these rows, none of which is dead."""
    seen = Seen(indexed)
    seen.take(rows)
    return seen.text()


class Seen:
    """Statistics of a file whose rows come in pieces. indexed: the columns to describe."""

    def __init__(self, indexed: Sequence[str]) -> None:
        self._columns = {name: _Column() for name in indexed}
        self._rows = 0

    def take(self, rows: pa.Table) -> None:
        """The file's next rows, none of which is dead."""
        self._rows += rows.num_rows
        for name, column in self._columns.items():
            column.take(rows.column(name))

    def text(self) -> str:
        """JSON text for the file as it is now."""
        lows, highs, nulls = [], [], []
        for name, column in self._columns.items():
            key = json.dumps(name, ensure_ascii=False)
            nulls.append(f"{key}:{column.nulls}")
            low, high = column.bounds()
            if low is not None and high is not None:
                lows.append(f"{key}:{low}")
                highs.append(f"{key}:{high}")
        return (
            f'{{"numRecords":{self._rows},"minValues":{{{",".join(lows)}}},"maxValues":{{{",".join(highs)}}},'
            f'"nullCount":{{{",".join(nulls)}}},"tightBounds":true}}'
        )


def loosened(text: str | None, rows: int) -> str:
    """The statistics of a file that gets a deletion vector: they then describe all of its rows, dead ones too.

    rows: in the file. Writers may leave statistics out, but not the number of rows of a file with a vector: readers
    refuse the table.
    """
    made = text or "{}"
    known = json.loads(made)
    if "numRecords" not in known:
        made = _with_member(made, f'"numRecords":{rows}')
    elif known["numRecords"] is None:
        made = _NO_COUNT.sub(rf"\g<1>{rows}", made)
    if known.get("tightBounds") is None:
        return _with_member(made, '"tightBounds":false')
    # As text, so that decimals keep their digits; quotes within a value are escaped and can't match.
    return _TIGHT.sub('"tightBounds":false', made)


def _with_member(text: str, member: str) -> str:
    inner = text.lstrip()[1:]
    return "{" + member + ("" if inner.lstrip().startswith("}") else ",") + inner


def with_both_zeros(text: str | None, floats: AbstractSet[str]) -> str | None:
    """Another writer's statistics. If a float's bound is a zero, it becomes the zero that covers
    both.

    floats: the columns of these types, as statistics name them.
    """
    if not text or not floats or not _ZERO_BOUND.search(text):
        return text
    mark = uuid.uuid4().hex  # numbers pass as marked texts, so that each keeps its digits
    known = json.loads(text, parse_float=lambda digits: mark + digits)
    for bounds, zero in (("minValues", "-0.0"), ("maxValues", "0.0")):
        of = known.get(bounds) or {}
        of |= {name: mark + zero for name in floats & of.keys() if of[name] in (f"{mark}0.0", f"{mark}-0.0")}
    made = json.dumps(known, ensure_ascii=False, separators=(",", ":"))
    return re.sub(f'"{mark}([^"]*)"', r"\1", made)


@dataclass(slots=True)
class _Column:
    """unknown: it has values of which no bounds can be told."""

    nulls: int = 0
    low: Any = None
    high: Any = None
    unknown: bool = False

    def take(self, column: pa.ChunkedArray) -> None:
        self.nulls += column.null_count
        if self.unknown or column.null_count == len(column):
            return
        extremes = _extremes(column)
        if extremes is None:
            self.unknown = True
            return
        self.low = extremes[0] if self.low is None else min(self.low, extremes[0])
        self.high = extremes[1] if self.high is None else max(self.high, extremes[1])

    def bounds(self) -> tuple[str | None, str | None]:
        """JSON text of (min, max); None for what has none."""
        if self.unknown or self.low is None:
            return None, None
        return _json(self.low, upper=False), _json(self.high, upper=True)


def _extremes(column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    """(min, max) of a column with a value; None without one."""
    kind = column.type
    if not _ordered(kind) or (pa.types.is_floating(kind) and pc.any(pc.is_nan(column)).as_py()):
        return None
    ends = pc.min_max(column)
    try:
        return ends["min"].as_py(), ends["max"].as_py()
    except (ValueError, OverflowError):  # a date that Python can't hold
        return None


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
        if value == 0:
            return "0.0" if upper else "-0.0"
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
