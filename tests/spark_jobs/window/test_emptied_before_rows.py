"""A statement that empties a table is a commit of its own, before the rows after it. Nothing from before comes back.

In:  rows, a TRUNCATE or a DROP, and rows after it, in one window; that window is killed or its rows are refused in
     between, and the next one ends before the statement.
Out: silver has the rows after the statement, and no others.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.session.failures import TablesFailed
from tests.spark_jobs.merge.test_silver_writer import UP, Rows, Shop
from tests.spark_jobs.merge.test_ties_of_sources import KilledError
from tests.spark_jobs.positional.test_positional_writer import many
from tidegate.tables import State
from tidegate.upsert.cost import KEY_RECORD_BYTES

pytestmark = pytest.mark.spark

BEFORE: Rows = [(16, UP, {"id": 900, "a": "of before"})]
AFTER = many(9, 22)


def emptied(spark: SparkSession, folder: Path, key: str, statements: list[str]) -> Shop:
    it = Shop(spark, folder, "positional")
    it.ddl(10, f"CREATE TABLE t (id INT{key}, a VARCHAR(20))")
    it.apply(0, 15, {"t": [(11, UP, {"id": 1, "a": "x"})]})
    for number, sql in enumerate(statements):
        it.ddl(20 + number, sql)
    return it


def check(it: Shop) -> None:
    it.apply(15, 18, {"t": BEFORE}, below=True)
    assert it.silver("t") == []
    it.apply(18, 40, {"t": AFTER}, below=True)
    assert [row["id"] for row in it.silver("t")] == list(range(9))


@pytest.mark.parametrize("key", ["", " PRIMARY KEY"], ids=["no key", "a key"])
def test_a_table_whose_rows_are_given_back_after_a_truncate_goes_on_from_there(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    it = emptied(spark, tmp_path, key, ["TRUNCATE TABLE t"])
    with monkeypatch.context() as small:
        small.setattr("tidegate.limits.UPSERT_KEYS_BYTES_MAX", 5 * KEY_RECORD_BYTES)
        small.setattr("tidegate.limits.HASHED_ROWS_DECODED_BYTES_MAX", 50)
        held = it.apply(15, 40, {"t": BEFORE + AFTER}).held["d.t"]
    assert (held.state, held.applied_ts) == (State.RELEASED, 19), "up to the statement nothing is wanted any more"
    check(it)


@pytest.mark.parametrize(
    "statements",
    [["TRUNCATE TABLE t"], ["DROP TABLE t", "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20))"]],
    ids=["TRUNCATE", "DROP and CREATE"],
)
def test_killed_between_a_statement_and_its_rows_the_table_goes_on_from_the_statement(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statements: list[str]
) -> None:
    it = emptied(spark, tmp_path, " PRIMARY KEY", statements)

    def kill(point: str) -> None:
        raise KilledError(point)

    with monkeypatch.context() as killed:
        killed.setattr("spark_jobs.apply_steps.merge_into_silver.failpoint", kill)
        with pytest.raises(TablesFailed):
            it.apply(15, 40, {"t": BEFORE + AFTER})
    again = Shop(spark, tmp_path, "positional")
    again.app.histories.update(it.app.histories)
    again.times.update(it.times)
    check(again)


@pytest.mark.parametrize("writer", ["positional", "merge"])
@pytest.mark.parametrize("key", ["", " PRIMARY KEY"], ids=["no key", "a key"])
def test_an_apply_that_slept_through_a_truncate_adds_no_rows_from_before(
    spark: SparkSession, tmp_path: Path, key: str, writer: str
) -> None:
    """The statement alone is in silver, since no rows came after it."""
    it = emptied(spark, tmp_path, key, ["TRUNCATE TABLE t"])
    sleeper = Shop(spark, tmp_path, writer)
    sleeper.app.histories.update(it.app.histories)
    sleeper.times.update(it.times)
    assert sleeper.app.positions.applied("d.t") == 15
    it.apply(15, 40, {"t": BEFORE})
    assert it.silver("t") == []
    sleeper.apply(15, 18, {"t": BEFORE})
    assert it.silver("t") == []
