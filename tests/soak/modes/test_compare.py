"""The comparison of a soak of all modes would find what it looks for: the pasts of a row, its order and its times."""

from __future__ import annotations

from typing import Any

import pytest

from tests.soak.modes.compare import Span, _alike, _spans_in, _spans_of
from tests.soak.modes.pasts import Moment, Past
from tests.soak.modes.tables import NAMED

BEGIN = 1_700_000_000


def silver(text: str, begin: int, end: int | None) -> dict[str, Any]:
    """Seconds after BEGIN."""
    ticks = [None if at is None else ((BEGIN + at) * 1000) << 18 for at in (begin, end)]
    return {"id": 1, "t": text, "_tg_valid_from": ticks[0], "_tg_valid_to": ticks[1], "_tg_is_current": end is None}


@pytest.fixture
def past() -> Past:
    """Its text is a from second 0, b from 10; it is gone from 20, and c from 30."""
    past = Past(NAMED["notes_history"])
    before = None
    for number, (second, text) in enumerate([(0, "a"), (10, "b"), (20, None), (30, "c")]):
        after = None if text is None else {"id": 1, "t": text}
        past.change(before, after)
        past.end_transaction({(1,)}, Moment(number, BEGIN + second))
        before = after
    return past


def alike(past: Past, rows: list[dict[str, Any]]) -> bool:
    return _alike(_spans_in(past, rows)[1,], _spans_of(past)[1,])


def test_the_same_past_is_the_same(past: Past) -> None:
    assert alike(past, [silver("a", 0, 10), silver("b", 10, 20), silver("c", 30, None)])
    assert alike(past, [silver("c", 30, None), silver("a", 0, 4), silver("a", 4, 10), silver("b", 10, 20)])
    assert past.gone == {(1,): {"id": 1, "t": "b"}}


def test_a_table_that_is_made_again_takes_its_added_columns_from_rows_that_are_gone(past: Past) -> None:
    past.alter("ADD", "c1")
    past.empty(Moment(9, BEGIN + 40))
    assert past.gone == {(1,): {"id": 1, "t": "c", "c1": 7}}
    past.follow(())
    assert past.gone == {(1,): {"id": 1, "t": "c"}}
    past.alter("ADD", "c2")
    assert past.added == ["c2"]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([silver("a", 0, 10), silver("c", 30, None)], id="a version is missing"),
        pytest.param([silver("b", 0, 10), silver("a", 10, 20), silver("c", 30, None)], id="another order"),
        pytest.param([silver("a", 0, 10), silver("b", 10, 30), silver("c", 30, None)], id="it ended earlier"),
        pytest.param([silver("a", 0, 10), silver("b", 10, 20), silver("c", 30, 40)], id="it has no end"),
        pytest.param([silver("a", 0, 10), silver("b", 14, 20), silver("c", 30, None)], id="it began earlier"),
    ],
)
def test_another_past_is_seen(past: Past, rows: list[dict[str, Any]]) -> None:
    assert not alike(past, rows)


def test_a_version_of_its_own_time_is_near() -> None:
    assert _alike([Span("x", Moment(1, 10), None)], [Span("x", Moment(9, 11), None)])
