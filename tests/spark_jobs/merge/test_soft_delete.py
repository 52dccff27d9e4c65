"""Deleted rows that stay in silver: marked, revived, never silently lost. Both writers; histories are in
test_writers_agree.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark_jobs.merge.test_silver_writer import DEL, UP, Shop
from tests.spark_jobs.positional.test_writers_agree import NettingShop
from tests.support.readers import by_duckdb
from tidegate import tables

pytestmark = pytest.mark.spark


@pytest.fixture(params=["merge", "positional"])
def shop(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Callable[..., Shop]:
    return lambda soft_delete="['d.t']", **given: NettingShop(
        spark, tmp_path, request.param, soft_delete=soft_delete, **given
    )


def rows(shop: Shop, table: str = "t") -> list[tuple[Any, ...]]:
    """(columns of the source ..., commit_ts, mark), in order."""
    found = by_duckdb(shop.app.lake.uri(tables.silver_path("d", table)))
    shown = [name for name in found.column_names if not name.startswith(tables.SYSTEM_PREFIX)]
    cells = (found[name].to_pylist() for name in (*shown, tables.COMMIT_TS, tables.DELETED))
    return sorted(zip(*cells, strict=True), key=repr)


def test_truncate_and_drop_mark_what_was_alive_and_a_table_of_the_same_key_goes_on(shop: Callable[..., Shop]) -> None:
    it = shop()
    it.ddl(10, "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20))")
    it.ddl(15, "TRUNCATE TABLE t")
    changes = {
        "t": [
            (11, UP, {"id": 1, "a": "x"}),
            (12, UP, {"id": 2, "a": "y"}),
            (13, DEL, {"id": 2, "a": "y"}),
            (16, UP, {"id": 3, "a": "z"}),
        ]
    }
    assert not it.apply(0, 20, changes).held
    found = [(1, "x", 15, True), (2, "y", 13, True), (3, "z", 16, False)]
    assert rows(it) == found
    it.app.positions.forget_applied("d.t")
    it.apply(0, 20, changes)
    assert rows(it) == found
    it.ddl(30, "DROP TABLE t")
    it.apply(20, 35, {})
    found[2] = (3, "z", 30, True)
    assert rows(it) == found
    it.ddl(40, "CREATE TABLE t (id INT PRIMARY KEY, n INT)")
    assert not it.apply(35, 45, {"t": [(41, UP, {"id": 1, "n": 5})]}).held
    assert rows(it) == [(1, 5, 41, False), (2, None, 13, True), (3, None, 30, True)]
    it.ddl(50, "CREATE OR REPLACE TABLE t (id INT NOT NULL, n INT PRIMARY KEY)")
    window = it.apply(45, 55, {"t": [(51, UP, {"id": 1, "n": 1})]})
    assert "another key" in window.held["d.t"].reason
    assert [row[-1] for row in rows(it)] == [True] * 3


def test_a_shard_is_truncated_and_the_other_one_stays_alive(shop: Callable[..., Shop]) -> None:
    it = shop(soft_delete="['d.all']", routes="[{match: 'd.t_\\d', to: d.all}]")
    it.ddl(10, "CREATE TABLE t_1 (id INT PRIMARY KEY)")
    it.ddl(11, "CREATE TABLE t_2 (id INT PRIMARY KEY)")
    it.apply(0, 15, {"t_1": [(12, UP, {"id": 1}), (13, UP, {"id": 2})], "t_2": [(12, UP, {"id": 1})]})
    it.apply(15, 18, {"t_1": [(16, DEL, {"id": 2})]})
    it.ddl(20, "TRUNCATE TABLE t_2")
    assert not it.apply(18, 25, {"t_2": [(21, UP, {"id": 7})]}).held
    assert rows(it, "all") == [(1, 12, False), (1, 20, True), (2, 16, True), (7, 21, False)]


@pytest.mark.parametrize(("shop", "key"), [("merge", ""), ("positional", " PRIMARY KEY")], indirect=["shop"])
def test_it_can_be_turned_on_and_off_only_when_nothing_is_marked(
    shop: Callable[..., Shop], key: str, spark: SparkSession
) -> None:
    plain = shop(soft_delete="[]")
    plain.ddl(10, f"CREATE TABLE t (id INT{key})")
    plain.apply(0, 15, {"t": [(11, UP, {"id": 1}), (12, UP, {"id": 2})]})
    it = shop()
    it.ddl(10, f"CREATE TABLE t (id INT{key})")
    assert not it.apply(15, 20, {"t": [(16, DEL, {"id": 2}), (17, UP, {"id": 3})]}).held
    assert rows(it) == [(1, 11, False), (2, 16, True), (3, 17, False)]
    assert not it.apply(20, 25, {"t": [(21, UP, {"id": 2})]}).held
    assert rows(it) == [(1, 11, False), (2, 21, False), (3, 17, False)]
    it.apply(25, 28, {"t": [(26, DEL, {"id": 3})]})
    plain.app.positions.forget_applied("d.t")
    window = plain.apply(28, 30, {"t": [(29, DEL, {"id": 1})]})
    assert "soft_delete" in window.held["d.t"].reason
    assert rows(it)[2] == (3, 26, True), "nothing was touched"
    path = plain.app.lake.uri(tables.silver_path("d", "t"))
    spark.newSession().sql(f"DELETE FROM delta.`{path}` WHERE {tables.DELETED}")
    assert not plain.apply(28, 30, {"t": [(29, DEL, {"id": 1})]}).held
    assert plain.silver("t") == [{"id": 2}]
    assert tables.DELETED not in by_duckdb(path).column_names
