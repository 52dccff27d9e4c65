"""A reader that reads something else is found: a lost, a doubled or a changed row, and a table that it can't read."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from tests.readers import lake as module
from tests.readers.canonical import difference, digest
from tests.readers.lake import Lake, check, report
from tests.support.readers import READERS
from tidegate.delta.object_names import commit_name
from tidegate.delta.stores.by_place import log_store
from tidegate.delta.table.actions import lines, metadata, protocol

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "text": ["a", None, "ü"],
        "at": pa.array([datetime(2026, 1, 2, tzinfo=UTC)] * 3, pa.timestamp("us", "UTC")),
        "amount": pa.array([Decimal("1.50")] * 3, pa.decimal128(10, 2)),
        "bytes": [b"\0", b"", None],
        "list": [["a"], [], None],
    }
)


def test_a_digest_is_the_same_for_other_orders_and_types_of_one_value() -> None:
    other = ROWS.take([2, 0, 1]).select(["list", "text", "id", "at", "bytes", "amount"])
    other = other.set_column(1, "text", other["text"].cast(pa.large_string()).dictionary_encode())
    assert digest(other) == digest(ROWS)
    other = other.set_column(1, "text", ROWS.take([2, 0, 1])["text"].cast(pa.string_view()))
    other = other.set_column(4, "bytes", other["bytes"].cast(pa.binary_view()))
    other = other.set_column(3, "at", other["at"].cast(pa.timestamp("ns", "UTC")))
    assert digest(other) == digest(ROWS)


@pytest.mark.parametrize("taken", [[0, 1], [0, 1, 2, 2], [0, 1, 1]])
def test_a_lost_and_a_doubled_row_change_the_digest(taken: list[int]) -> None:
    assert digest(ROWS.take(taken)) != digest(ROWS)
    assert "rows only" in difference(ROWS, ROWS.take(taken))


def test_a_null_is_no_empty_value() -> None:
    assert digest(pa.table({"a": [""]})) != digest(pa.table({"a": pa.array([None], pa.string())}))
    assert digest(pa.table({"a": ["1"]})) != digest(pa.table({"a": [1]}))


def test_of_floats_each_value_is_another_one_and_nan_is_one() -> None:
    minus_zero, zero, other_nan, nan, none = (
        digest(pa.table({"a": pa.array([value], pa.float64())}))
        for value in (-0.0, 0.0, -float("nan"), float("nan"), None)
    )
    assert other_nan == nan
    assert len({minus_zero, zero, nan, none}) == 4


def test_tables_of_each_kind_are_chosen(tmp_path: Path) -> None:
    for name in "abc":
        write_deltalake(str(tmp_path / name), ROWS)
    write_deltalake(str(tmp_path / "d"), ROWS.select(["id"]))
    there = Lake(tmp_path, None)  # type: ignore[arg-type]  # nothing is read
    assert [path.name for path in there.chosen(2)] == ["a", "d"]
    assert [path.name for path in there.chosen(3)] == ["a", "b", "d"]
    assert there.chosen(9) == there.tables()


@pytest.mark.parametrize("feature", sorted(set(module.LIMITS.values())))
def test_what_is_called_a_readers_limit_is_one(feature: str, tmp_path: Path) -> None:
    """A reader that has learned a feature leaves the list."""
    column = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    first = lines([protocol([feature]), metadata({"type": "struct", "fields": [column]}, {})])
    log_store(f"{tmp_path}/_delta_log", {}).create(commit_name(0), first)
    limits = {reader: words for (reader, words), named in module.LIMITS.items() if named == feature}
    for name, read in READERS.items():
        if name in limits:
            with pytest.raises(Exception, match=re.escape(limits[name])):
                read(str(tmp_path))
        else:
            assert read(str(tmp_path)).num_rows == 0


@pytest.mark.spark
def test_every_table_is_read_by_all_and_what_one_reads_otherwise_is_named(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = str(tmp_path / "lake" / "silver" / "s" / "t")
    for _ in range(2):
        write_deltalake(table, ROWS, mode="append")
    write_deltalake(str(tmp_path / "lake" / "control" / "c"), ROWS)
    said: list[str] = []
    assert report(check(tmp_path / "lake", spark, copy=tmp_path / "copy"), said.append) == 0
    assert said == [said[-1]]
    assert said[-1].startswith("readers: 2 tables, 9 rows, ")

    def by_polars(path: str, version: int | None = None) -> pa.Table:
        if path.endswith("/c"):
            raise ValueError("it has a feature")
        return READERS["Polars"](path, version).slice(1)

    monkeypatch.setattr(module, "READERS", READERS | {"Polars": by_polars})
    said.clear()
    assert report(check(tmp_path / "lake", spark), said.append) == 2
    assert said[0] == "DIFFERENT control/c, newest, by Polars: it has a feature"
    assert said[1].startswith("DIFFERENT silver/s/t, newest, by Polars: 1 rows only here, 0 only there: - [")
    assert said[2] == "readers: 2 tables, 9 rows, 8 readings: 2 wrong, 0 that a reader can't"
    monkeypatch.setattr(module, "LIMITS", {("Polars", "has a feature"): "why"})
    said.clear()
    assert report(check(tmp_path / "lake", spark), said.append) == 1
    assert said[0].startswith("LIMIT control/c")


@pytest.mark.spark
def test_a_table_that_lost_a_file_is_named_alone_of_those_that_are_read_together(
    spark: SparkSession, tmp_path: Path
) -> None:
    for name in "abc":
        write_deltalake(str(tmp_path / name), ROWS)
    for file in (tmp_path / "b").glob("*.parquet"):
        file.unlink()
    found = check(tmp_path, spark)
    assert {one.table for one in found if one.outcome == "different"} == {"b"}
    assert len(found) == 3 * (1 + len(READERS))
    assert all(one.rows == ROWS.num_rows for one in found if one.table != "b")
