"""What a routed table's silver looks like when a shard comes, or comes again, with other types than the rest had."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark_jobs.merge.test_silver_writer import UP, Shop

pytestmark = pytest.mark.spark

LARGE = 5_000_000_000


@pytest.fixture(params=["merge", "positional"])
def shop(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Callable[[], Shop]:
    return lambda: Shop(spark, tmp_path, request.param, routes="[{match: 'd.s_.*', to: d.s}]")


def test_rows_that_a_wider_shard_is_made_with_are_there_when_the_cut_is_its_create(shop: Callable[[], Shop]) -> None:
    """CREATE ... SELECT commits them with the statement."""
    it = shop()
    it.ddl(10, "CREATE TABLE s_1 (id INT PRIMARY KEY, a SMALLINT)")
    it.apply(0, 15, {"s_1": [(12, UP, {"id": 1, "a": 1})]})
    it.ddl(20, "CREATE TABLE s_2 (id INT PRIMARY KEY, a BIGINT)")
    for _ in range(3):  # the positional writer gives it to MERGE, which takes it in a window of its own
        window = it.apply(15, 20, {"s_2": [(20, UP, {"id": 2, "a": LARGE})]})
        if not window.held:
            break
    assert it.silver("s") == [{"id": 1, "a": 1}, {"id": 2, "a": LARGE}]


@pytest.mark.parametrize(("kind", "cell"), [("BIGINT", LARGE), ("VARCHAR(20)", "text")])
def test_the_only_shard_of_a_table_without_a_key_comes_again(
    kind: str, cell: object, spark: SparkSession, tmp_path: Path
) -> None:
    it = Shop(spark, tmp_path, "merge", routes="[{match: 'd.s_.*', to: d.s}]")
    it.ddl(10, "CREATE TABLE s_1 (id INT, a INT)")
    it.apply(0, 15, {"s_1": [(12, UP, {"id": 1, "a": 1})]})
    it.ddl(20, "DROP TABLE s_1")
    it.ddl(21, f"CREATE TABLE s_1 (id INT, a {kind})")
    rows = [(22, UP, {"id": 2, "a": cell}), (23, UP, {"id": 2, "a": cell})]
    assert not it.apply(15, 30, {"s_1": rows}).held
    assert it.silver("s") == [{"id": 2, "a": cell}] * 2
