"""Whoever waits for hours that can't come is told so by the pipeline file, not by silence.

In:  pipeline files.
Out: what is refused.
"""

from __future__ import annotations

import pytest

from tidegate.config import parse
from tidegate.errors import ConfigError

TEXT = r"""
pipeline: shop
lake: {path: lakes/shop}
sources: {db: {conn_id: shop_db, flavour: mariadb}}
tables:
  include: ["shop.*", 'my\.shop.*']
  exclude: ["shop.log"]
  routes:
    - {match: 'shop.orders_(\d+)', to: shop.orders}
    - {match: '(shop).(item)s', to: '\1_all.\2s'}
"""


def with_hours(tables: str, more: str = "") -> str:
    return f"{TEXT}completeness: {{hourly: true, tables: [{tables}]{more}}}\n"


@pytest.mark.parametrize(
    "name", ["shop.orders", "shop.customers", "shop_all.items", "shop.a.b", "shop.order_s", "my.shop.t"]
)
def test_a_table_that_may_be_in_silver_has_hours(name: str) -> None:
    assert parse(with_hours(name), where="p").completeness.tables == (name,)


@pytest.mark.parametrize("name", ["other.orders", "shop.log", "shop.orders_7", "shop_all.item", "' shop.orders'"])
def test_a_table_that_is_never_in_silver_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="is no table of silver by"):
        parse(with_hours(name), where="p")


def test_verified_hours_need_verifications() -> None:
    text = with_hours("shop.orders", ", verified: true")
    with pytest.raises(ConfigError, match=r"needs verify\.each_table_hours"):
        parse(text, where="p")
    assert parse(f"{text}verify: {{each_table_hours: 24}}\n", where="p").completeness.verified


@pytest.mark.parametrize("pattern", ["'shop.*'", "'shop.pay.*'", "'.*_eu.orders'"])
def test_tables_may_be_given_by_patterns(pattern: str) -> None:
    assert parse(f"{TEXT}completeness: {{hourly: true, include: [{pattern}]}}\n", where="p").completeness.include


@pytest.mark.parametrize(("part", "words"), [
    ("hourly: true, include: [shop]", "must be database.table"),
    ("hourly: true, include: ['shop.(']", "is not a regular expression"),
    ("include: ['shop.*']", "have an effect with hourly"),
])  # fmt: skip
def test_a_pattern_without_effect_is_refused(part: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse(f"{TEXT}completeness: {{{part}}}\n", where="p")
