"""Tables that a person names, by name or by pattern."""

from __future__ import annotations

import pytest

from tidegate.config.table_keys.named_tables import named_tables
from tidegate.errors import UsageError

KNOWN = ["shop.orders", "shop.items", "shop.tmp_1", "crm.orders", "crm.a+b", "shop.order$", "a.b.c"]


def named(*given: str) -> set[str]:
    return set(named_tables(given, KNOWN, where="shop", lacks="there is no table {}", remedy="look"))


def test_a_name_is_that_table_and_a_pattern_all_that_it_matches() -> None:
    assert named("shop.orders") == {"shop.orders"}
    assert named("shop.tmp_.*", "(shop|crm).orders") == {"shop.tmp_1", "shop.orders", "crm.orders"}
    assert named("*.*") == set(KNOWN)
    assert named(r"shop.tmp_\d") == {"shop.tmp_1"}
    assert named() == set()


def test_a_tables_own_name_wins_over_what_it_would_match() -> None:
    assert named("crm.a+b") == {"crm.a+b"}
    assert named("shop.order$") == {"shop.order$"}
    assert named("a.b.c") == {"a.b.c"}


def test_a_name_that_divides_at_another_dot_is_matched_there() -> None:
    assert named(r"a\.b.*") == {"a.b.c"}
    assert named("a.*") == {"a.b.c"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("shop.ordres", "there is no table shop.ordres; did you mean shop.orders? look"),
        ("shop.or.ers", "there is no table shop.or.ers; did you mean shop.orders? look"),
        ("shop.items_.*", "there is no table shop.items_.*; did you mean shop.items? look"),
        ("zz_.*.*", "there is no table zz_.*.*; look"),
        ("nothing+", "must be database.table"),
        ("shop.(orders", "pattern 'shop.(orders' "),
    ],
)
def test_what_is_none_and_matches_none_is_told_with_the_nearest(given: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        named("shop.orders", given)
    assert told in str(caught.value)
