"""Patterns of a pipeline file without a table, as `check` names them."""

from __future__ import annotations

import time

from tests.kit.decoding import version
from tidegate.config import Tables
from tidegate.mysql.checking.idle_rules import idle_patterns, idle_rules
from tidegate.schema.model.columns import Column


def test_of_thousands_of_patterns_each_is_named_and_the_first_ones_get_a_near_name() -> None:
    tables = Tables(include=("shop.kept", *(f"shop.ordrs{number}" for number in range(2000))))
    kept = version("shop", "kept", [Column(1, "id", "int", nullable=False)], ["id"])
    shown = [("shop", "kept"), ("shop", "orders")]
    texts = list(idle_rules(tables, [kept], idle_patterns(tables, [kept]), shown))
    assert len(texts) == 2000
    assert texts[0] == "tables.include: no table matches shop.ordrs0, near shop.orders"
    assert [text.endswith(", near shop.orders") for text in texts] == [True] * 20 + [False] * 1980


def test_thousands_of_rules_for_plain_names_cost_no_look_at_each_table() -> None:
    """They were tried one by one on each table: 10,000 tables and 1,000 rules took half a minute, and a minute."""
    count = 3000
    names = [f"shop.t{number}" for number in range(count)]
    kept = [version("shop", f"t{n}", [Column(1, "id", "int", nullable=False)], ["id"]) for n in range(count)]
    tables = Tables.model_validate(
        {
            "include": names,
            "history": names,
            "routes": [{"match": name, "to": f"all.{name.partition('.')[2]}"} for name in names[:500]],
            "columns": [{"match": name, "exclude": ["note"]} for name in names[500:1000]],
            "clustering": [{"match": name, "columns": ["id"]} for name in names[500:1000]],
        }
    )
    began = time.process_time()
    texts = list(idle_rules(tables, kept, idle_patterns(tables, kept)))
    assert time.process_time() - began < 1.5
    assert len(texts) == 1000, "the routed tables' histories, and the columns that nobody has"
    assert tables.logical("shop", "t7") == ("all", "t7", True)
    assert tables.clustering_of("shop", "t600") == ("id",)


def test_a_name_with_a_sign_of_patterns_is_read_as_the_pattern_that_it_is() -> None:
    tables = Tables(include=("shop.my$table", "shop.*", "sh.p.t.?"))
    kept = [version("shop", name, [Column(1, "id", "int", nullable=False)], ["id"]) for name in ("my$table", "t1")]
    assert idle_patterns(tables, kept) == ["shop.my$table", "sh.p.t.?"]


def test_a_pattern_of_versions_by_window_is_for_tables_with_history_alone() -> None:
    tables = Tables(include=("shop.*",), history=("shop.kept",), history_by_window=("shop.*", "shop.plain"))
    both = [version("shop", name, [Column(1, "id", "int", nullable=False)], ["id"]) for name in ("kept", "plain")]
    assert list(idle_rules(tables, both, [])) == ["tables.history_by_window: no table with history matches shop.plain"]
    assert [tables.one_version_per_window("shop", name) for name in ("kept", "plain")] == [True, False]
