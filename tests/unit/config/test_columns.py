"""Rules for columns: which of a table's columns silver has, by the pipeline file."""

from __future__ import annotations

import pytest

from tidegate import config
from tidegate.errors import ConfigError

FILE = """
pipeline: p
lake: {path: x}
sources: {s: {conn_id: c, flavour: mysql}}
tables:
  include: ["shop.*"]
  columns:
    - {match: "shop.customers", exclude: [ssn, "note.*"]}
    - {match: "shop.c.*", exclude: [blob]}
    - {match: "shop.events", include: [kind, "at_.*"]}
    - {match: "shop._under", exclude: [own]}
  routes: [{match: 'shop.shard_\\d', to: shop.c_all}]
"""


def kept(table: str) -> config.KeptColumns:
    return config.parse(FILE, where="p.yaml").tables.columns_of("shop", table)


def test_other_tables_have_all_columns() -> None:
    assert not kept("orders")
    assert kept("orders").take("ssn", of_key=False)
    assert config.parse(FILE, where="p.yaml").tables.columns_of("other", "customers") == config.ALL


@pytest.mark.parametrize(
    ("column", "has"),
    [
        ("ssn", False),
        ("SSN", False),
        ("ssn2", True),
        ("notes", False),
        ("note\nof", False),
        ("a_note", True),
        ("blob", False),
        ("id", True),
    ],
)
def test_a_column_is_in_silver_when_no_rule_leaves_it_out(column: str, has: bool) -> None:
    assert kept("customers").take(column, of_key=False) is has
    assert kept("customers").take(column, of_key=True) is has, "a key that is excluded is an error, and no exception"


@pytest.mark.parametrize(
    ("column", "of_key", "has"),
    [("kind", False, True), ("at_us", False, True), ("id", False, False), ("id", True, True), ("Kind", False, True)],
)
def test_what_is_included_comes_with_the_key(column: str, of_key: bool, has: bool) -> None:
    assert kept("events").take(column, of_key=of_key) is has


@pytest.mark.parametrize(
    "table",
    ["_customers_gho", "_customers_new", "__customers_new", "_customers_old", "_customers_20261126120000_del"],
)
def test_tables_beside_a_table_follow_its_rules(table: str) -> None:
    assert not kept(table).take("ssn", of_key=False)


@pytest.mark.parametrize("table", ["_shard_1_gho", "_shard_1_new", "__shard_1_old", "_shard_1", "_shard_1_ghc"])
def test_tables_beside_a_shard_follow_the_rules_of_the_table_that_it_flows_into(table: str) -> None:
    assert kept(table).take("blob", of_key=False) is (table == "_shard_1")


@pytest.mark.parametrize("table", ["__under_gho", "___under_new", "__under_20261126120000_del"])
def test_tables_beside_one_that_begins_with_an_underscore_follow_its_rules(table: str) -> None:
    assert not kept(table).take("own", of_key=False)


def test_a_table_that_only_looks_like_one_beside_another_has_its_own_rules() -> None:
    assert not kept("customers_new").take("blob", of_key=False), "it matches shop.c.*"
    assert kept("customers_new").take("ssn", of_key=False)


def test_tables_beside_a_table_have_its_rows_but_ghosts_log_has_all_of_its_own() -> None:
    rules = "  rows: [{match: shop.t, where: a = 1}, {match: shop.odd_ghc, where: a = 2}]\n"
    tables = config.parse(FILE + rules, where="p.yaml").tables
    names = ("t", "_t_gho", "_t_ghc", "u", "odd_ghc")
    conditions = [str(tables.columns_of("shop", name).condition) for name in names]
    assert conditions == ["`a` = 1", "`a` = 1", "None", "None", "`a` = 2"]


CLUSTERED = """
pipeline: p
lake: {path: x}
sources: {s: {conn_id: c, flavour: mysql}}
tables:
  include: ["shop.*"]
  clustering:
    - {match: "shop.orders", columns: [at, id]}
    - {match: "shop.o.*", columns: [kind]}
"""


def test_the_first_rule_that_matches_says_how_a_table_is_clustered() -> None:
    tables = config.parse(CLUSTERED, where="p.yaml").tables
    assert [tables.clustering_of("shop", name) for name in ("orders", "other", "x")] == [("at", "id"), ("kind",), ()]


@pytest.mark.parametrize("columns", ["[]", "[a, a]", "[a, b, c, d, e]"])
def test_a_clustering_that_delta_would_refuse_is_refused_with_its_line(columns: str) -> None:
    with pytest.raises(ConfigError, match=r"p\.yaml:8.*tables\.clustering"):
        config.parse(CLUSTERED.replace("[at, id]", columns), where="p.yaml")


RENAMES = """
pipeline: p
lake: {path: x}
sources: {s: {conn_id: c, flavour: mysql}}
tables:
  include: ["shop.*"]
  renames:
    - {match: "shop.orders", columns: {A: b, b: a}}
    - {match: "shop.*", columns: {a: other, "Order ID": order_id}}
  routes: [{match: 'shop.orders_\\d', to: shop.orders}]
"""


def test_the_first_rule_that_renames_a_column_counts() -> None:
    tables = config.parse(RENAMES, where="p.yaml").tables
    assert tables.names_of("shop", "orders_1") == {"a": "b", "b": "a", "order id": "order_id"}
    assert tables.names_of("shop", "_orders_gho") == {"a": "b", "b": "a", "order id": "order_id"}
    assert tables.names_of("shop", "_orders_ghc") == {"a": "other", "order id": "order_id"}
    assert tables.names_of("other", "orders") == {}


@pytest.mark.parametrize("columns", ["{}", "{a: x, A: y}", "{a: _tg_x}", "{a: 'x y'}", "{a: é}", "{a: ''}"])
def test_odd_names_are_refused(columns: str) -> None:
    with pytest.raises(ConfigError):
        config.parse(RENAMES.replace("{A: b, b: a}", columns), where="p.yaml")
