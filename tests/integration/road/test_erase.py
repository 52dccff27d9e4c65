"""`tidegate erase`: a person's values are in no byte of the lake, and all else is as it was (docs/runbooks).

In:  a real server; rows from before the log and behind it, keys that change, a large transaction; an order.
Out: no file of the lake has a value of the person; verify agrees, capture and apply go on, a rebuild has the same rows.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import re
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild
from spark_jobs.session.background import BackgroundSession
from tests.integration.road.test_renames import held, run
from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.support.nursery import Nursery
from tests.support.servers import FreshDatabase
from tests.support.stored import places_of
from tidegate.erase.erasure import Erased, Erasure, Order
from tidegate.errors import CutForgotten, LeaseHeld, UsageError
from tidegate.lake.bronze.index import BronzeIndex, read_segment
from tidegate.lake.cuts import published
from tidegate.lake.jobs.leases import take_lease
from tidegate.lake.people import audit
from tidegate.local.server import Server
from tidegate.segments.window import SegmentRef
from tidegate.tables.actions_table import Act, ActionOutcome

pytestmark = [pytest.mark.server, pytest.mark.spark]

PERSON = "ada-4711@example"
POINTS = (
    "erase_before_chunks",
    "erase_before_chunks_commit",
    "erase_before_bronze_commit",  # the chunks have lost the only rows that the condition is true of
    "erase_after_bronze_commit",
    "erase_after_purge",
    "erase_before_files",
)


def filled(road: Road, spark: SparkSession, database: str) -> None:
    """A table with rows from before the log, and one with all kinds of changes."""
    server = road.server
    road.capture()
    run(server, database, f"""
        CREATE TABLE new (id INT PRIMARY KEY, mail VARCHAR(60), note TEXT)
        INSERT INTO new SELECT id, CONCAT('new ', id), 'x' FROM old WHERE id <= 400
        INSERT INTO new VALUES (4711, '{PERSON} new', 'a'), (4712, 'bob', 'b')
        CREATE TABLE other (id INT PRIMARY KEY, mail VARCHAR(60))
        INSERT INTO other VALUES (4711, 'another person')
        CREATE TABLE child (id INT PRIMARY KEY, of_id INT, FOREIGN KEY (of_id) REFERENCES other (id) ON DELETE CASCADE)
        CREATE TABLE before_it (id INT PRIMARY KEY)
        INSERT INTO before_it VALUES (1)
        RENAME TABLE before_it TO renamed
        CREATE TABLE keyless (id INT)
        INSERT INTO keyless VALUES (1)
    """)  # fmt: skip
    road.capture()
    road.apply(spark)
    Reading(road, spark).run()
    run(server, database, f"UPDATE new SET note = 'b of {PERSON}' WHERE id = 4711")
    run(server, database, f"UPDATE new SET id = id + 10000, note = CONCAT(note, ' {PERSON}') WHERE id = 4711")
    run(server, database, f"UPDATE old SET mail = '{PERSON} again' WHERE id = 250")
    compressed = "GLOBAL log_bin_compress" if server.flavour == "mariadb" else "SESSION binlog_transaction_compression"
    run(server, database, f"""
        SET {compressed} = 1
        BEGIN
        INSERT INTO new SELECT a.id * 1000 + b.id + 1000000, CONCAT('row ', a.id, ' and ', b.id), 'x' FROM old a, old b
        INSERT INTO new SELECT id + 5000, mail, CONCAT(note, ' packed') FROM new WHERE id IN (14711, 4712)
        UPDATE new SET id = 24711 WHERE id = 19711
        UPDATE new SET note = CONCAT(note, id) WHERE id > 20000
        COMMIT
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    assert places_of(road.folder / "lake", PERSON) >= {"bronze", "silver"}


def begun(server: Server, database: str, folder: Path) -> Road:
    run(server, database, f"""
        CREATE TABLE old (id INT PRIMARY KEY, mail VARCHAR(60))
        INSERT INTO old VALUES (1, 'old 1'), (250, '{PERSON} old'), (251, 'old 251')
        INSERT INTO old SELECT o.id + 300 + p.id, 'more' FROM old o, old p WHERE p.id < 3
    """)  # fmt: skip
    return Road(server, folder, include=f"{database}.*")


def erased(road: Road, table: str, where: str) -> Erased:
    (done,) = Erasure(road.pipeline, road.lake, lambda _: road.info, Order(table, where, 5), road.lines.append).run()
    return done


def test_a_person_is_in_no_byte_of_the_lake_at_once(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(any_server)
    road = begun(any_server, database, tmp_path)
    filled(road, spark, database)
    refused(road, database)
    with pytest.raises(UsageError, match="still has rows"):
        erased(road, f"{database}.new", "id = 4711 OR id = 14711")
    run(any_server, database, "DELETE FROM new WHERE id IN (14711, 24711)")
    run(any_server, database, "DELETE FROM old WHERE id = 250")
    road.capture()
    assert not held(road.apply(spark))

    done = erased(road, f"{database}.new", f"id = 4711 OR mail = '{PERSON} new'")
    assert done.keys == 4  # two that they were changed to
    assert done.places.segments.rows == 8
    again = erased(road, f"{database}.new", "id = 4711")
    assert (again.keys, again.places.segments.rows, again.places.segments.files) == (0, 0, 0)
    beside_apply(road, f"{database}.old", "id = 250")
    assert erased(road, f"{database}.old", "id = 250").keys == 1
    assert places_of(tmp_path / "lake", PERSON) == set()
    assert not in_payloads(road)

    run(any_server, database, "UPDATE new SET note = 'later' WHERE id = 4712")
    run(any_server, database, "INSERT INTO new VALUES (4711, 'someone else', '')")
    road.capture()
    assert not held(road.apply(spark))
    assert road.assert_equal()["new"]
    plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.old", "", "")
    assert rebuild(plan, BackgroundSession(lambda: spark), compare=True, report=road.lines.append) == 0, road.lines[-1]


def test_killed_at_each_point_and_run_again_it_ends(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, nursery: Nursery
) -> None:
    """The condition isn't about the key: a run after a kill can't learn the keys from what is left."""
    database = fresh_database(mariadb)
    road = begun(mariadb, database, tmp_path)
    filled(road, spark, database)
    run(mariadb, database, "DELETE FROM old WHERE id = 250")
    road.capture()
    assert not held(road.apply(spark))
    order = ["--table", f"{database}.old", "--where", f"mail = '{PERSON} old'", "--wait", "20"]
    for point in POINTS:
        assert erase(nursery, road, *order, TIDEGATE_FAILPOINT=point)[0] == -signal.SIGKILL, point
    code, said = erase(nursery, road, *order)
    assert (code, f"\nerased: {database}.old: 1 key" in f"\n{said}") == (0, True), said
    for text in (f"{PERSON} old", f"{PERSON} again"):
        assert places_of(tmp_path / "lake", text) == set()
        assert not any(text.encode() in payload for payload in payloads(road))
    assert not list((tmp_path / "lake/control/erasing").iterdir())
    certified(road, f"{database}.old", order, said)
    road.capture()
    assert road.assert_equal()["old"]


def certified(road: Road, table: str, order: list[str], said: str) -> None:
    """The row about it says who, what, and what is left; nothing of the person. Older cuts say why they are gone."""
    done = [each for each in audit.actions(road.lake) if each.action.act is Act.ERASE]
    newest = done[0]
    begun = [each for each in done if each.outcome is ActionOutcome.BEGUN]
    assert (newest.outcome, len(begun), len(done)) == (ActionOutcome.DONE, len(POINTS), len(POINTS) + 1)
    assert (newest.action.tables, newest.action.author.user) == ((table,), getpass.getuser())
    proof = said.split("the SHA-256 of '")[1].split("'", maxsplit=1)[0]
    assert newest.action.subject == hashlib.sha256(f"{proof} {table} {order[3]}".encode()).hexdigest()
    assert newest.detail.startswith(f"{table}: 1 key; bronze: 0 logged rows in 0 files"), newest.detail
    left = re.search(r"left: .*value log, on its machine, until (\S+ \S+) UTC, if capture goes on", newest.detail)
    assert left, newest.detail
    wait = datetime.fromisoformat(f"{left[1]}+00:00") - datetime.now(UTC)
    assert timedelta(minutes=9) < wait < timedelta(minutes=13)
    assert PERSON not in str(done)
    oldest = published.known_cuts(road.lake)[0]
    with pytest.raises(CutForgotten, match=r"a person's rows were erased at 20\S+ \S+ UTC, and all older cuts"):
        published.cut_at(road.lake, "road", oldest - 1)


def beside_apply(road: Road, table: str, where: str) -> None:
    """While apply runs, bronze loses the rows; what apply planned with is still there, and the rest waits."""
    planned = refs(road)
    with take_lease(road.lake, "road", "apply", report=road.lines.append), pytest.raises(LeaseHeld):
        Erasure(road.pipeline, road.lake, lambda _: road.info, Order(table, where, 0), road.lines.append).run()
    assert any(PERSON.encode() in bytes(read_segment(road.lake, ref).payload) for ref in planned)
    assert not in_payloads(road)


def refused(road: Road, database: str) -> None:
    """What can't be erased from is named, and nothing is changed."""
    if road.server.flavour == "mariadb":  # the other one logs a child's rows
        with pytest.raises(UsageError, match="a foreign key of"):
            erased(road, f"{database}.other", "id = 1")
    for table, why in (
        ("renamed", "rows came to it, or went, by RENAME"),
        ("keyless", "has no key"),
        ("no", "no table"),
    ):
        with pytest.raises(UsageError, match=why):
            erased(road, f"{database}.{table}", "id = 1")
    for where in ("nothing = 1", "id = 'a'", "id LIKE 4"):
        with pytest.raises(UsageError):
            erased(road, f"{database}.new", where)


def in_payloads(road: Road) -> bool:
    """Whether a segment has the person's bytes: Parquet's pages are packed."""
    return any(PERSON.encode() in payload for payload in payloads(road))


def payloads(road: Road) -> list[bytes]:
    return [bytes(read_segment(road.lake, ref).payload) for ref in refs(road)]


def refs(road: Road) -> list[SegmentRef]:
    index = BronzeIndex(road.lake)
    index.refresh(0)
    return [ref for of_source in index.refs.values() for ref in of_source]


def erase(nursery: Nursery, road: Road, *arguments: str, **environment: str) -> tuple[int | None, str]:
    """The command in a process of its own: its exit code, and all that it said."""
    server, log = road.server, road.folder / "erase.log"
    log.unlink(missing_ok=True)
    login = {"host": server.host, "port": server.port, "login": server.user, "password": server.password}
    connection = {"AIRFLOW_CONN_ROAD_ONE": json.dumps({"conn_type": "mysql", **login})}
    code = nursery.start(["erase", str(road.file), *arguments], connection | environment, log).wait(300)
    return code, log.read_text().strip()
