"""Small windows of tables with history: no small files are left behind, and every moment is as the server showed it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.kit.road import Road
from tests.support.past import Past
from tests.support.seeds import seed
from tests.support.servers import FreshDatabase
from tidegate import tables
from tidegate.delta.log import Change
from tidegate.local.server import Server
from tidegate.upsert.few_rows import SMALL_FILE_BYTES

pytestmark = [pytest.mark.server, pytest.mark.small_files("joined")]

WINDOWS = 16


@pytest.mark.parametrize("upkeep", [0, 1 << 20])
def test_small_windows_put_versions_into_files_with_those_of_small_files(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path, upkeep: int
) -> None:
    """No window starts Spark. upkeep: whether small files are packed afterwards."""
    database, rng = fresh_database(mariadb), random.Random(seed())
    keys = f", history: ['{database}.*']"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=keys, apply=f", upkeep_bytes: {upkeep}")
    road.capture()
    past = Past(mariadb, database, ["t"])
    past.begin()
    past.done("CREATE TABLE t (id INT PRIMARY KEY, code VARCHAR(20), n INT)")
    past.done("INSERT INTO t SELECT seq, LEFT(MD5(seq), 20), 0 FROM seq_1_to_400")
    for number in range(WINDOWS):
        for _ in range(rng.randint(1, 3)):
            key = rng.randrange(400)
            work = [
                f"UPDATE t SET n = n + 1 WHERE id BETWEEN {key} AND {key + rng.randrange(8)}",
                f"DELETE FROM t WHERE id = {key}",
                f"REPLACE INTO t VALUES ({key}, 'again {number}', {number})",
                f"INSERT INTO t SELECT MAX(id) + 1, 'new', {number} FROM t",
            ]
            past.done(*rng.sample(work, k=rng.randint(1, 3)))
        road.capture()
        road.apply()
    assert past.check(road) > 400
    files = road.lake.log(tables.silver_path(database, "t")).state().files
    small = [file for file in files if file.size <= SMALL_FILE_BYTES]
    assert len(small) < WINDOWS // 2, f"{len(files)} files; apart there were two for each of {WINDOWS} windows"
    mixed = [file.size for file in files if file.nulls(tables.VALID_TO) not in (0, file.rows)]
    assert all(size <= 2 * SMALL_FILE_BYTES for size in mixed), "a packed file has ended versions, or current ones"


def test_history_in_partitions(mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path) -> None:
    """Their owner's: silver's files lie by a column. Windows of new rows alone are among them, and moves to and fro."""
    database, rng = fresh_database(mariadb), random.Random(seed())
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f", history: ['{database}.*']")
    road.capture()
    past = Past(mariadb, database, ["t"])
    past.begin()
    past.done("CREATE TABLE t (id INT PRIMARY KEY, region VARCHAR(20), n INT)")
    road.capture()
    road.apply()
    silver = road.lake.log(tables.silver_path(database, "t"))
    state = silver.state()
    silver.commit(state, Change([{"metaData": {**state.metadata, "partitionColumns": ["region"]}}], "PARTITION"))
    for number in range(WINDOWS // 2):
        past.done(f"INSERT INTO t SELECT seq + {10 * number}, ELT(1 + seq % 3, 'a', 'b', NULL), 0 FROM seq_1_to_10")
        for _ in range(rng.randrange(4) if number % 2 else 0):
            key = rng.randrange(10 * number)
            past.done(f"UPDATE t SET n = n + 1, region = 'c' WHERE id BETWEEN {key} AND {key + rng.randrange(8)}")
            past.done(f"DELETE FROM t WHERE id = {key}")
        road.capture()
        app = road.apply()
        assert not [state.reason for state in app.states.values() if state.state == "held"]
    past.check(road)
    state = silver.state()
    assert state.partition_columns == ("region",)
    assert {file.partition_values["region"] for file in state.files} >= {"a", "b", None}
