"""A rebuilt table in the live one's place: `tidegate rebuild --swap`, on a real server.

In:  tables that go on meanwhile, one that somebody took back, a process that dies at each of its points.
Out: the server's own rows behind the next apply; readers see the one table or the other.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild, swap
from spark_jobs.session.background import BackgroundSession
from tests.integration.lake.test_rebuild import cli
from tests.integration.road.test_silver_asked import Asked, begun, keyed
from tests.kit.spark import no_spark
from tests.support.forks import exit_code
from tests.support.servers import FreshDatabase
from tidegate import config, tables
from tidegate.errors import LakeRefused, LeaseHeld, UsageError
from tidegate.lake.cuts.published import cut_at
from tidegate.lake.files import LakeFiles
from tidegate.lake.jobs.leases import take_lease
from tidegate.lake.standing.held import last_states
from tidegate.local.server import Server
from tidegate.tables import State

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(900)]


def rebuilt(road: Asked, spark: SparkSession, table: str) -> Rebuild:
    plan = Rebuild.plan(road.pipeline, road.lake, f"{road.database}.{table}", "", "")
    assert rebuild(plan, BackgroundSession(lambda: spark), compare=False, report=road.lines.append) == 0
    return plan


def swapped(road: Asked, plan: Rebuild) -> None:
    """It needs no Spark."""
    swap(plan, BackgroundSession(no_spark), report=road.lines.append)


def _in_a_child(file: str, table: str, to: str, point: str) -> None:
    os.environ["TIDEGATE_FAILPOINT"] = point
    pipeline = config.load(Path(file))
    plan = Rebuild.plan(pipeline, LakeFiles(pipeline.lake.path), table, "", to)
    swap(plan, BackgroundSession(no_spark), report=print)


def equal(road: Asked, table: str, spark: SparkSession) -> None:
    """Silver has the server's own rows."""
    with road.server.connect(road.database) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM `{table}` ORDER BY id")
        theirs = [tuple(row) for row in cursor.fetchall()]
    silver = spark.read.format("delta").load(str(road.path(table)))
    columns = [name for name in silver.columns if not name.startswith("_tg_")]
    assert [tuple(row) for row in silver.select(*columns).orderBy("id").collect()] == theirs, table


def spoil(road: Asked, table: str, spark: SparkSession) -> None:
    """Rows that nobody wrote at the source, by a writer whose commits stay legal."""
    spark.sql(f"DELETE FROM delta.`{road.path(table)}` WHERE id % 3 = 0")


def test_a_rebuilt_table_takes_the_live_ones_place(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    road = begun(mariadb, fresh_database, tmp_path)
    names = ("still", "goes_on", "restored", "grows", "owned", "waits")
    road.step(spark, *(statement for name in names for statement in keyed(name, 30)))
    road.step(spark, *(f"UPDATE db.{name} SET v = v + 100 WHERE id < 9" for name in names))
    for name in names:
        spoil(road, name, spark)
    spark.sql(f"RESTORE TABLE delta.`{road.path('restored')}` TO VERSION AS OF 1")
    road.step(spark, "INSERT INTO db.waits VALUES (50, 50)")
    assert road.lacks().keys() == {"restored"}
    plans = {name: rebuilt(road, spark, name) for name in names}

    road.step(spark, "UPDATE db.goes_on SET v = -1 WHERE id = 12", "INSERT INTO db.waits VALUES (51, 51)")
    road.step(spark, "ALTER TABLE db.grows ADD COLUMN w INT DEFAULT 4", "INSERT INTO db.grows VALUES (60, 1, 2)")
    before = road.lake.log(tables.silver_path(road.database, "still")).state().table_id
    with (
        take_lease(road.lake, "road", "apply", report=road.lines.append),
        pytest.raises(LeaseHeld, match="--swap --to"),
    ):
        swapped(road, plans["still"])
    for name in ("still", "goes_on", "restored", "grows", "waits"):
        swapped(road, plans[name])
        assert not Path(road.lake.uri(plans[name].to)).exists()
    spark.sql(f"ALTER TABLE delta.`{road.path('owned')}` ADD COLUMN mine_alone INT")
    with pytest.raises(LakeRefused, match="mine_alone"):
        swapped(road, plans["owned"])

    states = last_states(road.lake)
    assert f"{road.database}.still" not in states or states[f"{road.database}.still"].state is State.ACTIVE
    assert states[f"{road.database}.goes_on"].state is State.RELEASED
    assert states[f"{road.database}.restored"].state is State.RELEASED
    newest = cut_at(road.lake, "road")
    still = road.lake.log(tables.silver_path(road.database, "still")).state()
    assert still.table_id == before
    assert newest.tables[f"{road.database}.still"].version == still.version, "who reads the cut reads what was rebuilt"
    road.step(spark, "UPDATE db.still SET v = 0 WHERE id = 3", "UPDATE db.restored SET v = 0 WHERE id = 3")
    assert not road.lacks()
    for name in ("still", "goes_on", "restored", "grows", "waits"):
        equal(road, name, spark)


def test_a_swap_that_is_killed_is_done_again(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    road = begun(mariadb, fresh_database, tmp_path)
    points = ("swap_before_file", "swap_before_commit", "swap_after_commit", "swap_before_end")
    names = ("a", "b", "c", "d")
    road.step(spark, *(statement for name in names for statement in keyed(name, 30)))
    for name in names:
        spoil(road, name, spark)
    plans = {name: rebuilt(road, spark, name) for name in names}
    road.step(spark, *(f"UPDATE db.{name} SET v = -1 WHERE id = 12" for name in names))
    for name, point in zip(names, points, strict=True):
        plan = plans[name]
        to = plan.to.rpartition("/")[2]
        assert exit_code(_in_a_child, str(road.file), plan.table, to, point) == -signal.SIGKILL, point
    # An hour that ends now doesn't count as complete, though silver lacks a part of it (complete_hours.py).
    states = last_states(road.lake)
    waits = {name for name in names if (of := states.get(f"{road.database}.{name}")) and of.state is State.RELEASED}
    assert waits == {"b", "c", "d"}
    # An apply comes first: nothing that was rebuilt is taken for more than it is.
    road.step(spark, *(f"UPDATE db.{name} SET v = -2 WHERE id = 13" for name in names))
    assert not road.lacks()
    for name in ("c", "d"):
        equal(road, name, spark)
    for name in names:
        swapped(road, plans[name])
    road.step(spark, *(f"UPDATE db.{name} SET v = -3 WHERE id = 14" for name in names))
    assert not road.lacks()
    assert road.assert_equal() == dict.fromkeys(names, 30)


def test_the_live_tables_own_name_is_no_place_for_a_rebuilt_one(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """It has been swapped before, so it says that it is whole."""
    road = begun(mariadb, fresh_database, tmp_path)
    road.step(spark, *keyed("a", 30))
    swapped(road, rebuilt(road, spark, "a"))
    with pytest.raises(UsageError, match="names the live table"):
        swapped(road, Rebuild.plan(road.pipeline, road.lake, f"{road.database}.a", "", "a"))
    road.step(spark, "UPDATE db.a SET v = -3 WHERE id = 14")
    assert not road.lacks()
    equal(road, "a", spark)


def test_the_runbook_of_operate_md(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    road = begun(mariadb, fresh_database, tmp_path)
    road.step(spark, *keyed("orders", 30))
    spoil(road, "orders", spark)
    plan = rebuilt(road, spark, "orders")
    road.step(spark, "UPDATE db.orders SET v = -1 WHERE id = 7")
    assert cli(road, plan.table, "--swap", "--at", "5")[0] == 2
    code, lines, errors = cli(road, plan.table, "--swap", "--to", plan.to.rpartition("/")[2])
    assert code == 0, (lines, errors)
    road.step(spark)
    assert road.assert_equal() == {"orders": 30}
