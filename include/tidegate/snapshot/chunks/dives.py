"""Keys to divide a table about evenly, by the optimizer's estimates of rows between two places.

In:  a table version with a key, of MySQL or MariaDB; a way to ask the server.
Out: keys of rows, or their first columns; none where nothing lies between the ends.

For an estimate the optimizer reads a few pages of the index (a dive), whatever the table's size. Its answer is exact
for few pages, and about double for more. Some servers never answer more than half of the table; others choose a scan
and answer all of it. Therefore an estimate of the rows below a place can't find the place. Instead the piece that seems
largest is cut where both sides seem equal, then the next one. The smaller a piece is, the better its size is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tidegate.mysql.sql_text.sql import ByNumber, compared, quote_name
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import canonical
from tidegate.snapshot.chunks.alphabets import Alphabets
from tidegate.snapshot.chunks.key_columns import compared_as, key_of, literal_sql
from tidegate.snapshot.chunks.scales import Scale, scale_of
from tidegate.snapshot.chunks.spans import Key

Ask = Callable[[str], Sequence[Sequence[Any]]]

_RANGES_PER_PART: Final = 4  # at most: a reader that ends a small range takes the next one
_EVEN: Final = 4  # a cut is good when its sides differ by less than this part of both
# Where EXPLAIN has its `rows`, by how many columns it has: MariaDB's and MySQL 5.6's, MySQL's with partitions, and with
# `filtered`, too.
_ROWS_IN_EXPLAIN: Final = {10: 8, 11: 9, 12: 9}


def even_bounds(version: TableVersion, ask: Ask, parts: int, rows_min: int) -> list[Key]:
    """Ascending keys, at most a few for each of `parts` readers; none for a table with fewer than rows_min rows."""
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
    """Rows with a prefix of the key whose next column is above `after`, up to and including `upto`;
    "" for no bound.

    rows: about how many; 0 for an indivisible one. end: its last possible key, () for the last
    piece.
    """

    rows: int
    prefix: Key = ()
    after: str = ""
    upto: str = ""
    end: Key = ()


class _Table:
    """The questions about one table."""

    def __init__(self, version: TableVersion, ask: Ask) -> None:
        self._ask, self._place = ask, quote_name(version.database, version.table)
        self.key, self._alphabets = key_of(version), Alphabets(ask)
        self._index = f"INDEX ({quote_name(version.key_index)})" if version.key_index else ""

    def rows(self, condition: str) -> int:
        """The rows by the optimizer's guess; MySQL dives into no index it is forced to use."""
        hint = f" USE {self._index}" if self._index else ""
        said = self._ask(f"EXPLAIN FORMAT=TRADITIONAL SELECT 1 FROM {self._place}{hint} WHERE {condition}")
        return int(said[0][_ROWS_IN_EXPLAIN[len(said[0])]] or 0)

    def end(self, piece: _Piece, way: str, *more: str) -> str | None:
        """The first value of a piece's rows under more conditions, in the index's order or against
        it; None: none meets them.
        """
        column, hint = self.key[len(piece.prefix)], f" FORCE {self._index}" if self._index else ""
        rows = self._ask(
            f"SELECT {literal_sql(column)} FROM {self._place}{hint} WHERE {self.condition(piece, *more)}"
            f" ORDER BY {quote_name(column.name)} {way} LIMIT 1"
        )
        return str(rows[0][0]) if rows else None

    def condition(self, piece: _Piece, *more: str) -> str:
        """The condition for a piece's rows."""
        columns = [compared_as(column) for column in self.key]
        fixed = [compared(column, "=", cell) for column, cell in zip(columns, piece.prefix, strict=False)]
        here = columns[len(piece.prefix)]
        bounds = [compared(here, sign, cell) for sign, cell in ((">", piece.after), ("<=", piece.upto)) if cell]
        return " AND ".join([*fixed, *bounds, *more]) or "1"

    def scale(self, column: Column, low: str, high: str) -> Scale | None:
        is_text = canonical(column).kind is Kind.TEXT
        return self._alphabets.scale(column, low, high) if is_text else scale_of(column, low, high)


def _cut(table: _Table, piece: _Piece) -> list[_Piece]:
    """The two sides of a piece; [] if it can't be cut. A piece with a single value is cut by the
    key's next column.
    """
    column = table.key[len(piece.prefix)]
    place = _between(table, piece, column) if literal_sql(column) else None
    if place is None:
        return []
    literal, is_only = place
    if is_only:
        inside = replace(piece, prefix=(*piece.prefix, literal), after="", upto="")
        return _cut(table, inside) if len(inside.prefix) < len(table.key) else []
    sides = [replace(piece, upto=literal, end=(*piece.prefix, literal)), replace(piece, after=literal)]
    return [replace(side, rows=table.rows(table.condition(side))) for side in sides]


def _between(table: _Table, piece: _Piece, column: Column) -> tuple[str, bool] | None:
    """A value that a row has to cut after, and whether there is no other."""
    low, high, here = table.end(piece, "ASC"), table.end(piece, "DESC"), compared_as(column)
    if low is None or high is None:
        return None
    if low == high or table.end(piece, "ASC", compared(here, ">", low)) is None:
        return low, True  # values that a collation counts as equal are one value
    if table.rows(table.condition(piece, compared(here, "=", low))) * 2 >= piece.rows:
        return low, False
    scale = table.scale(column, low, high)
    if scale is None:
        return None
    place = _even(table, piece, here, scale)
    # Most may share more places than the scale has. What is beside them goes first, then the scale is finer.
    guesses = [("<=", scale.literal(place)), ("<=", scale.literal(place + 1)), ("<", high)]
    for sign, guess in guesses:
        value = table.end(piece, "DESC", compared(here, sign, guess))
        if value not in (None, low, high):
            return str(value), False
    return low, False


def _even(table: _Table, piece: _Piece, here: str | ByNumber, scale: Scale) -> int:
    """Where about half of a piece's rows lie at or below; below the scale's end."""
    low, high = scale.low, scale.high
    while high - low > 1:
        middle = (low + high) // 2
        conditions = [table.condition(piece, compared(here, sign, scale.literal(middle))) for sign in ("<=", ">")]
        sides = [table.rows(condition) for condition in conditions]
        if abs(sides[0] - sides[1]) * _EVEN <= sum(sides):
            return middle
        low, high = (low, middle) if sides[0] > sides[1] else (middle, high)
    return low
