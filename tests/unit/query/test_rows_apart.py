"""Rows that one state of a table has and another one lacks, each as often as it is there."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tidegate.errors import HostLacks
from tidegate.query.rows_apart import TableAt, rows_apart

ROWS = {"id": [1, 2, 2, None], "v": ["a", "b", "b", None], "at": [1, 2, 3, 4]}


def table(folder: Path, name: str, **rows: list[object]) -> TableAt:
    write_deltalake(folder / name, pa.table(rows), mode="append")
    return TableAt(str(folder / name))


@pytest.mark.parametrize(
    ("rows", "apart"),
    [
        (ROWS, (0, 0)),
        ({"v": ["b", None, "b", "a"], "at": [9, 9, 9, 9], "id": [2, None, 2, 1]}, (0, 0)),
        ({**ROWS, "v": ["a", "b", "c", None]}, (1, 1)),
        ({"id": [1, 2, None], "v": ["a", "b", None], "at": [1, 1, 1]}, (1, 0)),
        ({"id": [1, 2, 2, 2, None], "v": ["a", "b", "b", "b", None], "at": [1, 1, 1, 1, 1]}, (0, 1)),
        ({"id": [1], "w": ["a"], "at": [1]}, (4, 1)),
        ({**ROWS, "id": ["1", "2", "02", None]}, (1, 1)),
    ],
    ids=["alike", "another order", "a value", "lost", "doubled", "other columns", "other types"],
)
def test_rows_are_counted_by_what_is_compared(
    tmp_path: Path, rows: dict[str, list[object]], apart: tuple[int, int]
) -> None:
    one, other = table(tmp_path, "a", **ROWS), table(tmp_path, "it's b", **rows)
    assert rows_apart(one, other, left_out={"at"}) == apart


def test_no_decimal_is_rounded(tmp_path: Path) -> None:
    one, other = table(tmp_path, "a", x=[Decimal("1.55")]), table(tmp_path, "b", x=[Decimal(f"1{'0' * 36}.6")])
    table(tmp_path, "b", x=[Decimal("1.6")])
    assert rows_apart(one, other, left_out=set()) == (1, 2)


def test_a_version_is_read_as_it_was(tmp_path: Path) -> None:
    one, other = table(tmp_path, "a", id=[1]), table(tmp_path, "b", id=[1])
    table(tmp_path, "b", id=[2])
    assert rows_apart(one, TableAt(other.uri, 0), left_out=set()) == (0, 0)
    assert rows_apart(one, other, left_out=set()) == (0, 1)


def test_what_duckdb_cannot_read_is_left_to_another_reader(tmp_path: Path) -> None:
    one = table(tmp_path, "a", id=[1])
    with pytest.raises(HostLacks, match="DuckDB can't compare them"):
        rows_apart(one, TableAt(str(tmp_path / "nowhere")), left_out=set())
