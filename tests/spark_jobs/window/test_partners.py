"""The tables that renames link: through chains and swaps, found once for a window of any number of renames."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from spark_jobs.window.shape.moves import all_partners, partners

DATABASE = [(f"old.t{number}", f"new.t{number}") for number in range(10_000)]


def moves(*pairs: tuple[str, str]) -> Iterator[Any]:
    """An iterator: who reads them for each table finds nothing the second time."""
    return iter([SimpleNamespace(giver=giver, taker=taker) for giver, taker in pairs])


def test_chains_and_swaps_are_linked_and_others_are_not() -> None:
    linked = all_partners(moves(("a", "b"), ("b", "a"), ("b", "c"), ("x", "y"), ("s", "s")))
    assert {name: sorted(others) for name, others in linked.items()} == {
        "a": ["b", "c"], "b": ["a", "c"], "c": ["a", "b"], "x": ["y"], "y": ["x"], "s": [],
    }  # fmt: skip
    assert partners(moves(("x", "y")), "z") == frozenset()


def test_all_tables_of_a_database_change_their_names_in_one_window() -> None:
    linked = all_partners(moves(*DATABASE))
    assert all(linked[giver] == {taker} and linked[taker] == {giver} for giver, taker in DATABASE)
