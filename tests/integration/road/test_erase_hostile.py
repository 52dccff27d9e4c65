"""`tidegate erase` where the log or a reader's memory hides whose a row is: it is erased all the same, or refused.

In:  a real server: partial row images, keys that a foreign key changes, a snapshot that is being read; an order.
Out: no byte of the person, and the rows of others; or a refusal. A deleted row doesn't come back.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.road.test_erase import PERSON, erased, payloads
from tests.integration.road.test_renames import held, run
from tests.kit.road import Road
from tests.kit.snapshots import Reader, patiently
from tests.support.servers import FreshDatabase
from tests.support.stored import places_of
from tidegate.errors import LeaseHeld, UsageError
from tidegate.lake.bronze import retention
from tidegate.lake.bronze.log import BronzeLog
from tidegate.local.server import Server
from tidegate.snapshot.chunks.chunk import Chunk
from tidegate.snapshot.chunks.chunk_table import ChunkWriter
from tidegate.snapshot.work import SnapshotWork

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_an_after_image_has_the_cells_that_it_lacks_from_the_one_before(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """FULL_NODUP: an update's after image has only what changed, here a part of the key."""
    database = fresh_database(mariadb)
    road = Road.begun(mariadb, tmp_path, database)
    run(mariadb, database, f"""
        CREATE TABLE t (a INT, b INT, mail VARCHAR(60), phone VARCHAR(60), PRIMARY KEY (a, b))
        SET binlog_row_image = 'FULL_NODUP'
        INSERT INTO t VALUES (1, 1, 'a person by her first mail', ''), (2, 2, 'bob', '123'), (3, 3, 'eve', '321')
        UPDATE t SET b = 77 WHERE a = 1
        UPDATE t SET mail = '{PERSON} by her second mail' WHERE a = 1
        DELETE FROM t WHERE a = 1
        UPDATE t SET mail = 'the second mail of bob' WHERE a = 2
        DELETE FROM t WHERE a = 2
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    assert erased(road, f"{database}.t", "mail = 'the second mail of bob' AND phone IS NULL").keys == 0
    assert erased(road, f"{database}.t", "a = 1 AND b = 1").keys == 2
    assert places_of(tmp_path / "lake", PERSON) == set()
    assert not any(PERSON.encode() in payload for payload in payloads(road))
    assert any(b"the second mail of bob" in payload for payload in payloads(road))
    assert erased(road, f"{database}.t", "mail = 'the second mail of bob' AND phone = '123'").keys == 1


def test_a_column_that_was_added_later_is_not_asked_for_null(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """Rows had its default, and their old images don't say so."""
    database = fresh_database(mariadb)
    road = Road.begun(mariadb, tmp_path, database)
    run(mariadb, database, """
        CREATE TABLE t (id INT PRIMARY KEY, mail VARCHAR(60))
        INSERT INTO t VALUES (1, 'somebody else'), (2, 'bob')
        ALTER TABLE t ADD COLUMN consent VARCHAR(10) DEFAULT 'given'
        DELETE FROM t WHERE id = 1
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    with pytest.raises(UsageError, match="whether consent was NULL"):
        erased(road, f"{database}.t", "mail = 'somebody else' AND consent IS NULL")


def test_keys_that_a_foreign_key_changed_unseen_are_refused(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road.begun(mariadb, tmp_path, database)
    cascade = "FOREIGN KEY (pid) REFERENCES p (id) ON UPDATE CASCADE"
    run(mariadb, database, f"""
        CREATE TABLE p (id INT PRIMARY KEY)
        CREATE TABLE c (pid INT, n INT, mail VARCHAR(60), PRIMARY KEY (pid, n), {cascade})
        CREATE TABLE d (n INT PRIMARY KEY, pid INT, mail VARCHAR(60), {cascade})
        INSERT INTO p VALUES (1), (5)
        INSERT INTO c VALUES (1, 1, 'a person by her first mail'), (5, 1, 'bob')
        INSERT INTO d VALUES (1, 1, '{PERSON}'), (2, 1, 'bob')
        UPDATE p SET id = 2 WHERE id = 1
        UPDATE c SET mail = 'a second mail' WHERE pid = 2
        DELETE FROM c WHERE pid = 2
        DELETE FROM d WHERE n = 1
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    with pytest.raises(UsageError, match="changes keys of its rows"):
        erased(road, f"{database}.c", "pid = 1 AND n = 1")
    assert erased(road, f"{database}.d", "n = 1").keys == 1
    assert places_of(tmp_path / "lake", PERSON) == set()
    road.capture()
    road.apply(spark)
    assert road.assert_equal()["c"] == 1


def test_a_snapshot_that_is_read_meanwhile_does_not_bring_the_person_back(
    mariadb: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its reader has read the row, and lands it after the delete was applied."""
    database = fresh_database(mariadb)
    road = Road.begun(mariadb, tmp_path, database)
    run(
        mariadb,
        database,
        f"""
        CREATE TABLE t (id INT PRIMARY KEY, mail VARCHAR(60))
        INSERT INTO t VALUES (1, '{PERSON}'), (2, 'bob')
    """,
    )
    road.capture()
    assert not held(road.apply(spark))
    may_land, has_read, append = threading.Event(), threading.Event(), ChunkWriter.append

    def waits(writer: ChunkWriter, chunks: Sequence[Chunk]) -> None:
        if chunks:
            has_read.set()
            may_land.wait(120)
        append(writer, chunks)

    monkeypatch.setattr(ChunkWriter, "append", waits)
    work = SnapshotWork(road.pipeline, road.lake, lambda _: road.info, road.lines.append)
    reader = Reader(work, f"{database}.t")
    try:
        assert has_read.wait(60), road.lines
        run(mariadb, database, "DELETE FROM t WHERE id = 1")
        road.capture()
        road.apply(spark)
        with pytest.raises(LeaseHeld, match="snapshot"):
            erased(road, f"{database}.t", "id = 1")
    finally:
        may_land.set()
    for _ in patiently():
        if reader.is_over(0.3):
            break
        road.capture(heartbeat=True)  # nothing else is committed: the wave's end is proved by quiet
        road.apply(spark)
    road.capture()
    road.apply(spark)
    assert erased(road, f"{database}.t", "id = 1").places.chunks.rows == 1
    assert places_of(tmp_path / "lake", PERSON) == set()
    road.capture()
    road.apply(spark)
    assert road.assert_equal()["t"] == 1


def test_a_partial_image_that_does_not_say_whose_row_it_is_is_named(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """The row's beginning has left bronze, and silver leaves out the column that the condition asks."""
    database = fresh_database(mariadb)
    extra = f", columns: [{{match: '{database}.t', exclude: [mail]}}]"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=extra)
    road.capture()
    run(mariadb, database, f"""
        CREATE TABLE t (id INT PRIMARY KEY, mail VARCHAR(60), note TEXT)
        INSERT INTO t VALUES (1, '{PERSON}', 'a'), (2, 'bob', 'b')
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    run(mariadb, database, "INSERT INTO t VALUES (3, 'eve', 'c')")
    road.capture()
    assert not held(road.apply(spark))
    log = BronzeLog.load(road.lake)
    assert log is not None
    retention.remove(log, log.files()["one"][:-1])
    run(mariadb, database, """
        SET binlog_row_image = 'MINIMAL'
        UPDATE t SET note = 'what she said' WHERE id = 1
        UPDATE t SET note = 'what eve said' WHERE id = 3
        DELETE FROM t WHERE id = 1
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    done = erased(road, f"{database}.t", f"id < 3 AND mail = '{PERSON}'")
    assert done.keys == 0
    assert "left: 1 key in partial images" in done.line
    assert any(b"what she said" in payload for payload in payloads(road))
    done = erased(road, f"{database}.t", "id = 1")
    assert done.keys == 1
    assert [left.startswith("rows in capture's value log") for left in done.places.left] == [True]
    assert not any(b"what she said" in payload for payload in payloads(road))
