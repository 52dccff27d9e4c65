"""`tidegate erase` from one of several tables that flow into one table of silver (tables.routes).

In:  a real server; two shards with rows of the same keys, in a table with a changelog and one with soft delete.
Out: no file has a value of the person, and the other shard keeps its rows of the same key, those of the past, too.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild
from spark_jobs.session.background import BackgroundSession
from tests.integration.road.test_erase import PERSON, erased
from tests.integration.road.test_erase_past import rows
from tests.integration.road.test_renames import held, run
from tests.kit.changelogs import changes_of
from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tests.support.stored import places_of
from tidegate.changelog.changelog_table import ERASED
from tidegate.errors import UsageError
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]

WHERE = "id = 4711"
OTHER = "eve@example"  # the same keys in the other shard
CHANGES = 3  # of each person: an insert, an update, a delete


def test_a_person_leaves_one_shard_and_the_others_keep_their_rows(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    extra = f", routes: [{{match: '{database}.([lp])_\\d', to: '{database}.\\1'}}]"
    extra += f", soft_delete: ['{database}.p'], changelog: ['{database}.l']"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=extra)
    road.capture()
    for table in ("l", "p"):
        for number, who in ((1, PERSON), (2, OTHER)):
            run(mariadb, database, f"""
                CREATE TABLE {table}_{number} (id INT PRIMARY KEY, mail VARCHAR(60))
                INSERT INTO {table}_{number} VALUES (4711, '{who}'), (1, 'bob')
                UPDATE {table}_{number} SET mail = '2 {who}' WHERE {WHERE}
            """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    for table in ("l", "p"):
        run(mariadb, database, f"DELETE FROM {table}_1 WHERE {WHERE}")
    road.capture()
    assert not held(road.apply(spark))
    run(mariadb, database, f"DELETE FROM p_2 WHERE {WHERE}")
    road.capture()
    assert not held(road.apply(spark))
    before = [row for row in rows(road, database, "p") if PERSON not in row["mail"]]
    logged = len(changes_of(road.lake, database, "l"))

    with pytest.raises(UsageError, match="its rows come from several tables"):
        erased(road, f"{database}.p", WHERE)
    with pytest.raises(UsageError, match="the source still has rows of the person"):
        erased(road, f"{database}.l_2", WHERE)
    for table in ("l_1", "p_1"):
        assert erased(road, f"{database}.{table}", WHERE).keys == 1
    assert places_of(tmp_path / "lake", PERSON) == set()

    assert in_order(rows(road, database, "p")) == in_order(before)
    assert len(before) == 2 + 1, "bob of both shards, and the other one's marked row"
    changes = changes_of(road.lake, database, "l")
    assert (len(changes), [row["op"] for row in changes].count(ERASED)) == (logged, CHANGES)
    assert road.assert_equal() == {"l_1": 1, "l_2": 2, "p_1": 1, "p_2": 1}
    for table in ("l", "p"):
        plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.{table}", "", "")
        assert rebuild(plan, BackgroundSession(lambda: spark), compare=True, report=road.lines.append) == 0, table


def in_order(of: list[dict[str, object]]) -> list[str]:
    return sorted(map(repr, of))
