"""Tables with a past under masks, left-out columns and row filters; and a history that is made after the fact.

In:  a real server; both writers, a killed apply.
Out: versions as the rules show them; no plain value outside bronze, not in what a killed apply had staged either.
"""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild, swap
from spark_jobs.session.background import BackgroundSession
from tests.integration.road.test_masks import HMAC, SECRET, coded
from tests.integration.road.test_renames import held, run
from tests.kit.road import Road
from tests.kit.spark import no_spark
from tests.support.driver import killed
from tests.support.past import Past
from tests.support.readers import READERS
from tests.support.servers import FreshDatabase
from tests.support.stored import places_of
from tidegate import config, tables
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]

PLAIN = "secret-4711"
WRITERS = pytest.mark.parametrize("writer", ["positional", "merge"])


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_VEIL", f'{{"conn_type": "generic", "password": "{SECRET}"}}')


@WRITERS
def test_a_history_has_what_the_rules_show(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    """A row that enters or leaves the condition begins or ends. Then the condition's column is dropped."""
    database = fresh_database(mariadb)
    table = f"{database}.t"
    extra = (
        f", history: ['{table}'], masks: [{{match: '{table}', columns: [m], {HMAC}}}]"
        f", columns: [{{match: '{table}', exclude: [x]}}], rows: [{{match: '{table}', where: 'n < 5'}}]"
    )
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=extra, apply=f", writer: {writer}")
    road.capture()
    run(mariadb, database, f"""
        CREATE TABLE t (id INT PRIMARY KEY, m VARCHAR(40), x VARCHAR(40), n INT)
        INSERT INTO t VALUES (1, '{PLAIN}', '{PLAIN}', 1), (2, '{PLAIN} 2', 'a', 9), (3, 'c', 'c', 3)
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    run(mariadb, database, f"""
        UPDATE t SET m = '{PLAIN} b' WHERE id = 1
        UPDATE t SET n = 2 WHERE id = 2
        UPDATE t SET n = 7 WHERE id = 1
        DELETE FROM t WHERE id = 2
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    rows = READERS["DuckDB"](road.lake.uri(tables.silver_path(database, "t"))).to_pylist()
    assert "x" not in rows[0]
    assert all(row["_tg_from_known"] for row in rows)
    seen = sorted((row["id"], row["m"], row["n"], row["_tg_is_current"]) for row in rows)
    assert seen == sorted([
        (1, coded(PLAIN), 1, False),
        (1, coded(f"{PLAIN} b"), 1, False),
        (2, coded(f"{PLAIN} 2"), 2, False),
        (3, coded("c"), 3, True),
    ])  # fmt: skip
    road.assert_equal()
    assert places_of(tmp_path / "lake", PLAIN) <= {"bronze"}
    run(mariadb, database, "ALTER TABLE t DROP COLUMN n")
    road.capture()
    assert "column n" in held(road.apply(spark))[table]


@WRITERS
def test_what_a_killed_apply_staged_is_masked(
    mariadb: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    writer: str,
) -> None:
    database = fresh_database(mariadb)
    extra = (
        f", history: ['{database}.h'], soft_delete: ['{database}.s']"
        f", masks: [{{match: '{database}.*', columns: [m], {HMAC}}}]"
        f", columns: [{{match: '{database}.*', exclude: [x]}}]"
    )
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=extra, apply=f", writer: {writer}")
    road.capture()
    for name in "hst":
        run(mariadb, database, f"""
            CREATE TABLE {name} (id INT PRIMARY KEY, m VARCHAR(40), x VARCHAR(40))
            INSERT INTO {name} VALUES (1, '{PLAIN}', '{PLAIN}')
        """)  # fmt: skip
    road.capture()
    caplog.set_level(logging.DEBUG, "tidegate")
    killed(spark, road.file, "apply_after_decode")
    assert places_of(tmp_path / "lake", PLAIN) <= {"bronze"}
    # The positional writer keeps so few changes in the driver's memory.
    assert any((tmp_path / "lake/staging").rglob("*.parquet")) is (writer == "merge")
    assert not held(road.apply(spark))
    assert places_of(tmp_path / "lake", PLAIN) <= {"bronze"}
    assert PLAIN not in caplog.text + "".join(road.lines)


def test_a_history_is_made_after_the_fact(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """By a rebuild: all versions since the table's CREATE, as if the file had named it from then on."""
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=", history: ['none.none']")
    road.capture()
    past = Past(mariadb, database, ["t"])
    past.begin()
    past.done("CREATE TABLE t (id INT PRIMARY KEY, code VARCHAR(20))")
    for number in range(4):
        past.done(f"REPLACE INTO t VALUES (1, 'v{number}')", f"INSERT INTO t VALUES ({number + 10}, 'x')")
    road.capture()
    road.apply(spark)
    past.done("DELETE FROM t WHERE id = 11")
    road.capture()
    road.apply(spark)
    road.file.write_text(road.text.replace("none.none", f"{database}.*"))
    road.pipeline = config.load(road.file)
    for name in ("t", "tick"):
        plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.{name}", "", "")
        assert rebuild(plan, BackgroundSession(lambda: spark), compare=False, report=road.lines.append) == 0
        swap(plan, BackgroundSession(no_spark), report=road.lines.append)
    past.done("UPDATE t SET code = 'last' WHERE id = 1")
    road.capture()
    assert not held(road.apply(spark))
    road.assert_equal()
    assert past.check(road)
