"""`tidegate erase` beside a source that goes on, where others get the person's keys: their rows stay.

In:  a real server; new rows with the person's keys; a foreign key that referred elsewhere once; a kill.
Out: no file of the lake has a value of the person; silver, its past, changelogs and a rebuild have all others' rows.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild
from spark_jobs.session.background import BackgroundSession
from tests.integration.road.test_erase import PERSON, erase, erased
from tests.integration.road.test_erase_followed import followed
from tests.integration.road.test_erase_past import mails
from tests.integration.road.test_renames import held, run
from tests.kit.changelogs import changes_of
from tests.kit.road import Road
from tests.support.nursery import Nursery
from tests.support.servers import FreshDatabase
from tests.support.stored import places_of
from tidegate.changelog.changelog_table import DELETE, ERASED, INSERT, ROW_OPS, UPDATE
from tidegate.erase.erasure import Erasure, Order
from tidegate.errors import UsageError
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]


def applied(road: Road, spark: SparkSession) -> None:
    road.capture()
    assert not held(road.apply(spark))


def is_rebuilt_equal(road: Road, spark: SparkSession, table: str) -> bool:
    plan = Rebuild.plan(road.pipeline, road.lake, table, "", "")
    return rebuild(plan, BackgroundSession(lambda: spark), compare=True, report=road.lines.append) == 0


def test_whoever_gets_a_key_meanwhile_keeps_the_row(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """The source has none of the keys when it is asked; then a new customer gets one, before the last part begins."""
    database = fresh_database(mariadb)
    extra = f", history: ['{database}.address'], soft_delete: ['{database}.customer'], changelog: ['{database}.*']"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=extra)
    road.capture()
    run(mariadb, database, f"""
        CREATE TABLE customer (id INT PRIMARY KEY, mail VARCHAR(60))
        CREATE TABLE address (id INT PRIMARY KEY, customer INT REFERENCES customer (id), mail VARCHAR(60))
        INSERT INTO customer VALUES (1, '{PERSON}'), (2, 'bob')
        INSERT INTO address VALUES (1, 1, '{PERSON}'), (2, 2, 'bob')
    """)  # fmt: skip
    applied(road, spark)
    run(mariadb, database, "DELETE FROM address WHERE id = 1")
    run(mariadb, database, "DELETE FROM customer WHERE id = 1")
    applied(road, spark)
    new = [
        "INSERT INTO customer VALUES (1, 'eve')",
        "INSERT INTO address VALUES (1, 1, 'eve')",
        "UPDATE address SET mail = 'eve again' WHERE id = 1",
    ]

    def report(line: str) -> None:
        road.lines.append(line)
        if ".customer: bronze:" in line:
            while new:
                run(mariadb, database, new.pop(0))
                applied(road, spark)

    order = Order(f"{database}.customer", "id = 1", 5, follow_keys=True)
    assert len(Erasure(road.pipeline, road.lake, lambda _: road.info, order, report).run()) == 2
    assert not new
    assert places_of(tmp_path / "lake", PERSON) == set()
    assert mails(road, database, "address") == ["bob", "eve", "eve again"]
    assert mails(road, database, "customer") == ["bob", "eve"]
    ops = [row["op"] for row in changes_of(road.lake, database, "address") if row["op"] in (*ROW_OPS, ERASED, "gap")]
    assert ops == [ERASED, INSERT, ERASED, INSERT, UPDATE]
    run(mariadb, database, "DELETE FROM address WHERE id = 2")
    applied(road, spark)
    assert road.assert_equal() == {"customer": 2, "address": 1}
    assert changes_of(road.lake, database, "address")[-1]["op"] == DELETE
    assert is_rebuilt_equal(road, spark, f"{database}.address")
    assert is_rebuilt_equal(road, spark, f"{database}.customer")


@pytest.mark.small_files("apart")
def test_a_rename_meanwhile_is_told_as_its_copies_have_the_deleted_rows(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road.begun(mariadb, tmp_path, database)
    for statements in (
        f"""
        CREATE TABLE customer (id INT PRIMARY KEY, mail VARCHAR(60))
        INSERT INTO customer VALUES (1, '{PERSON}'), (2, 'bob'), (3, 'eve')
        """,
        "DELETE FROM customer WHERE id = 1",
    ):
        run(mariadb, database, statements)
        road.capture()
        road.apply()
    left = ["RENAME TABLE customer TO client"]

    def report(line: str) -> None:
        if ".customer: bronze:" in line and left:
            run(mariadb, database, left.pop())
            road.capture()
            road.apply()

    order = Order(f"{database}.customer", "id = 1", 5)
    (done,) = Erasure(road.pipeline, road.lake, lambda _: road.info, order, report).run()
    assert not left
    assert road.assert_equal() == {"client": 2}
    assert places_of(tmp_path / "lake", PERSON) == {"silver"}
    assert "renamed meanwhile" in done.line


def test_a_foreign_key_that_referred_to_another_table_once_is_not_followed_by_its_new_one(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road.begun(mariadb, tmp_path, database)
    run(mariadb, database, f"""
        CREATE TABLE p (id INT PRIMARY KEY, mail VARCHAR(60))
        CREATE TABLE q (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)
        CREATE TABLE c (id INT PRIMARY KEY, x INT, mail VARCHAR(60), CONSTRAINT k FOREIGN KEY (x) REFERENCES p (id) ON DELETE CASCADE)
        INSERT INTO p VALUES (1, '{PERSON}'), (2, 'bob')
        INSERT INTO q VALUES (5, 2)
        INSERT INTO c VALUES (1, 1, '{PERSON}')
        DELETE FROM p WHERE id = 1
    """)  # fmt: skip  # noqa: E501
    applied(road, spark)
    run(mariadb, database, """
        ALTER TABLE c DROP FOREIGN KEY k
        ALTER TABLE c ADD CONSTRAINT l FOREIGN KEY (x) REFERENCES q (id) ON DELETE CASCADE
    """)  # fmt: skip
    applied(road, spark)
    with pytest.raises(UsageError, match="changes rows that the log"):
        followed(road, f"{database}.p", "id = 1")


def test_a_killed_run_ends_with_its_option_also_behind_one_without(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, nursery: Nursery
) -> None:
    """The run without it takes the parent's last rows, from which the children's were learnt."""
    database = fresh_database(mariadb)
    road = Road.begun(mariadb, tmp_path, database)
    run(mariadb, database, f"""
        CREATE TABLE p (id INT PRIMARY KEY, mail VARCHAR(60))
        CREATE TABLE c (id INT PRIMARY KEY, p INT REFERENCES p (id), mail VARCHAR(60))
        INSERT INTO p VALUES (1, '{PERSON}')
        INSERT INTO c VALUES (1, 1, '{PERSON}'), (2, NULL, 'bob')
        DELETE FROM c WHERE id = 1
        DELETE FROM p WHERE id = 1
    """)  # fmt: skip
    applied(road, spark)
    order = ["--table", f"{database}.p", "--where", "id = 1", "--wait", "20", "--follow-keys"]
    assert erase(nursery, road, *order, TIDEGATE_FAILPOINT="erase_before_chunks")[0] == -signal.SIGKILL
    assert "another table" in erased(road, f"{database}.p", "id = 1").line
    followed(road, f"{database}.p", "id = 1")
    assert places_of(tmp_path / "lake", PERSON) == set()
    assert not list((tmp_path / "lake/control/erasing").iterdir())
