"""Versions under the names of tables.renames: swaps, names that two columns would have, what bronze keeps."""

from __future__ import annotations

from dataclasses import replace

from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.renamed import clash, from_text, to_text, under_names


def version_of(*names: str) -> TableVersion:
    columns = tuple(Column(at, name, "int(11)") for at, name in enumerate(names, 1))
    return TableVersion("one", "db", "t", 1, 10, "b.000001", 10, "create", "CREATE", columns, (1,), "utf8mb4")


def test_a_version_has_silvers_names_and_keeps_the_sources_in_what_is_stored() -> None:
    plain = version_of("ID", "a", "b", "Order ID")
    named = under_names(plain, {"id": "key_id", "a": "b", "b": "a", "order id": "order_id", "gone": "x"})
    assert [column.silver for column in named.columns] == ["key_id", "b", "a", "order_id"]
    assert named.silver_key == ("key_id",)
    assert named.aliases == {"ID": "key_id", "a": "b", "b": "a", "Order~20~ID": "order_id"}
    assert named.plain == plain
    assert named.to_row() == plain.to_row()
    assert TableVersion.from_row(named.to_row()) == plain
    assert named.fingerprint == plain.fingerprint
    assert named != plain


def test_names_are_those_of_the_rules_alone_whatever_a_column_had() -> None:
    plain = version_of("a", "b")
    named = under_names(plain, {"a": "x"})
    assert under_names(named, {"b": "y"}) == under_names(plain, {"b": "y"})
    assert under_names(named, {}) == plain


def test_two_columns_of_one_name_keep_the_sources() -> None:
    plain = version_of("id", "a", "B")
    assert clash(plain, {"a": "b"}) == "b"
    assert clash(plain, {"a": "ID"}) == "id"
    assert clash(plain, {"a": "b", "b": "a"}) == ""
    assert under_names(plain, {"a": "b"}) == plain
    dropped = replace(plain, columns=plain.columns[:2])
    assert clash(dropped, {"a": "b"}) == ""


def test_names_are_kept_as_text() -> None:
    assert to_text({}) == ""
    assert from_text("") == {}
    assert from_text(to_text({"b": "a", "é": "x"})) == {"b": "a", "é": "x"}
    assert to_text({"b": "a", "a": "b"}) == to_text({"a": "b", "b": "a"})
