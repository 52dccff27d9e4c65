"""Two streams of rows, in any order: are they the same multiset, and if not, which rows differ?

In:  for each side a function that reads its rows, as tuples of cells (cells.py), as often as asked.
Out: counts, hashes, and up to some differing rows with their keys.

Memory is bounded whatever the tables' size: a first pass sums 128-bit row hashes over 4096 buckets of keys; only when
the sums differ, a second pass keeps the rows of a few differing buckets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from tidegate.limits import VERIFY_ROWS_MAX

Row = tuple[Any, ...]
Rows = Callable[[], Iterator[Row]]

_BUCKETS: Final = 4096
_MODULUS: Final = 1 << 128


@dataclass(slots=True)
class Side:
    """What the first pass found on one side. buckets: sum of hashes per bucket."""

    rows: int = 0
    buckets: list[int] = field(default_factory=lambda: [0] * _BUCKETS)

    @property
    def hash(self) -> str:
        """32 hex digits, the same for the same rows in any order."""
        return f"{sum(self.buckets) % _MODULUS:032x}"


@dataclass(frozen=True, slots=True)
class Compared:
    """differing: (key, row of the source or None, row of silver or None)."""

    source: Side
    silver: Side
    differing: tuple[tuple[Row, Row | None, Row | None], ...] = ()

    @property
    def equal(self) -> bool:
        return self.source == self.silver


def compare(source: Rows, silver: Rows, key: Sequence[int], differences_max: int) -> Compared:
    """Compare all rows. key: indexes of the key's cells; () takes the whole row as its key."""
    sides = _sum(source, key), _sum(silver, key)
    compared = Compared(*sides)
    if compared.equal:
        return compared
    differing = [n for n in range(_BUCKETS) if sides[0].buckets[n] != sides[1].buckets[n]]
    # Every differing bucket holds a differing row: so many of them are enough.
    wanted = frozenset(differing[:differences_max])
    kept = _keep(source, key, wanted), _keep(silver, key, wanted)
    found = _differing(*kept, key) if max(map(len, kept)) < VERIFY_ROWS_MAX else []
    return Compared(*sides, tuple(found[:differences_max]))


def _digest(cells: Row) -> int:
    """Of a repr: cells are int, str, float, bytes or None, whose reprs tell them apart."""
    return int.from_bytes(blake2b(repr(cells).encode("utf-8", "surrogatepass"), digest_size=16).digest(), "big")


def _key_of(row: Row, key: Sequence[int]) -> Row:
    return tuple(row[index] for index in key) if key else row


def _sum(rows: Rows, key: Sequence[int]) -> Side:
    side = Side()
    buckets = side.buckets
    for row in rows():
        digest = _digest(row)
        bucket = (_digest(_key_of(row, key)) if key else digest) % _BUCKETS
        buckets[bucket] = (buckets[bucket] + digest) % _MODULUS
        side.rows += 1
    return side


def _keep(rows: Rows, key: Sequence[int], wanted: frozenset[int]) -> Counter[Row]:
    kept: Counter[Row] = Counter()
    for row in rows():
        if _digest(_key_of(row, key)) % _BUCKETS in wanted:
            kept[row] += 1
            if len(kept) >= VERIFY_ROWS_MAX:
                break
    return kept


def _differing(
    source: Counter[Row], silver: Counter[Row], key: Sequence[int]
) -> list[tuple[Row, Row | None, Row | None]]:
    """Rows that one side has more often than the other, paired by key where the table has one."""
    ours, theirs = list((source - silver).elements()), list((silver - source).elements())
    if not key:
        return [(row, row, None) for row in ours] + [(row, None, row) for row in theirs]
    found: dict[Row, list[Row | None]] = {}
    extra: list[tuple[Row, Row | None, Row | None]] = []
    for at, rows in enumerate((ours, theirs)):
        for row in rows:
            pair = found.setdefault(_key_of(row, key), [None, None])
            if pair[at] is None:
                pair[at] = row
            else:  # a key twice on one side: silver holds a duplicate
                extra.append((_key_of(row, key), None, row) if at else (_key_of(row, key), row, None))
    return [(name, pair[0], pair[1]) for name, pair in found.items()] + extra
