"""Patterns of a pipeline file without a table, as `check` names them."""

from __future__ import annotations

from tests.kit.decoding import version
from tidegate.config import Tables
from tidegate.mysql.idle_rules import idle_rules
from tidegate.schema.model.columns import Column


def test_of_thousands_of_patterns_each_is_named_and_the_first_ones_get_a_near_name() -> None:
    tables = Tables(include=("shop.kept", *(f"shop.ordrs{number}" for number in range(2000))))
    kept = version("shop", "kept", [Column(1, "id", "int", nullable=False)], ["id"])
    texts = list(idle_rules(tables, [kept], [("shop", "kept"), ("shop", "orders")]))
    assert len(texts) == 2000
    assert texts[0] == "tables.include: no table matches shop.ordrs0, near shop.orders"
    assert [text.endswith(", near shop.orders") for text in texts] == [True] * 20 + [False] * 1980
