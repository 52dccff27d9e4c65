"""Keys that were in order stay so through some ALTERs of their columns: then a snapshot goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.snapshot.test_contracts import VERSION
from tidegate.schema.model.columns import Column
from tidegate.snapshot.chunks.key_columns import is_ordered_alike, ordered_as


@pytest.mark.parametrize(
    ("before", "now", "alike"),
    [
        ("int", "bigint unsigned", True),
        ("enum('a','b')", "enum('a','b','c')", True),
        ("enum('a','b')", "enum('b','a')", False),
        ("datetime", "datetime(3)", True),
        ("varbinary(2)", "varbinary(20)", True),
        ("binary(2)", "binary(20)", False),  # each value has zeros behind it then
        ("float", "float(10,2)", False),  # and here it is rounded
        ("double", "double", True),
    ],
)
def test_what_an_alter_makes_of_the_order_of_a_key(before: str, now: str, alike: bool) -> None:
    orders = [ordered_as(replace(VERSION, columns=(Column(1, "k", one),))) for one in (before, now)]
    assert is_ordered_alike(*orders) is alike
