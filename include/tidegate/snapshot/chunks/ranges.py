"""Ranges of about equal size in which a table is read by several readers at once, found without a scan.

In:  a table version with a key, or a TiDB's without one; a way to ask the server.
Out: Spans that touch and together are the whole table.

An index tells its ends at once, and integers are divided by arithmetic: uneven where numbers are missing, which costs
only that some reader has less to do. Other keys are divided where the server itself has rows: a place between the ends
is guessed, EXPLAIN's estimates (dives into the index) say how much lies before it, and the row that is there makes it
real. A key that can't be guessed between (dates, decimals, UUID, ENUM, text whose ends aren't ASCII) is one range.

A TiDB keeps rows in regions of about one size (sampled.py): where a table has enough of them, their first rows are the
bounds, of whatever key, and however its numbers lie (AUTO_RANDOM, SHARD_ROW_ID_BITS). Where it has few, integers are
divided by arithmetic, of which the bits that scatter them are the highest, and other keys as the regions lie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

from tidegate.mysql.sql import quote_name
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import canonical
from tidegate.snapshot.chunks.sampled import has_rowids, region_starts
from tidegate.snapshot.chunks.spans import WHOLE, Key, Span
from tidegate.tidb.jobs import ROWID_NAME

Ask = Callable[[str], Sequence[Sequence[Any]]]

_PROBES: Final = 7  # per bound: to within a hundredth of the table
_TEXT_PLACES: Final = 8
_REGIONS_PER_PART: Final = 2  # with fewer of a TiDB's, ranges are as uneven as regions are
# Where EXPLAIN has its `rows`, by how many columns it has: MariaDB's and MySQL 5.6's, MySQL's with partitions, and with
# `filtered`, too.
_ROWS_IN_EXPLAIN: Final = {10: 8, 11: 9, 12: 9}
_FIRST, _LAST = 0x20, 0x7E  # printable ASCII
_BYTES_PLACES: Final = 12


def divide(version: TableVersion, ask: Ask, parts: int) -> tuple[Span, ...]:
    """At most `parts` ranges; (WHOLE,) where it can't be divided. ask: runs a SELECT in the session of SESSION."""
    if parts < 2:
        return (WHOLE,)
    if version.origin:
        return _touching(_in_tidb(version, ask, parts))
    lead = next(column for column in version.columns if column.id == version.key[0])
    match canonical(lead).kind:
        case Kind.INT | Kind.UNSIGNED_BIGINT:
            bounds = _by_arithmetic(version, lead.name, ask, parts)
        case Kind.BINARY | Kind.TEXT:
            bounds = _by_estimates(version, lead, ask, parts)
        case _:
            bounds = []
    return _touching(bounds)


def _touching(bounds: Sequence[Key]) -> tuple[Span, ...]:
    distinct = list(dict.fromkeys(bounds))
    return tuple(Span(after, upto) for after, upto in pairwise([None, *distinct, None]))


def _in_tidb(version: TableVersion, ask: Ask, parts: int) -> list[Key]:
    """Its EXPLAIN doesn't dive, and its statistics may be old or none. The first region's first row divides nothing."""
    starts = region_starts(version, ask)[1:]
    lead = next((column for column in version.columns if column.id == version.key[0]), None) if version.key else None
    numbers = lead is None or canonical(lead).kind in (Kind.INT, Kind.UNSIGNED_BIGINT)
    if numbers and len(starts) < _REGIONS_PER_PART * parts and (lead is not None or has_rowids(version)):
        return _by_arithmetic(version, ROWID_NAME if lead is None else lead.name, ask, parts)
    return [starts[len(starts) * n // parts] for n in range(1, parts)] if starts else []


def _place(version: TableVersion) -> str:
    return quote_name(version.database, version.table)


def _by_arithmetic(version: TableVersion, lead: str, ask: Ask, parts: int) -> list[Key]:
    name = quote_name(lead)
    ((low, high),) = ask(f"SELECT MIN({name}), MAX({name}) FROM {_place(version)}")
    if low is None:
        return []
    first, last = int(low), int(high)
    return [(str(first + (last - first) * n // parts),) for n in range(1, parts) if last - first >= parts]


def _by_estimates(version: TableVersion, lead: Column, ask: Ask, parts: int) -> list[Key]:
    """Bounds by bisecting between the ends."""
    name, place = quote_name(lead.name), _place(version)
    ends = [ask(f"SELECT HEX({name}) FROM {place} ORDER BY {name} {way} LIMIT 1") for way in ("ASC", "DESC")]
    if not all(ends):
        return []
    scale = _Scale.of(lead, *(bytes.fromhex(_text(rows[0][0])) for rows in ends))
    total = _estimate(ask, version, "1")
    found: list[Key] = []
    if scale is None or total < parts:
        return found
    for n in range(1, parts):
        low, high = scale.low, scale.high
        for _ in range(_PROBES):
            middle = (low + high) // 2
            if _estimate(ask, version, f"{name} <= {scale.literal(middle)}") < total * n // parts:
                low = middle
            else:
                high = middle
        real = ask(f"SELECT HEX({name}) FROM {place} WHERE {name} >= {scale.literal(high)} ORDER BY {name} LIMIT 1")
        if real:
            found.append((scale.of_row(bytes.fromhex(_text(real[0][0]))),))
    return found


def _estimate(ask: Ask, version: TableVersion, condition: str) -> int:
    """Rows, by the optimizer's guess; MySQL dives into no index that it is forced to use."""
    index = next((one.name for one in version.indexes if one.whole and one.parts == version.key), "")
    hint = f" USE INDEX ({quote_name(index)})" if index else ""
    said = ask(f"EXPLAIN FORMAT=TRADITIONAL SELECT 1 FROM {_place(version)}{hint} WHERE {condition}")
    rows = said[0][_ROWS_IN_EXPLAIN[len(said[0])]]
    return int(rows or 0)


def _text(cell: Any) -> str:
    return cell.decode("ascii") if isinstance(cell, bytes) else str(cell)


class _Scale:
    """Keys of bytes as numbers: what the two ends share is left out, then so many places."""

    def __init__(self, column: Column, shared: bytes, ends: tuple[bytes, bytes]) -> None:
        kind = canonical(column).kind
        self._column, self._shared, self._is_text = column, shared, kind is not Kind.BINARY
        self._base = _LAST - _FIRST + 1 if self._is_text else 256
        self._places = _TEXT_PLACES if self._is_text else _BYTES_PLACES
        self.low, self.high = (self._number(end[len(shared) :]) for end in ends)

    @classmethod
    def of(cls, column: Column, low: bytes, high: bytes) -> _Scale | None:
        """None where nothing lies between, or it isn't known what does."""
        kind = canonical(column).kind
        wide = kind is Kind.TEXT and column.charset in ("utf16", "utf16le", "utf32", "ucs2")
        if wide or (kind is not Kind.BINARY and not (low.isascii() and high.isascii())):
            return None
        count = next((n for n, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
        found = cls(column, low[:count], (low, high))
        return found if found.low < found.high else None

    def _number(self, rest: bytes) -> int:
        found = 0
        for n in range(self._places):
            digit = rest[n] if n < len(rest) else 0
            digit = min(max(digit, _FIRST), _LAST) - _FIRST if self._is_text else digit
            found = found * self._base + digit
        return found

    def literal(self, number: int) -> str:
        """The key at a number."""
        digits = []
        for _ in range(self._places):
            number, digit = divmod(number, self._base)
            digits.append(digit + _FIRST if self._is_text else digit)
        return self.of_row(self._shared + bytes(reversed(digits)).rstrip(b" " if self._is_text else b""))

    def of_row(self, value: bytes) -> str:
        """Bytes as the server gave them, as a literal."""
        kind = canonical(self._column).kind
        if kind is Kind.BINARY:
            return f"x'{value.hex()}'"
        return f"_{self._column.charset} x'{value.hex()}'"
