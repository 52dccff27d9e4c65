"""Keys that divide a table about evenly, by the optimizer's estimates of how many rows lie between two places.

In:  a table version with a key, of MySQL or MariaDB; a way to ask the server.
Out: keys, or their first columns; none where nothing lies between the ends, or it isn't known what does.

An estimate dives into the index: it costs some pages, whatever the table's size. What it says is exact for few pages,
and about double for more; and servers say no more than half of the table, or choose a scan and say all of it. So a
place isn't found by how many rows lie below it. The piece that seems to have most is cut where both sides seem to have
as many, then the next: what is large is cut again, and the smaller a piece is, the better is it known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tidegate.mysql.sql import quote_name
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import canonical
from tidegate.snapshot.chunks.spans import Key

Ask = Callable[[str], Sequence[Sequence[Any]]]

_RANGES_PER_PART: Final = 4  # at most: who is done with a small one takes the next
_EVEN: Final = 4  # a cut is good when its sides differ by less than this part of both
_TEXT_PLACES: Final = 8
_FIRST, _LAST = 0x20, 0x7E  # printable ASCII
_BYTES_PLACES: Final = 12
# Where EXPLAIN has its `rows`, by how many columns it has: MariaDB's and MySQL 5.6's, MySQL's with partitions, and with
# `filtered`, too.
_ROWS_IN_EXPLAIN: Final = {10: 8, 11: 9, 12: 9}


def even_bounds(version: TableVersion, ask: Ask, parts: int, rows_min: int) -> list[Key]:
    """Ascending keys, up to some for each of `parts` readers; none of a table with fewer rows than rows_min."""
    table = _Table(version, ask)
    total = table.rows("1")
    if total < max(parts, rows_min):
        return []
    pieces = [_Piece(total)]
    while len(pieces) < parts * _RANGES_PER_PART:
        at = max(range(len(pieces)), key=lambda n: pieces[n].rows)
        if pieces[at].rows <= max(total // parts, rows_min // 2):
            break
        pieces[at : at + 1] = _cut(table, pieces[at]) or [replace(pieces[at], rows=0)]
    return [piece.end for piece in pieces[:-1]]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows with a prefix of the key whose next column is above `after`, up to and including `upto`; "" for no bound.

    rows: about how many; 0 of one that can't be cut. end: the last key that it may have, () of the last piece.
    """

    rows: int
    prefix: Key = ()
    after: str = ""
    upto: str = ""
    end: Key = ()


class _Table:
    """What is asked about one table."""

    def __init__(self, version: TableVersion, ask: Ask) -> None:
        self._ask, self._place = ask, quote_name(version.database, version.table)
        columns = {column.id: column for column in version.columns}
        self.key = [columns[number] for number in version.key]
        self._index = f"INDEX ({quote_name(version.key_index)})" if version.key_index else ""

    def rows(self, condition: str) -> int:
        """By the optimizer's guess; MySQL dives into no index that it is forced to use."""
        hint = f" USE {self._index}" if self._index else ""
        said = self._ask(f"EXPLAIN FORMAT=TRADITIONAL SELECT 1 FROM {self._place}{hint} WHERE {condition}")
        return int(said[0][_ROWS_IN_EXPLAIN[len(said[0])]] or 0)

    def end(self, shown: str, name: str, condition: str, way: str) -> Any:
        """What the first row of a condition has, in the index's order or against it; None when there is none."""
        hint = f" FORCE {self._index}" if self._index else ""
        found = self._ask(f"SELECT {shown} FROM {self._place}{hint} WHERE {condition} ORDER BY {name} {way} LIMIT 1")
        return found[0][0] if found else None

    def condition(self, piece: _Piece, *more: str) -> str:
        """Of a piece's rows."""
        fixed = [f"{quote_name(one.name)} = {cell}" for one, cell in zip(self.key, piece.prefix, strict=False)]
        name = quote_name(self.key[len(piece.prefix)].name)
        bounds = [f"{name} {sign} {cell}" for sign, cell in ((">", piece.after), ("<=", piece.upto)) if cell]
        return " AND ".join([*fixed, *bounds, *more]) or "1"


def _cut(table: _Table, piece: _Piece) -> list[_Piece]:
    """A piece's two sides; none when it can't be cut. One value is cut by the key's next column."""
    column = table.key[len(piece.prefix)]
    name = quote_name(column.name)
    match canonical(column).kind:
        case Kind.INT | Kind.UNSIGNED_BIGINT:
            place = _between_numbers(table, piece, name)
        case Kind.BINARY | Kind.TEXT:
            place = _between_texts(table, piece, column, name)
        case _:
            return []
    if place is None:
        return []
    literal, is_only = place
    if is_only:
        inside = replace(piece, prefix=(*piece.prefix, literal), after="", upto="")
        return _cut(table, inside) if len(inside.prefix) < len(table.key) else []
    sides = [replace(piece, upto=literal, end=(*piece.prefix, literal)), replace(piece, after=literal)]
    return [replace(one, rows=table.rows(table.condition(one))) for one in sides]


def _between_numbers(table: _Table, piece: _Piece, name: str) -> tuple[str, bool] | None:
    """A value to cut behind, and whether there is no other."""
    ends = [table.end(name, name, table.condition(piece), way) for way in ("ASC", "DESC")]
    if None in ends:
        return None
    low, high = (int(cell) for cell in ends)
    return str(_even(table, piece, name, low, high, str)), low == high


def _between_texts(table: _Table, piece: _Piece, column: Column, name: str) -> tuple[str, bool] | None:
    """As of numbers; one that a row has."""

    def end(way: str, *more: str) -> bytes:
        cell = table.end(f"HEX({name})", name, table.condition(piece, *more), way)
        return bytes.fromhex(cell.decode("ascii") if isinstance(cell, bytes) else str(cell or ""))

    low, high = end("ASC"), end("DESC")
    scale, lowest = _Scale.of(column, low, high), _text_literal(column, low)
    if low == high or not end("ASC", f"{name} > {lowest}"):  # what a collation takes for equal is one value, too
        return lowest, True
    if table.rows(table.condition(piece, f"{name} = {lowest}")) * 2 >= piece.rows:
        return lowest, False
    if scale is None:
        return None
    place = _even(table, piece, name, scale.low, scale.high, scale.literal)
    # Most may share more places than the scale has. What is beside them goes first, then the scale is finer.
    for bound in (f"<= {scale.literal(place)}", f"<= {scale.literal(place + 1)}", f"< {_text_literal(column, high)}"):
        found = end("DESC", f"{name} {bound}")
        if found not in (b"", low, high):
            return _text_literal(column, found), False
    return lowest, False


def _even(table: _Table, piece: _Piece, name: str, low: int, high: int, literal: Callable[[int], str]) -> int:
    """Where about half of a piece's rows lie at or below; below `high`, when that isn't `low`."""
    while high - low > 1:
        middle = (low + high) // 2
        sides = [table.rows(table.condition(piece, f"{name} {sign} {literal(middle)}")) for sign in ("<=", ">")]
        if abs(sides[0] - sides[1]) * _EVEN <= sum(sides):
            return middle
        low, high = (low, middle) if sides[0] > sides[1] else (middle, high)
    return low


def _text_literal(column: Column, value: bytes) -> str:
    """Bytes as the server gave them."""
    return f"x'{value.hex()}'" if canonical(column).kind is Kind.BINARY else f"_{column.charset} x'{value.hex()}'"


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
        rest = bytes(reversed(digits)).rstrip(b" " if self._is_text else b"")
        return _text_literal(self._column, self._shared + rest)
