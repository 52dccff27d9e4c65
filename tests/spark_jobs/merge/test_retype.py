"""A snapshot of a table with a retyped column: kept rows keep values of the same text, and no other is lost.

Another writer dropped column v of silver, and added one of its name and of another type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark_jobs.merge.test_silver_writer import DEL, UP, Rows, Shop
from tests.spark_jobs.merge.test_soft_delete import rows
from tests.spark_jobs.positional.test_writers_agree import NettingShop
from tidegate import tables
from tidegate.remedy import Needs
from tidegate.schema.model.columns import LEFT_OUT, VersionStatus
from tidegate.schema.replay.history import SNAPSHOT

pytestmark = pytest.mark.spark

BY_HAND = (
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    "ALTER TABLE {t} DROP COLUMN v",
    "ALTER TABLE {t} ADD COLUMN v STRING",
)


@pytest.fixture(params=["merge", "positional"])
def shop(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Callable[..., Shop]:
    return lambda **given: NettingShop(spark, tmp_path, request.param, **given)


def by_hand(it: Shop, table: str, *statements: str) -> None:
    uri = it.app.lake.uri(tables.silver_path("d", table))
    for statement in statements:
        it.app.spark.sql(statement.format(t=f"delta.`{uri}`")).collect()


def begins(it: Shop, table: str, commit_ts: int, kind: str = SNAPSHOT) -> None:
    last = it.app.histories["s"].last(("d", table))
    assert last is not None
    status = last.status.without_rows if kind == LEFT_OUT else VersionStatus.ACTIVE
    made = replace(last, version=last.version + 1, commit_ts=commit_ts, kind=kind, ddl="", status=status)
    it.app.histories["s"].add([made])


def test_deleted_rows_stay_with_values_of_the_same_text(shop: Callable[..., Shop]) -> None:
    it = shop(soft_delete="['d.t']")
    it.ddl(10, "CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    inserts: Rows = [(11, UP, {"id": number, "v": 10 * number}) for number in range(1, 5)]
    it.apply(0, 15, {"t": [*inserts, *((14, DEL, {"id": number, "v": 10 * number}) for number in (3, 4))]})
    by_hand(it, "t", *BY_HAND, "UPDATE {t} SET v = '30' WHERE id = 3", "UPDATE {t} SET v = 'none' WHERE id = 4")
    before = rows(it)
    begins(it, "t", 20)
    read: dict[str, Rows] = {"t": [(21, UP, {"id": 1, "v": 10}), (21, UP, {"id": 2, "v": 20})]}
    held = it.apply(19, 25, read).held["d.t"]
    assert "1 kept values don't read the same" in held.reason
    assert not held.lacks_rows
    assert rows(it) == before, "nothing is begun"
    by_hand(it, "t", "UPDATE {t} SET v = NULL WHERE id = 4")
    assert not it.apply(19, 25, read).held
    wanted = [(1, 10, 21, False), (2, 20, 21, False), (3, 30, 14, True), (4, None, 14, True)]
    assert rows(it) == wanted
    it.app.positions.forget_applied("d.t")
    it.apply(19, 25, read)
    assert rows(it) == wanted
    assert not it.apply(25, 35, {"t": [(31, UP, {"id": 4, "v": 5})]}).held
    assert (4, 5, 31, False) in rows(it)


def test_a_type_without_fitting_values_keeps_nulls_alone(spark: SparkSession, tmp_path: Path) -> None:
    it = NettingShop(spark, tmp_path, "merge", soft_delete="['d.t']")
    it.ddl(10, "CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    it.apply(0, 15, {"t": [(11, UP, {"id": 1, "v": 1}), (12, DEL, {"id": 1, "v": 1})]})
    by_hand(it, "t", *BY_HAND[:2], "ALTER TABLE {t} ADD COLUMN v STRUCT<a: INT>")
    begins(it, "t", 20)
    assert not it.apply(19, 25, {"t": [(21, UP, {"id": 2, "v": 2})]}).held
    assert rows(it) == [(1, None, 12, True), (2, 2, 21, False)]


def test_a_shard_begins_when_the_others_wait_for_their_rows(shop: Callable[..., Shop]) -> None:
    it = shop(routes="[{match: 'd.s_\\d', to: d.s}]")
    for number in (1, 2):
        it.ddl(9 + number, f"CREATE TABLE s_{number} (id INT PRIMARY KEY, v BIGINT)")
    it.apply(0, 15, {"s_1": [(12, UP, {"id": 1, "v": 1})], "s_2": [(12, UP, {"id": 2, "v": 2})]})
    by_hand(it, "s", *BY_HAND, "UPDATE {t} SET v = 'none'")
    by_hand(it, "s", "INSERT INTO {t} SELECT 3, 's', 'd', 'gone', 3, '3'")
    begins(it, "s_1", 17)
    read: dict[str, Rows] = {"s_1": [(19, UP, {"id": 1, "v": 1})]}
    held = it.apply(16, 20, read).held["d.s"]
    assert held.needs is Needs.ROWS, "the other shard has lost its values, too"
    begins(it, "s_2", 18, LEFT_OUT)
    begins(it, "s_1", 21)
    read = {"s_1": [(22, UP, {"id": 1, "v": 1})]}
    assert not it.apply(20, 25, read).held
    assert it.silver("s") == [{"id": 1, "v": 1}, {"id": 2, "v": None}, {"id": 3, "v": 3}], "s_2 still waits"
    begins(it, "s_2", 26)
    assert not it.apply(25, 30, {"s_2": [(27, UP, {"id": 2, "v": 2})]}).held
    assert it.silver("s") == [{"id": 1, "v": 1}, {"id": 2, "v": 2}, {"id": 3, "v": 3}]
