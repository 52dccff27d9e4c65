"""Others' rewrites of silver that say they changed no row: OPTIMIZE and REORG go on, and one that loses rows is held.

In:  a real server; Spark's own OPTIMIZE and REORG, and its writer with `dataChange: false`, as people repack files.
Out: each broken one is named with its version, its engine and both numbers of rows, before anything is written on it;
     a snapshot, or `rebuild --swap` of a past, brings the source back.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild, swap
from spark_jobs.session.background import BackgroundSession
from tests.integration.road.test_past_taken_back import rows
from tests.integration.road.test_renames import held, run
from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.support.servers import FreshDatabase
from tidegate import tables
from tidegate.lake.people.audit import actions
from tidegate.lake.silver.check import check_silver
from tidegate.lake.standing.held import last_states
from tidegate.local.server import Server
from tidegate.snapshot.progress.automatic import waiting
from tidegate.standing.shown import line_of
from tidegate.tables.actions_table import Act

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(900)]

NAMES = ("p", "h", "s")


@pytest.mark.parametrize("writer", ["positional", "merge"])
def test_a_rewrite_that_loses_rows_is_held_and_others_go_on(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    database = fresh_database(mariadb)
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON tidegate.* TO '{mariadb.user}'@'%'")
    keys = f", history: ['{database}.h'], soft_delete: ['{database}.s']"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=keys, apply=f", writer: {writer}")
    road.capture()

    def step(statement: str) -> dict[str, str]:
        run(mariadb, database, "\n".join(statement.format(name) for name in NAMES))
        road.capture(heartbeat=True)
        return held(road.apply(spark))

    def place(name: str) -> str:
        return road.lake.spark_uri(tables.silver_path(database, name))

    assert not step("CREATE TABLE {0} (id INT PRIMARY KEY, v INT)\nINSERT INTO {0} VALUES (1, 1), (2, 2), (3, 3)")
    assert not step("INSERT INTO {0} VALUES (4, 4), (5, 5), (6, 6)")
    assert not step("UPDATE {0} SET v = v + 10 WHERE id IN (1, 4)\nDELETE FROM {0} WHERE id IN (2, 5)")
    known = {name: rows(road, database, name) for name in NAMES}
    for name in NAMES:
        for right in ("REORG TABLE {0} APPLY (PURGE)", "OPTIMIZE {0} FULL"):
            spark.sql(right.format(f"delta.`{place(name)}`"))
        assert rows(road, database, name) == known[name]
    assert not step("UPDATE {0} SET v = v + 10 WHERE id IN (3, 4)")
    assert not [action for action in actions(road.lake) if action.action is Act.WRITE]

    known = {name: rows(road, database, name) for name in NAMES}
    for name in NAMES:
        kept = spark.read.format("delta").load(place(name)).where("id <> 1")
        kept.write.format("delta").mode("overwrite").option("dataChange", "false").save(place(name))
        assert rows(road, database, name) != known[name]
    checked = check_silver(road.lake, road.pipeline, lambda *_: False)
    assert [table.unlike for table in checked] == ["uneven"] * len(NAMES)
    reasons = step("UPDATE {0} SET v = 99 WHERE id = 6")
    assert reasons.keys() == {f"{database}.{name}" for name in NAMES}
    for name in NAMES:
        before, after = len(known[name]), len(known[name]) - (2 if name == "h" else 1)
        assert f"{after} rows in the place of files with {before}" in reasons[f"{database}.{name}"]
        assert "(WRITE by Apache-Spark/4" in reasons[f"{database}.{name}"]
        line = line_of(last_states(road.lake)[f"{database}.{name}"])
        assert ("snapshot start" if name == "p" else "rebuild") in line
    assert waiting(road.pipeline, road.lake).keys() == {f"{database}.p"}, "a snapshot has no past"

    Reading(road, spark).run()
    background = BackgroundSession(lambda: spark)
    for name in ("h", "s"):
        plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.{name}", "", "")
        assert rebuild(plan, background, compare=False, report=road.lines.append) == 0
        swap(plan, background, report=road.lines.append)
    assert not step("INSERT INTO {0} VALUES (7, 7)")
    assert road.assert_equal() == dict.fromkeys(NAMES, 5)
    for name, live in (("h", "'_tg_is_current': True"), ("s", "'_tg_deleted': False")):
        ended = {row for row in known[name] if live not in row}
        assert ended
        assert ended < set(rows(road, database, name))
