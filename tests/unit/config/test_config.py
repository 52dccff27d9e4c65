"""The pipeline file: what a key may hold."""

from __future__ import annotations

import pytest

from tidegate.config import parse
from tidegate.errors import ConfigError

BASE = "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables: {include: ['a.*']}\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [("", "null"), ("apply: {zero_dates: null}", "null"), ("apply: {zero_dates: error}", "error")],
)
def test_zero_dates_are_null_unless_the_file_says_error(text: str, found: str) -> None:
    assert parse(BASE + text, where="p.yaml").apply.zero_dates == found


def test_another_word_for_zero_dates_is_refused_with_its_line() -> None:
    with pytest.raises(ConfigError, match=r"p\.yaml:5: apply\.zero_dates: input should be 'null' or 'error'"):
        parse(BASE + "apply: {zero_dates: keep}", where="p.yaml")


@pytest.mark.parametrize(
    ("text", "asks"),
    [("", False), ("xa: {orphans: park}", False), ("xa: {orphans: ask}", True), ("ddl: {drop_table: ask}", True)],
)
def test_a_pipeline_asks_a_person_where_its_file_says_so(text: str, asks: bool) -> None:
    assert parse(BASE + text, where="p.yaml").asks is asks


@pytest.mark.parametrize(
    ("table", "follows"),
    [
        ("_orders_gho", True),
        ("_orders_new", True),
        ("__orders_new", True),  # pt-online-schema-change: the first name was taken
        ("__orders_gho", False),
        ("_orders_ghc", False),
        ("_orders_del", False),
        ("_orders_old", False),
        ("_other_gho", False),
        ("orders_new", False),
        ("_secret_new", False),
        ("_out_new", False),
    ],
)
def test_the_shadow_of_a_kept_table_is_known_by_its_name(table: str, follows: bool) -> None:
    names = "include: ['shop.orders', 'shop.secret', 'shop.out'], exclude: ['shop.secret', 'shop._out_new']"
    text = f"pipeline: p\nlake: {{path: /x}}\nsources: {{s: {{conn_id: c, flavour: mysql}}}}\ntables: {{{names}}}\n"
    found = parse(text, where="p.yaml").tables
    assert found.shadows("shop", table) is follows
    assert not found.shadows("other", table)
