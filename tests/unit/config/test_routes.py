"""Routes: which logical table a physical one flows into, by a name or by what the groups of `match` found."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tidegate import config
from tidegate.config import Route


def tables(*routes: tuple[str, str]) -> config.Tables:
    return config.Tables(include=("*.*",), routes=tuple(Route(match=match, to=to) for match, to in routes))


@pytest.mark.parametrize(
    ("match", "to", "table", "logical"),
    [
        (r"shop_\d+.orders_\d+", "shop.orders", "shop_1.orders_22", ("shop", "orders", True)),
        (r"shop_\d+.(.*)", r"shop.\1", "shop_1.orders", ("shop", "orders", True)),
        (r"(\w+)_\d+.(\w+?)_\d+", r"\1.\2", "shop_1.items_2", ("shop", "items", True)),
        (r"(?P<of>\w+)_\d+.(?P<name>.*)", r"\g<of>.all_\g<name>", "shop_1.items", ("shop", "all_items", True)),
        (r"shop(_\d+)?.orders", r"shop.orders\1", "shop.orders", ("shop", "orders", True)),  # a group that took no part
        (r"shop_\d+.t(\d*)", r"shop.\1", "shop_1.t", ("shop_1", "t", False)),  # no name is left
        (r"shop_\d+.(.*)", r"shop.\1", "shop_1.a.b", ("shop", "a.b", True)),  # a dot in a name divides nothing
        (r"shop_\d+.(.*)", r"shop.\1", "crm_1.orders", ("crm_1", "orders", False)),
        (r"(.*)_(\d+).(\w)(\w)(\w)(\w)(\w)(\w)(\w)(\w)", r"\1.\10_\2", "d_7.abcdefgh", ("d", "h_7", True)),
    ],
)
def test_a_table_flows_where_its_route_says(match: str, to: str, table: str, logical: tuple[str, str, bool]) -> None:
    database, name = table.split(".", 1)
    assert tables((match, to)).logical(database, name) == logical


def test_the_first_route_that_matches_and_gives_a_name_counts() -> None:
    found = tables((r"s_\d.t(\d*)", r"s.\1"), (r"s_\d.t", "s.rest"), (r"s_\d.(.*)", r"late.\1"))
    assert found.logical("s_1", "t9") == ("s", "9", True)
    assert found.logical("s_1", "t") == ("s", "rest", True)
    assert found.logical("s_1", "u") == ("late", "u", True)


@pytest.mark.parametrize(
    ("match", "to", "told"),
    [
        (r"shop_\d+.orders", r"shop.\1", r"\\1 is no group of match .*, which has 0"),
        (r"shop_(\d+).(.*)", r"shop.\3", r"\\3 is no group of match .*, which has 2"),
        (r"shop_(\d+).(.*)", r"shop.\g<table>", r"\\g<table> must name one group of match"),
        (r"(?P<a>x).(?P<a>y)", r"shop.\g<a>", r"\\g<a> must name one group of match"),
        (r"shop_(\d+).(.*)", r"shop.\d+", r"a backslash names a group of match"),
        (r"shop_(\d+).(.*)", r"shop.\0", r"a backslash names a group of match"),
    ],
)
def test_a_name_that_cannot_be_made_is_refused_when_the_file_is_read(match: str, to: str, told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        Route(match=match, to=to)
