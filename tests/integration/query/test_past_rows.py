"""Tables with history answer for times whose cuts are gone: as the server's own SELECT was then, or by a refusal."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild, swap
from spark_jobs.session.background import BackgroundSession
from tests.kit.road import Road
from tests.support.known_history import check, forget_cuts, since, taken
from tests.support.past import Past
from tests.support.plain_snapshot import PlainReader
from tests.support.servers import FreshDatabase
from tidegate import config
from tidegate.errors import CutForgotten, QueryRefused
from tidegate.local.server import Server
from tidegate.query.pinned import PinnedCut

pytestmark = [pytest.mark.server, pytest.mark.spark]

TABLE = "(id INT PRIMARY KEY, code VARCHAR(20), n INT)"


def read_while_it_changes(road: Road, past: Past, spark: SparkSession) -> None:
    """A snapshot of `seen`."""
    reader = PlainReader(road, past.database, "seen")
    while not reader.told.is_read:
        reader.low()
        reader.read(10)
        past.done("UPDATE seen SET n = n + 1", "DELETE FROM seen WHERE id = 3")
        reader.high()
        taken(road, spark)
    reader.end()
    taken(road, spark)
    reader.close()


def test_histories_answer_for_times_before_the_kept_cuts(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """Of a table made in the log, of one read by a snapshot, and of one whose history began later: through DDL and
    TRUNCATE, from where each is known. A plain table is refused. A rebuilt table knows as much as the log has.
    """
    database = fresh_database(mariadb)
    mariadb.query(f"CREATE TABLE {database}.seen {TABLE}")
    mariadb.query(f"INSERT INTO {database}.seen VALUES (1, 'a', 0), (2, 'b', 0), (3, 'c', 0)")
    names = f"'{database}.t', '{database}.tick', '{database}.seen'"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f", history: [{names}]", apply=", writer: positional")
    road.capture()
    past = Past(mariadb, database, ["t", "seen", "late"])
    past.begin()
    past.done(f"CREATE TABLE t {TABLE}", f"CREATE TABLE late {TABLE}", f"CREATE TABLE plain {TABLE}")
    for table in ("t", "late", "plain"):
        past.done(f"INSERT INTO {table} VALUES (1, 'x', 0), (2, 'y', 0)")
    read_while_it_changes(road, past, spark)
    assert since(road, f"{database}.seen") == 0, "rows that were read may be older"
    past.done("UPDATE t SET n = 5 WHERE id = 1", "DELETE FROM late WHERE id = 2", "INSERT INTO seen VALUES (9, 'z', 0)")
    past.done("TRUNCATE TABLE t")
    past.done("INSERT INTO t VALUES (1, 'again', 1)")
    taken(road, spark)
    road.file.write_text(road.text.replace(names, f"{names}, '{database}.late'"))
    road.pipeline = config.load(road.file)
    past.done("ALTER TABLE t ADD COLUMN more INT DEFAULT 7")
    past.done("UPDATE late SET n = 1", "DELETE FROM seen WHERE id = 1", "UPDATE t SET more = 8")
    taken(road, spark)
    past.done("DELETE FROM late", "INSERT INTO t (id, code) VALUES (4, 'four')", "UPDATE seen SET n = 70")
    past.done("INSERT INTO late VALUES (3, 'three', 3)")
    taken(road, spark)
    past.done()
    taken(road, spark)
    forget_cuts(road)
    counts = {table: check(road, past, table, spark) for table in past.names}
    print(counts)
    least = {"t": 10, "seen": 5, "late": 1}
    assert all(counts[table] >= wanted for table, wanted in least.items()), counts
    assert since(road, f"{database}.t") < past.moments(road)[1], "its CREATE is in the log"
    with pytest.raises(QueryRefused, match="no cut so old is kept, and it keeps no history"):
        PinnedCut.at(road.lake, "road", past.moments(road)[4]).table(f"{database}.plain")
    with pytest.raises(CutForgotten, match="tells all from"):
        PinnedCut.at(road.lake, "road", 1 << 18)

    plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.late", "", "")
    assert rebuild(plan, BackgroundSession(lambda: spark), compare=False, report=road.lines.append) == 0, road.lines
    swap(plan, BackgroundSession(lambda: spark), report=road.lines.append)
    assert check(road, past, "late", spark) >= counts["t"]


@pytest.mark.parametrize("writer", ["positional", "merge"])
def test_windows_that_leave_versions_out_answer_for_no_time(
    writer: str, mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """Also its beginning, a CREATE, is forgotten; once windows leave nothing out, it begins anew at a cut."""
    database = fresh_database(mariadb)
    names, key = f"'{database}.t', '{database}.tick'", f", history_by_window: ['{database}.t']"
    extra = f", history: [{names}]"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=extra, apply=f", writer: {writer}")
    road.capture()
    past = Past(mariadb, database, ["t"])
    past.begin()
    past.done(f"CREATE TABLE t {TABLE}", "INSERT INTO t VALUES (1, 'x', 0), (2, 'y', 0)")
    taken(road, spark)
    assert since(road, f"{database}.t"), "its CREATE is in the log"

    whole = road.text
    road.file.write_text(whole.replace(extra, extra + key))
    road.pipeline = config.load(road.file)
    for _ in range(2):
        for number in range(3):
            past.done(f"UPDATE t SET n = n + {number + 1} WHERE id = 1")
        taken(road, spark)
        assert since(road, f"{database}.t") == 0

    road.file.write_text(whole)
    road.pipeline = config.load(road.file)
    for _ in range(3):
        past.done("UPDATE t SET n = n + 10 WHERE id = 1")
        past.done("UPDATE t SET n = n + 10 WHERE id = 2")
        taken(road, spark)
    forget_cuts(road)
    assert 0 < check(road, past, "t", spark) < len(past.states) - 6
