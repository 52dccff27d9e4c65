"""Questions about many tables are asked in parts, each table in one of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.mysql.sql_text import catalog
from tidegate.mysql.sql_text.catalog import Name, parts_of, rows_of

NAMES = st.tuples(st.sampled_from("abcd"), st.text("xyz", min_size=1, max_size=4))


@given(st.sets(NAMES, max_size=60), st.integers(1, 7))
def test_each_table_is_in_one_part_which_asks_for_it(names: set[Name], at_most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog, "CATALOG_TABLES_MAX", at_most)
        parts = list(parts_of(names))
    wanted = [name for _, part_names in parts for name in part_names]
    assert sorted(wanted) == sorted(names)
    for part, part_names in parts:
        assert len(part_names) <= at_most
        assert {database for database, _ in part_names} == {*part.databases}
        assert {table for _, table in part_names} == {*part.tables}
        assert part.sql.count("%s") == len(part.names)


def test_rows_of_other_tables_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server brings names that differ in case alone, once for each part that has one of them."""
    monkeypatch.setattr(catalog, "CATALOG_TABLES_MAX", 1)
    asked = list[tuple[str, Sequence[str]]]()

    def ask(statement: str, values: Sequence[str]) -> Sequence[Sequence[str]]:
        asked.append((statement, values))
        return [("d", "T", "1"), ("d", "t", "2"), ("d", "other", "3")]

    rows = list(rows_of(ask, "SELECT x", [("d", "t"), ("d", "T")], where="kind = 'BASE'", order=", n"))
    assert rows == [("d", "T", "1"), ("d", "t", "2")]
    sql = "SELECT x WHERE table_schema IN (%s) AND table_name IN (%s) AND kind = 'BASE'"
    assert asked == [
        (f"{sql} ORDER BY table_schema, table_name, n", ("d", "T")),
        (f"{sql} ORDER BY table_schema, table_name, n", ("d", "t")),
    ]


def test_no_names_are_no_question() -> None:
    assert list(parts_of([])) == []
