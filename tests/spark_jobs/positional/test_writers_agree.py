"""MERGE and the positional writer make the same tables of the same changes, whatever the windows.

In:  random histories (tests/support/histories.py) over tables of every kind of key, with a column added and a table
     truncated in between; about half of the tables keep their deleted rows, marked.
Out: both writers' tables against a plain dict: the positional writer's as Spark, DuckDB, Polars and delta-rs read it.

MERGE gets the history in two windows. The positional writer gets many, some of them twice, some after another try had
been lost, with an OPTIMIZE by somebody else in between.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from spark_jobs.session.spark import table_session
from spark_jobs.window.window import StagedFile
from tests.spark_jobs.merge.test_silver_writer import Shop
from tests.support.histories import KINDS, History, history, shown
from tests.support.readers import READERS, by_duckdb
from tests.support.seeds import many
from tests.support.seeds import seed as usual_seed
from tidegate import tables
from tidegate.merge.net_change import net_last_per_key
from tidegate.table_names import Physical

pytestmark = pytest.mark.spark
_HASH = (tables.ROW_HASH, tables.OCCURRENCE)


class NettingShop(Shop):
    """Stages for MERGE what decode stages: the last change per key."""

    def _stage(self, physical: Physical, version: int, rows: pa.RecordBatch) -> StagedFile:
        key = self._version(physical, version).key_names
        return super()._stage(physical, version, net_last_per_key(rows, key) if key else rows)


def apply_until(shop: Shop, made: History, low: int, cut: int) -> None:
    """One window of the history."""
    for commit_ts, sql in made.ddl:
        if low < commit_ts <= cut:
            shop.ddl(commit_ts, sql)
    inside = {name: [c for c in changes if low < c[0] <= cut] for name, changes in made.changes.items()}
    window = shop.apply(low, cut, inside)
    assert not window.held, window.held


def rows(found: list[dict[str, Any]], *, keyed: bool) -> Counter[tuple[Any, ...]]:
    """As History.final gives them. Which of several equal rows has which stamp is nobody's promise."""
    out = (*_HASH, *(() if keyed else (tables.COMMIT_TS,)))
    return Counter(shown({k: v for k, v in row.items() if k not in out}) for row in found)


def by_spark(spark: SparkSession, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = spark.read.format("delta").load(path).toArrow().to_pylist()
    return found


def in_many_windows(shop: Shop, made: History, seed: int, spark: SparkSession) -> None:
    """The whole history, cut anywhere; now and then a window comes again, or somebody optimizes a table."""
    rng, low = random.Random(seed), 0
    cuts = sorted({*rng.sample(range(20, made.now), k=min(5, made.now - 20)), made.now})
    optimized = rng.choice(cuts[:-1])
    for cut in cuts:
        apply_until(shop, made, low, cut)
        if rng.random() < 0.3:
            for name in made.tables:
                shop.app.positions.forget_applied(f"d.{name}")
            apply_until(shop, replace(made, ddl=[]), rng.choice([0, low]), cut)
        if cut == optimized:
            name = rng.choice([name for name in made.tables if made.tables[name].kind.names])
            table_session(spark, large=False).sql(
                f"OPTIMIZE delta.`{shop.app.lake.uri(tables.silver_path('d', name))}`"
            )
        low = cut


def seeds() -> list[int]:
    """As many as there are to be, one after the other."""
    return [usual_seed() + number for number in range(many(1, 8))]


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(), ids=[f"history {number}" for number in range(many(1, 8))])
def test_any_history_in_any_windows_gives_what_a_dict_gives(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")  # not in the test's name, which has to be the same in all of pytest's workers
    kinds = random.Random(seed).sample([name for name in KINDS if name != "bag"], k=many(1, 4))
    made = history(seed, [*kinds, "bag"])
    kept = str([f"d.{name}" for name in sorted(made.kept)])
    positional = NettingShop(spark, tmp_path / "positional", "positional", soft_delete=kept)
    merged = NettingShop(spark, tmp_path / "merge", "merge", soft_delete=kept)
    in_many_windows(positional, made, seed, spark)
    middle = random.Random(seed + 1).randrange(20, made.now)
    apply_until(merged, made, 0, middle)
    apply_until(merged, made, middle, made.now)
    for name, table in made.tables.items():
        keyed = bool(table.kind.names)
        wanted = made.final(name)
        path = positional.app.lake.uri(tables.silver_path("d", name))
        found = {"Spark": by_spark(spark, path), **{reader: read(path).to_pylist() for reader, read in READERS.items()}}
        found["MERGE"] = by_duckdb(merged.app.lake.uri(tables.silver_path("d", name))).to_pylist()
        for reader, read_rows in found.items():
            assert rows(read_rows, keyed=keyed) == wanted, f"seed {seed}: {name} by {reader}"
        if keyed:
            commits = DeltaTable(path).history()
            assert any(one["operation"] == "UPSERT" for one in commits), f"{name} was not written by position"
