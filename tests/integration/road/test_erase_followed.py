"""`tidegate erase --follow-keys`: the rows of other tables that refer to a person's go with them.

In:  a real server; a customer with orders, their lines and addresses; foreign keys that act below the log, and others.
Out: no file of the lake has a value of the person; other customers' rows, and rebuilds, are as before.
     What can't be followed is refused by name, before anything is changed.
"""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild
from spark_jobs.session.background import BackgroundSession
from tests.integration.road.test_erase import PERSON, erased
from tests.integration.road.test_renames import held, run
from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.support.servers import FreshDatabase
from tests.support.stored import places_of
from tidegate.erase.erasure import Erased, Erasure, Order
from tidegate.errors import UsageError
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]

ORDERED = ("customer", "address", "orders", "line")
DELETED = "DELETE FROM customer WHERE id = 4711"


def followed(road: Road, table: str, where: str) -> list[Erased]:
    order = Order(table, where, 5, follow_keys=True)
    return Erasure(road.pipeline, road.lake, lambda _: road.info, order, road.lines.append).run()


def filled(server: Server, database: str) -> None:
    """Two customers; the lines of an order refer to two parents."""
    run(server, database, """
        CREATE TABLE customer (id INT PRIMARY KEY, mail VARCHAR(60), boss INT REFERENCES customer (id))
        CREATE TABLE address (customer INT, kind VARCHAR(9), text TEXT, PRIMARY KEY (customer, kind), FOREIGN KEY (customer) REFERENCES customer (id) ON DELETE CASCADE)
        CREATE TABLE orders (shop INT, number INT, customer INT, note TEXT, PRIMARY KEY (shop, number), FOREIGN KEY (customer) REFERENCES customer (id) ON DELETE CASCADE)
        CREATE TABLE line (id INT PRIMARY KEY, of_number INT, of_shop INT, gift_for INT, note TEXT, FOREIGN KEY (of_shop, of_number) REFERENCES orders (shop, number) ON DELETE CASCADE, FOREIGN KEY (gift_for) REFERENCES customer (id) ON DELETE CASCADE)
    """)  # fmt: skip  # noqa: E501
    for number, who in ((4711, PERSON), (12, "bob")):
        run(server, database, f"""
            INSERT INTO customer VALUES ({number}, '{who}', NULL)
            INSERT INTO address VALUES ({number}, 'home', 'home of {who}'), ({number}, 'work', 'work of {who}')
            INSERT INTO orders VALUES (2, {number}, {number}, 'of {who}'), (3, {number}, {number}, 'of {who}')
            INSERT INTO line VALUES ({number}1, {number}, 2, NULL, 'line of {who}'), ({number}2, {number}, 3, NULL, 'of {who}')
        """)  # fmt: skip  # noqa: E501
    run(server, database, f"INSERT INTO line VALUES (7, NULL, NULL, 4711, 'a gift for {PERSON}')")


def test_rows_that_refer_to_a_person_go_with_them(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road.begun(mariadb, tmp_path, database)
    filled(mariadb, database)
    road.capture()
    assert not held(road.apply(spark))
    Reading(road, spark).run()
    run(mariadb, database, f"UPDATE line SET note = '{PERSON} again' WHERE id = 47111")
    road.capture()
    with pytest.raises(UsageError, match="still has rows"):
        followed(road, f"{database}.customer", "id = 4711")
    run(mariadb, database, DELETED)
    road.capture()
    assert not held(road.apply(spark))
    equal = road.assert_equal()
    with pytest.raises(UsageError, match="a foreign key of"):
        erased(road, f"{database}.customer", "id = 4711")
    done = followed(road, f"{database}.customer", f"mail = '{PERSON}'")
    assert [each.name.split(".")[1] for each in done] == list(ORDERED)
    assert places_of(tmp_path / "lake", PERSON) == set()
    assert road.assert_equal() == equal
    for table in ORDERED:
        plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.{table}", "", "")
        assert rebuild(plan, BackgroundSession(lambda: spark), compare=True, report=road.lines.append) == 0, table


def test_texts_refer_by_their_collation(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road.begun(mariadb, tmp_path, database)
    run(mariadb, database, f"""
        CREATE TABLE customer (mail VARCHAR(60) PRIMARY KEY, a INT) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci
        CREATE TABLE orders (id INT PRIMARY KEY, mail VARCHAR(60), note TEXT, FOREIGN KEY (mail) REFERENCES customer (mail) ON DELETE CASCADE) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci
        INSERT INTO customer VALUES ('Ann@x.org', 1), ('bob@x.org', 1)
        INSERT INTO orders VALUES (1, 'ann@x.org', '{PERSON}'), (2, 'ANN@X.ORG ', '{PERSON}'), (3, 'BOB@x.org', 'bob')
    """)  # fmt: skip  # noqa: E501
    road.capture()
    assert not held(road.apply(spark))
    run(mariadb, database, "DELETE FROM customer WHERE a = 1 AND mail = 'ann@x.org'")
    road.capture()
    assert not held(road.apply(spark))
    done = followed(road, f"{database}.customer", "mail = 'Ann@x.org'")
    assert [each.keys for each in done] == [1, 2]
    assert places_of(tmp_path / "lake", PERSON) == set()
    plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.orders", "", "")
    assert rebuild(plan, BackgroundSession(lambda: spark), compare=True, report=road.lines.append) == 0
    assert road.assert_equal() == {"customer": 1, "orders": 1}
    rmtree(tmp_path / "lake" / plan.to)
    run(
        mariadb,
        database,
        """
        INSERT INTO customer VALUES ('cid', 2), ('zoë', 1)
        INSERT INTO orders VALUES (4, 'CID', ''), (5, 'zoë', '')
        DELETE FROM customer WHERE a = 2
    """,
    )
    road.capture()
    road.apply(spark)
    before = sorted((tmp_path / "lake/bronze").rglob("*"))
    with pytest.raises(UsageError, match="isn't plain ASCII"):  # the collation may take zoë for cid, for all we know
        followed(road, f"{database}.customer", "mail = 'cid'")
    assert sorted((tmp_path / "lake/bronze").rglob("*")) == before


def test_what_cannot_be_followed_is_refused_before_anything_changes(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road.begun(mariadb, tmp_path, database)
    run(mariadb, database, f"""
        CREATE TABLE p (id INT PRIMARY KEY, mail VARCHAR(60) UNIQUE)
        CREATE TABLE by_mail (id INT PRIMARY KEY, mail VARCHAR(60), FOREIGN KEY (mail) REFERENCES p (mail))
        CREATE TABLE q (id INT PRIMARY KEY)
        CREATE TABLE keyless (q INT, FOREIGN KEY (q) REFERENCES q (id))
        CREATE TABLE l (id INT PRIMARY KEY, r INT)
        CREATE TABLE r (id INT PRIMARY KEY, l INT, FOREIGN KEY (l) REFERENCES l (id))
        ALTER TABLE l ADD FOREIGN KEY (r) REFERENCES r (id)
        CREATE TABLE s (id INT PRIMARY KEY)
        CREATE TABLE nulled (id INT PRIMARY KEY, s INT, FOREIGN KEY (s) REFERENCES s (id) ON DELETE SET NULL)
        INSERT INTO p VALUES (1, '{PERSON}')
        INSERT INTO s VALUES (1)
        INSERT INTO nulled VALUES (1, 1)
        DELETE FROM p
        DELETE FROM s
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    before = sorted((tmp_path / "lake/bronze").rglob("*"))
    for table, why in (
        ("p", "its foreign key .* doesn't refer to the key of"),
        ("q", "has no key"),
        ("l", "foreign keys go in a circle"),
        ("s", "the source still has rows of the person"),  # the row that refers to it is there, without its reference
    ):
        with pytest.raises(UsageError, match=why):
            followed(road, f"{database}.{table}", "id = 1")
    assert sorted((tmp_path / "lake/bronze").rglob("*")) == before
