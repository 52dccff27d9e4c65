"""Tables of foreign keys that act unseen, read by snapshots while their parents go: nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.kit.snapshots import Reading, states
from tests.support.own_server import own_server_or_skip
from tests.support.plain_snapshot import PlainReader
from tests.support.servers import FreshDatabase
from tidegate.local.server import Server
from tidegate.snapshot import view_reading
from tidegate.snapshot.chunks.chunk_table import ChunkWriter
from tidegate.standing.causes import Cause
from tidegate.tables import WATERMARK_DATABASE

pytestmark = [pytest.mark.server, pytest.mark.spark]

TREE = "CREATE TABLE tree (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES tree (id) ON DELETE CASCADE)"
# 9 goes by its own event, and 5 and 1 with it; 1 comes in an earlier chunk than 5.
ROWS = "INSERT INTO tree VALUES (9, NULL), (5, 9), (1, 5), (8, NULL), (4, 8), (2, 4)"
CHAIN = (
    "CREATE TABLE p (id INT PRIMARY KEY)",
    "CREATE TABLE m (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
    "CREATE TABLE g (id INT PRIMARY KEY, m INT, FOREIGN KEY (m) REFERENCES m (id) ON DELETE CASCADE ON UPDATE CASCADE)",
    "INSERT INTO p VALUES (1), (2), (3), (4), (5)",
    "INSERT INTO m VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)",
    "INSERT INTO g VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)",
)


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def unlogging(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that carries out foreign keys below its log."""
    name, options = ("mariadb", ()) if request.param == "mariadb" else ("mysql9", ("--innodb-native-foreign-keys=ON",))
    with own_server_or_skip(name, tmp_path_factory.mktemp(name), options=options) as server:
        server.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{server.user}'@'%'")
        server.query(f"GRANT LOCK TABLES ON *.* TO '{server.user}'@'%'")
        yield server


def _run(server: Server, database: str, *statements: str) -> None:
    with server.connect(database) as connection, connection.cursor() as cursor:
        for sql in statements:
            cursor.execute(sql)
        connection.commit()


@pytest.mark.parametrize("whole", [True, False])
def test_a_tree_that_is_read_in_chunks_while_rows_of_it_go_waits(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, *, whole: bool
) -> None:
    """Row 5 goes unseen before its chunk is read, so no event and no row says that 1 went with it."""
    database = fresh_database(mariadb)
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{mariadb.user}'@'%'")
    if not whole:
        _run(mariadb, database, TREE, ROWS)
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.capture()
    if whole:
        _run(mariadb, database, TREE, ROWS)
        road.capture()
    road.apply(spark)
    reader = PlainReader(road, database, "tree")
    reader.low()
    reader.read(3)
    _run(mariadb, database, "DELETE FROM tree WHERE id = 9")
    if whole:  # silver is past the delete when the wave comes
        road.capture()
        road.apply(spark)
    reader.read(10)
    reader.high()
    road.capture()
    app = road.apply(spark)
    reader.close()
    held = app.states.get(f"{database}.tree")
    assert held is not None, "it went on"
    assert (held.state, held.cause) == ("held", Cause.NEEDS_ROWS), "one row too many, and nobody would say so"
    reading = Reading(road, spark)
    for _ in range(4):  # by itself it would be asked for later, after one in vain, which a further window ends
        reading.run(f"{database}.tree")
        road.capture()
        app = road.apply(spark)
        if states(app) == {"tree": "active"}:
            break
    assert states(app) == {"tree": "active"}, [*reading.lines, *road.lines]
    assert road.assert_equal() == {"tree": 3}


@pytest.mark.parametrize("shape", ["tree", "chain"])
def test_snapshots_of_trees_and_chains_end_while_their_parents_go(
    unlogging: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shape: str,
) -> None:
    """A parent's row goes each time that chunks are landed, and behind each wave: no table waits."""
    database = fresh_database(unlogging)
    tables, schema = (("tree",), (TREE, ROWS)) if shape == "tree" else (("g", "m", "p"), CHAIN)
    _run(unlogging, database, *schema)
    road = Road(unlogging, tmp_path, include=f"{database}.*")
    road.capture()
    road.apply(spark)
    monkeypatch.setattr(view_reading, "SNAPSHOT_LAND_BYTES", 1)
    root, goes = ("tree", iter((9, 8))) if "tree" in tables else ("p", iter((1, 2, 3, 4)))
    real = ChunkWriter.append

    def landed(writer: ChunkWriter, chunks: Any) -> None:
        real(writer, chunks)
        if (number := next(goes, None)) is not None:
            _run(unlogging, database, f"DELETE FROM {root} WHERE id = {number}")

    monkeypatch.setattr(ChunkWriter, "append", landed)
    road.capture()
    road.apply(spark)  # which ends that snapshot, where it has begun the table
    reading = Reading(road, spark)
    app = reading.run(*(f"{database}.{table}" for table in tables))
    assert states(app) == dict.fromkeys(tables, "active")
    assert not any("can't be followed" in line for line in road.lines), road.lines
    road.assert_equal()
    _run(unlogging, database, f"DELETE FROM {root}")
    road.capture()
    road.apply(spark)
    assert set(road.assert_equal().values()) == {0}
