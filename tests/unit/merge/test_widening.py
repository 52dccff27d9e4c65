"""The type that holds the values of two shards' columns, and none where one of them would read otherwise."""

from __future__ import annotations

import pytest

from tidegate.merge.widening import wider


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("int", "int"),
        ("tinyint", "smallint"),
        ("int", "bigint"),
        ("bigint", "decimal(20,0)"),
        ("decimal(8,2)", "decimal(12,2)"),
        ("string", "string"),
    ],
)
def test_the_wider_one_is_taken_whichever_comes_first(narrow: str, wide: str) -> None:
    assert wider(narrow, wide) == wider(wide, narrow) == wide


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("date", "int"),
        ("string", "int"),
        ("float", "double"),
        ("decimal(8,2)", "decimal(12,4)"),
        ("decimal(8,2)", "decimal(9,1)"),
        ("bigint", "decimal(18,0)"),
        ("int", "decimal(12,2)"),
        ("timestamp", "timestamp_ntz"),
    ],
)
def test_what_would_read_otherwise_has_none(one: str, other: str) -> None:
    assert wider(one, other) is None
    assert wider(other, one) is None
