"""The comparison of two streams of rows, against Python's own multisets."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tidegate.verify.comparison import Row, compare


def _rows(count: int, seed: int = 1) -> list[Row]:
    values = random.Random(seed)
    return [(n, values.choice([None, "", "a", "b"]), values.random()) for n in range(count)]


def test_order_does_not_matter() -> None:
    rows = _rows(500)
    assert compare(lambda: iter(rows), lambda: iter(rows[::-1]), (0,), 10).equal


def test_values_that_print_alike_are_not_alike() -> None:
    for one, other in ((1, "1"), (None, "None"), (b"a", "a"), ("a", "a "), (1.0, 1), (("a", "b"), ("a', 'b",))):
        ours, theirs = (one if isinstance(one, tuple) else (one,)), (other if isinstance(other, tuple) else (other,))
        assert not compare(lambda r=ours: iter([r]), lambda r=theirs: iter([r]), (), 1).equal


def test_two_equal_rows_are_not_none_and_not_one() -> None:
    """An exclusive or of hashes would miss them, but for the number of rows."""
    row, other = ("a",), ("b",)
    assert not compare(lambda: iter([row, row]), lambda: iter([other, other]), (), 1).equal
    assert not compare(lambda: iter([row, row]), lambda: iter([]), (), 1).equal
    assert not compare(lambda: iter([row, row]), lambda: iter([row]), (), 1).equal


@pytest.mark.parametrize("key", [(0,), (1, 0), ()])
@pytest.mark.parametrize("seed", range(5))
def test_the_differing_rows_are_those_that_multisets_say(key: tuple[int, ...], seed: int) -> None:
    source = _rows(300)
    silver = list(source)
    change = random.Random(seed)
    for _ in range(4):
        n = change.randrange(len(silver))
        silver[n] = (*silver[n][:2], change.random())
    del silver[change.randrange(len(silver))]
    found = compare(lambda: iter(source), lambda: iter(silver), key, 100)
    assert not found.equal
    ours = Counter(row for _, row, _ in found.differing if row is not None)
    theirs = Counter(row for _, _, row in found.differing if row is not None)
    assert ours == Counter(source) - Counter(silver)
    assert theirs == Counter(silver) - Counter(source)


def test_when_everything_differs_only_so_many_rows_are_listed() -> None:
    found = compare(lambda: iter(_rows(2000)), lambda: iter([]), (0,), 10)
    assert len(found.differing) == 10
    assert (found.source.rows, found.silver.rows) == (2000, 0)
