"""A deleted row leaves the lake by age alone (docs/runbooks/erase-a-person.md): silver, bronze, chunks, records.

In:  a real server, rows from before the log and behind it, a delete, the settings of maintain; a lake made older.
Out: no file of the lake has a value of the person; all else is equal, and verify agrees.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs import maintain
from spark_jobs.maintenance import Maintenance
from spark_jobs.session.spark import maintenance_session
from tests.integration.road.test_renames import held, run
from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.support.aged import age_all
from tests.support.servers import FreshDatabase
from tests.support.stored import places_of
from tidegate.config import Maintain
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]

PERSON = "ada-4711@example"
DAYS = 100  # of two runs of maintain; more than all that is kept together


def test_a_deleted_rows_values_are_in_no_file_of_the_lake(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    run(mariadb, database, f"""
        CREATE TABLE old (id INT PRIMARY KEY, mail VARCHAR(60))
        INSERT INTO old SELECT seq, CONCAT('old ', seq) FROM seq_1_to_500
        UPDATE old SET mail = '{PERSON} old' WHERE id = 250
        CREATE TABLE by_mail (mail VARCHAR(60) PRIMARY KEY, n INT)
        INSERT INTO by_mail SELECT CONCAT('m', seq), seq FROM seq_1_to_500
        INSERT INTO by_mail VALUES ('{PERSON} key', 1)
    """)  # fmt: skip
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.capture()
    run(mariadb, database, f"""
        CREATE TABLE new (id INT PRIMARY KEY, mail VARCHAR(60), note TEXT)
        INSERT INTO new SELECT seq, CONCAT('new ', seq), 'x' FROM seq_1_to_500
        INSERT INTO new VALUES (4711, '{PERSON} new', 'a')
    """)  # fmt: skip
    road.capture()
    road.apply(spark)
    Reading(road, spark).run()
    run(mariadb, database, f"UPDATE new SET note = 'b of {PERSON}' WHERE id = 4711")
    road.capture()
    assert not held(road.apply(spark))
    assert places_of(tmp_path / "lake", PERSON) >= {"bronze", "silver"}

    run(mariadb, database, f"""
        DELETE FROM new WHERE id = 4711
        DELETE FROM old WHERE id = 250
        DELETE FROM by_mail WHERE mail LIKE '{PERSON}%'
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    maintained(road, spark)
    run(mariadb, database, "UPDATE old SET mail = 'later' WHERE id = 1")
    road.capture()
    road.apply(spark)
    for _ in range(3):
        age_all(spark, road.lake, 24 * DAYS)
        maintained(road, spark)
    assert places_of(tmp_path / "lake", PERSON) == set()
    assert road.assert_equal() == {"old": 499, "by_mail": 500, "new": 500}


def maintained(road: Road, spark: SparkSession) -> None:
    """As a daily run would, much later by its own clock."""
    settings = Maintain(purge_days=10, keep_bronze_days=10, keep_records_days=10)
    job = Maintenance(
        maintenance_session(spark, 1 << 28),
        road.pipeline.model_copy(update={"maintain": settings}),
        road.lake,
        road.lines.append,
        datetime.now(UTC) + timedelta(days=DAYS),
    )
    maintain.run(job)
