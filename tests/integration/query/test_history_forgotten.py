"""What a table's history missed, or what others did to it, is never told as its past: the time before is refused.

Each case was once a wrong answer, or might have been one: a hold that ends by emptying, a log that was lost, a foreign
writer, RESTORE, a dropped table, kills around each of them.
"""

from __future__ import annotations

import signal
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs import maintain
from spark_jobs.maintenance import Maintenance
from spark_jobs.rebuild import Rebuild, rebuild
from spark_jobs.session.background import BackgroundSession
from spark_jobs.session.spark import maintenance_session
from tests.integration.lake.test_swap import _in_a_child
from tests.integration.road.test_accept import _accept
from tests.kit.road import Road
from tests.support.driver import killed
from tests.support.forks import exit_code
from tests.support.known_history import check, demand, forget_cuts, protocol_of, since, taken
from tests.support.past import Past
from tests.support.replica_pair import purge_logs
from tests.support.servers import ROOT, FreshDatabase
from tidegate import tables
from tidegate.delta.checkpoints import write as checkpoint_write
from tidegate.delta.object_names import commit_name
from tidegate.errors import PositionLost
from tidegate.lake.silver.as_published import said_of_all
from tidegate.lake.standing.held import last_states, release
from tidegate.limits import ANCHOR_HOURS
from tidegate.local import mariadb as mariadb_package
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]

TABLE = "(id INT PRIMARY KEY, n INT)"
UNLOGGED = "}\nddl: {unlogged_cascades: hold"


def begun(server: Server, database: str, folder: Path, *names: str, apply: str = "") -> tuple[Road, Past]:
    """Tables with history, from their CREATE on."""
    road = Road(server, folder, include=f"{database}.*", extra=f", history: ['{database}.*']", apply=apply)
    road.capture()
    past = Past(server, database, names)
    past.begin()
    for name in names:
        past.done(f"CREATE TABLE {name} {TABLE}")
        past.done(f"INSERT INTO {name} VALUES (1, 0), (2, 0)")
    return road, past


def more(road: Road, past: Past, spark: SparkSession, name: str, times: int = 3) -> None:
    """Windows with a change each."""
    for _ in range(times):
        past.done(f"INSERT INTO {name} (id, n) VALUES ({len(past.states) + 100}, 0)", f"UPDATE {name} SET n = n + 1")
        taken(road, spark)


def spark_table(road: Road, name: str) -> str:
    return f"delta.`{road.lake.spark_uri(tables.silver_path(*name.split('.')))}`"


def child_of_parent(road: Road, past: Past, spark: SparkSession) -> None:
    """Table t, whose rows a key of p may delete."""
    past.names = ["t"]
    past.done("CREATE TABLE p (id INT PRIMARY KEY)", "CREATE TABLE t (id INT PRIMARY KEY, p INT, n INT)")
    past.done("INSERT INTO p VALUES (1), (2)")
    past.done("INSERT INTO t VALUES (1, 1, 0), (2, 2, 0)")
    taken(road, spark)


def cascades(road: Road, past: Past, spark: SparkSession, *, apart: bool) -> None:
    """The server deletes a row of t below the log. apart: apply sees that before more comes."""
    past.done("ALTER TABLE t ADD CONSTRAINT fk_t FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE")
    past.done("DELETE FROM p WHERE id = 1")
    if apart:
        road.capture()
        road.apply(spark)


def emptied_without_key(road: Road, past: Past) -> None:
    past.done("ALTER TABLE t DROP FOREIGN KEY fk_t")
    past.done("TRUNCATE TABLE t")
    past.done("INSERT INTO t VALUES (5, 2, 0)")
    road.capture()


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("dies", [True, False])
def test_a_hold_that_ends_by_emptying_leaves_no_known_time_before(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, apart: bool, dies: bool
) -> None:
    """apart: the hold is recorded before the table is emptied. dies: a killed apply had forgotten already."""
    database = fresh_database(mariadb)
    name = f"{database}.t"
    road, past = begun(mariadb, database, tmp_path, apply=UNLOGGED)
    child_of_parent(road, past, spark)
    begin = since(road, name)
    assert begin
    cascades(road, past, spark, apart=apart)
    if apart:
        assert last_states(road.lake)[name].state == "held"
    emptied_without_key(road, past)
    if dies:
        killed(spark, road.file, "apply_after_forget")
    taken(road, spark)
    emptied = past.moments(road)[len(past.states) - 2]
    more(road, past, spark, "t")
    assert since(road, name) > emptied > begin
    forget_cuts(road)
    assert check(road, past, "t", spark) >= 1


@pytest.mark.parametrize("apart", [True, False])
def test_a_log_that_cant_be_written_meanwhile_tells_no_more_once_it_can(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, apart: bool
) -> None:
    """Somebody gives silver a feature, and takes it off again; between, its table is held, and emptied."""
    database = fresh_database(mariadb)
    name = f"{database}.t"
    road, past = begun(mariadb, database, tmp_path, apply=UNLOGGED)
    child_of_parent(road, past, spark)
    begin, protocol = since(road, name), protocol_of(road, name)
    assert begin
    demand(road, name, {**protocol, "writerFeatures": [*protocol["writerFeatures"], "icebergCompatV1"]})
    cascades(road, past, spark, apart=apart)
    emptied_without_key(road, past)
    road.apply(spark)
    held = last_states(road.lake)[name]
    demand(road, name, protocol)
    if held.state == "held":
        release(road.lake, held)
    more(road, past, spark, "t")
    assert since(road, name) > begin
    forget_cuts(road)
    assert check(road, past, "t", spark) >= 1


@pytest.mark.parametrize(("apart", "unread"), [(True, False), (False, False), (True, True)])
def test_a_lost_log_leaves_no_known_time_before(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, apart: bool, unread: bool
) -> None:
    """unread: meanwhile tidegate can't read silver's log."""
    server = mariadb_package.MariaDB(tmp_path / "server", mariadb_package.install(ROOT))
    with server:
        server.query("CREATE DATABASE shop")
        road, past = begun(server, "shop", tmp_path, "t", "u")
        taken(road, spark)
        begin, protocol = since(road, "shop.t"), protocol_of(road, "shop.t")
        if unread:
            of_later = [*protocol["writerFeatures"], "ofLaterTimes"]
            demand(road, "shop.t", {**protocol, "writerFeatures": of_later})
        past.done("UPDATE t SET n = 1", "UPDATE u SET n = 1")
        purge_logs(server)
        with pytest.raises(PositionLost):
            road.capture(seconds=30)
        _accept(road, monkeypatch, "--lost")
        if apart:
            road.capture()
            road.apply(spark)
        past.done(f"CREATE OR REPLACE TABLE t {TABLE}")
        past.done("INSERT INTO t VALUES (7, 7)")
        road.capture()
        road.apply(spark)
        if unread:
            demand(road, "shop.t", protocol)
            held = last_states(road.lake)["shop.t"]
            assert held.state == "held"
            assert not held.releasable, "it waits for rows until silver's log says that its past is unknown"
        for number in range(3):
            past.done(f"UPDATE t SET n = {number}")
            past.done(f"CREATE OR REPLACE TABLE tick {TABLE}", f"INSERT INTO tick VALUES (1, {number})")
            road.capture()
            road.apply(spark)
        after = since(road, "shop.t")
        assert begin
        assert last_states(road.lake)["shop.t"].state == "active"
        assert after == 0 or after > begin, "an UPDATE was lost with the log"


@pytest.mark.parametrize("writer", ["positional", "merge"])
def test_another_writers_change_is_never_told_as_the_past(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    """Rewrites without a change are harmless. Of the rest the kept cuts alone tell, until a cut has had it."""
    database = fresh_database(mariadb)
    names = ("changed", "taken", "packed", "untouched", "odd", "again")
    road, past = begun(mariadb, database, tmp_path, *names, apply=f", writer: {writer}")
    taken(road, spark)
    for name in names:
        more(road, past, spark, name, 1)
    begins = {name: since(road, f"{database}.{name}") for name in names}
    assert all(begins.values())
    table = {name: spark_table(road, f"{database}.{name}") for name in names}
    spark.sql(f"UPDATE {table['changed']} SET n = -1 WHERE NOT _tg_is_current")
    spark.sql(f"DELETE FROM {table['taken']} WHERE NOT _tg_is_current")
    spark.sql(f"OPTIMIZE {table['packed']} FULL")
    spark.sql(f"ALTER TABLE {table['packed']} SET TBLPROPERTIES ('mine' = '1')")
    spark.sql(f"UPDATE {table['odd']} SET _tg_valid_to = {1 << 62} WHERE NOT _tg_is_current")
    spark.sql(f"UPDATE {table['again']} SET n = -1 WHERE NOT _tg_is_current")
    spark.sql(f"RESTORE TABLE {table['again']} TO VERSION AS OF {_version(road, f'{database}.again') - 1}")
    for name in names:
        assert bool(since(road, f"{database}.{name}")) == (name in ("packed", "untouched")), name
    held = road.apply(spark).states.of("held")
    assert [name for name, _ in held] == [f"{database}.again"]

    for _ in range(3):
        past.done(*(f"UPDATE {name} SET n = n + 10" for name in names))
        road.capture()
        road.apply(spark)
    after = {name: since(road, f"{database}.{name}") for name in names}
    assert after["packed"] == begins["packed"]
    assert after["changed"] > begins["changed"]
    assert after["taken"] > begins["taken"]
    assert after["odd"] == 0, "a version ends after all times that are known"
    assert after["again"] == 0
    past.done()
    road.capture()
    road.apply(spark)
    forget_cuts(road)
    counts = {name: check(road, past, name, spark) for name in ("changed", "taken", "packed", "untouched", "odd")}
    assert counts["packed"] > counts["changed"] >= 1
    assert counts["odd"] == 0


def _version(road: Road, name: str) -> int:
    return road.lake.log(tables.silver_path(*name.split("."))).state().version


def test_a_dropped_tables_history_is_as_safe(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road, past = begun(mariadb, database, tmp_path, "kept", "spoilt")
    taken(road, spark)
    begins = {name: since(road, f"{database}.{name}") for name in past.names}
    past.done("DROP TABLE kept")
    past.done("DROP TABLE spoilt")
    taken(road, spark)
    spark.sql(f"UPDATE {spark_table(road, f'{database}.spoilt')} SET n = 77 WHERE id = 1")
    for name in past.names:
        past.done(f"CREATE TABLE {name} {TABLE}")
        past.done(f"INSERT INTO {name} VALUES (1, 5)")
    taken(road, spark)
    for name in past.names:
        more(road, past, spark, name)
    assert since(road, f"{database}.kept") == begins["kept"]
    assert since(road, f"{database}.spoilt") > begins["spoilt"]
    forget_cuts(road)
    assert check(road, past, "kept", spark) > check(road, past, "spoilt", spark) >= 1


def test_kills_keep_a_known_history_and_hide_no_other_writer(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """A killed window's commit has its record. Who writes between the kill and the next try is seen all the same."""
    database = fresh_database(mariadb)
    name = f"{database}.t"
    road, past = begun(mariadb, database, tmp_path, "t")
    taken(road, spark)
    begin = since(road, name)
    points = ("apply_before_commit", "apply_after_commit", "apply_after_merge", "apply_before_publish")
    for point in (*points, "delta_before_commit:2", "delta_after_commit:1", "delta_after_commit:2"):
        past.done("UPDATE t SET n = n + 1")
        past.done(f"ALTER TABLE t ADD COLUMN c{len(past.states)} INT DEFAULT 3")
        past.done(f"INSERT INTO t (id, n) VALUES ({len(past.states) + 100}, 0)", "UPDATE t SET n = n + 1 WHERE id = 2")
        road.capture()
        killed(spark, road.file, point)
        taken(road, spark)
        assert since(road, name) == begin, point
    past.done()
    taken(road, spark)
    forget_cuts(road)
    assert check(road, past, "t", spark) >= len(points)

    past.done("DELETE FROM t WHERE id = 1")
    road.capture()
    killed(spark, road.file, "apply_after_merge")
    spark.sql(f"UPDATE {spark_table(road, name)} SET n = -5 WHERE NOT _tg_is_current")
    taken(road, spark)
    assert since(road, name) == 0
    more(road, past, spark, "t")
    assert since(road, name) > begin
    forget_cuts(road)
    assert check(road, past, "t", spark) >= 1


def test_a_swap_that_is_killed_knows_what_it_has(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """The rebuilt table's beginning comes with its rows, in one commit."""
    database = fresh_database(mariadb)
    name = f"{database}.t"
    road, past = begun(mariadb, database, tmp_path, "t")
    taken(road, spark)
    begin = since(road, name)
    more(road, past, spark, "t")
    spark.sql(f"UPDATE {spark_table(road, name)} SET n = -5 WHERE NOT _tg_is_current")
    taken(road, spark)
    assert since(road, name) == 0
    plan = Rebuild.plan(road.pipeline, road.lake, name, "", "")
    assert rebuild(plan, BackgroundSession(lambda: spark), compare=False, report=road.lines.append) == 0, road.lines
    past.done("UPDATE t SET n = 50")
    road.capture()
    to = plan.to.rpartition("/")[2]
    assert exit_code(_in_a_child, str(road.file), plan.table, to, "swap_after_commit") == -signal.SIGKILL
    assert since(road, name) == begin
    taken(road, spark)
    more(road, past, spark, "t", 1)
    assert since(road, name) == begin
    forget_cuts(road)
    assert check(road, past, "t", spark) >= 3


def test_a_hold_that_is_released_keeps_what_is_known(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """It catches up from its log. A table without the record, as an older release left it, begins anew."""
    database = fresh_database(mariadb)
    name = f"{database}.t"
    road, past = begun(mariadb, database, tmp_path, "t", apply="}\nddl: {add_column: ask")
    taken(road, spark)
    begin = since(road, name)
    past.done("UPDATE t SET n = 5 WHERE id = 1")
    past.done("ALTER TABLE t ADD COLUMN c INT DEFAULT 3")
    past.done("UPDATE t SET c = 5 WHERE id = 1")
    road.capture()
    road.apply(spark)
    held = last_states(road.lake)[name]
    assert held.state == "held"
    release(road.lake, held)
    more(road, past, spark, "t", 2)
    assert since(road, name) == begin
    forget_cuts(road)
    assert check(road, past, "t", spark) >= 3


def test_a_lake_of_before_and_a_cleaned_log(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older release records nothing: what it wrote ends what was known. Maintain takes old entries of the log, and
    keeps what is known.
    """
    database = fresh_database(mariadb)
    road, past = begun(mariadb, database, tmp_path, "t", "quiet")
    taken(road, spark)
    with monkeypatch.context() as older:
        older.setattr("spark_jobs.apply_steps.merge_into_silver.recording_histories", lambda *_: nullcontext())
        more(road, past, spark, "t", 2)
    assert since(road, f"{database}.t") == 0
    at = past.moments(road)[len(past.states) - 1]
    more(road, past, spark, "t", 3)
    assert since(road, f"{database}.t") > at

    begin, log = since(road, f"{database}.quiet"), road.lake.log(tables.silver_path(database, "quiet"))
    job = Maintenance(maintenance_session(spark, 1 << 28), road.pipeline, road.lake, road.lines.append)
    job.now += timedelta(hours=2 * ANCHOR_HOURS)
    before = log.state().version
    maintain.run(job)
    named = said_of_all(road.lake)[f"{database}.quiet"].version
    assert log.state().version > named > before, "it names a commit without rows, since the last one's entry gets old"
    checkpoint_write.write(log.store, named, now_ms=0)
    for version in range(named + 1):
        Path(log.place, "_delta_log", commit_name(version)).unlink()
    assert since(road, f"{database}.quiet") == begin
    forget_cuts(road)
    assert check(road, past, "t", spark) >= 1
    assert check(road, past, "quiet", spark) >= 3
