"""A table with a past, held by a changed rule, whose beginning has left bronze: its past is given up, by a person.

In:  a real server; tables with history and soft delete, a mask's key that is changed, bronze without its first files.
Out: rebuild refuses, and says the way. Behind it silver has the live rows, masked with the new key, and a new past.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild
from spark_jobs.session.background import BackgroundSession
from tests.integration.road.test_masks import HMAC, SECRET, coded, silver_of
from tests.integration.road.test_renames import held, run
from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.kit.spark import no_spark
from tests.support.servers import FreshDatabase
from tidegate import config, tables
from tidegate.errors import LakeRefused
from tidegate.lake.bronze import retention
from tidegate.lake.bronze.log import BronzeLog
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_its_past_is_given_up_and_begins_anew(
    mariadb: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_VEIL", '{"password": "the key before this one"}')
    database = fresh_database(mariadb)
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON tidegate.* TO '{mariadb.user}'@'%'")
    pasts = f", history: ['{database}.h'], soft_delete: ['{database}.s']"
    masks = f", masks: [{{match: '{database}.*', columns: [m], {HMAC}}}]"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=pasts + masks)
    road.capture()
    for name in "hs":
        run(mariadb, database, f"""
            CREATE TABLE {name} (id INT PRIMARY KEY, m VARCHAR(40))
            INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')
        """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    for name in "hs":
        run(mariadb, database, f"UPDATE {name} SET m = 'd' WHERE id = 1\nDELETE FROM {name} WHERE id = 2")
    road.capture()
    assert not held(road.apply(spark))
    log = BronzeLog.load(road.lake)
    assert log is not None
    retention.remove(log, log.files()["one"][:-1])

    monkeypatch.setenv("AIRFLOW_CONN_VEIL", f'{{"password": "{SECRET}"}}')
    for name in "hs":
        run(mariadb, database, f"UPDATE {name} SET m = 'e' WHERE id = 1")
    road.capture()
    reasons = held(road.apply(spark))
    assert all("masked by other rules" in reasons[f"{database}.{name}"] for name in "hs")
    assert all("its past" in reasons[f"{database}.{name}"] for name in "hs"), reasons
    for name in "hs":
        plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.{name}", "", "")
        with pytest.raises(LakeRefused, match="its past can't be had again: end its mode"):
            rebuild(plan, BackgroundSession(no_spark), compare=False, report=road.lines.append)

    _given_up(road, database, spark, pasts)

    road.file.write_text(road.text)
    road.pipeline = config.load(road.file)
    for name in "hs":
        run(mariadb, database, f"UPDATE {name} SET m = 'f' WHERE id = 1\nDELETE FROM {name} WHERE id = 3")
    road.capture()
    assert not held(road.apply(spark))
    road.assert_equal()
    codes = {"h": ["e", "f", "c"], "s": ["f", "c"]}
    for name, values in codes.items():
        assert sorted(silver_of(road, f"{database}.{name}", "m")) == sorted((coded(value),) for value in values)


def _given_up(road: Road, database: str, spark: SparkSession, pasts: str) -> None:
    """What the reason says: the modes leave the file, the past leaves silver, a snapshot is taken."""
    road.file.write_text(road.text.replace(pasts, ""))
    road.pipeline = config.load(road.file)
    for name, live in (("h", "_tg_is_current"), ("s", "NOT _tg_deleted")):
        uri = road.lake.spark_uri(tables.silver_path(database, name))
        spark.sql(f"DELETE FROM delta.`{uri}` WHERE NOT ({live})")
    assert len(held(road.apply(spark))) == 2
    Reading(road, spark).run(f"{database}.h", f"{database}.s")
    assert not held(road.apply(spark))
    for name in "hs":
        assert silver_of(road, f"{database}.{name}", "id, m") == [(1, coded("e")), (3, coded("c"))]
