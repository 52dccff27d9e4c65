"""MariaDB 11.8 from end to end: what earlier releases haven't is equal in silver, by the log and by a snapshot.

In:  a server of our own from Debian's packages; where they can't be had this test is skipped, or fails in CI.
Out: rows equal to the server's SELECT; nothing waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.support.own_server import own_server_or_skip
from tidegate.local.server import Server
from tidegate.tables import WATERMARK_DATABASE, State

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(900)]

_BY_ROWS = "WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME LIMIT 100 AUTO PARTITIONS 3"
_BY_HOURS = "WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME INTERVAL 1 HOUR AUTO"
_MADE = {
    "far": "(id INT PRIMARY KEY, a TIMESTAMP(6) NULL, b TIMESTAMP NULL)",
    "by_rows": f"(id INT PRIMARY KEY, v INT) {_BY_ROWS}",
    "by_hours": f"(id INT PRIMARY KEY, v INT) {_BY_HOURS}",
    "keyless": "(v INT, d TIMESTAMP(3)) WITH SYSTEM VERSIONING",
    "ids": "(id UUID DEFAULT UUID_v7() PRIMARY KEY, v VECTOR(3) NOT NULL, VECTOR INDEX (v))",
    "texts": "(t VARCHAR(20) COLLATE uca1400_as_cs PRIMARY KEY, v INT)",
}
_FILLED = (
    "INSERT INTO far VALUES (1, '2106-02-07 06:28:15.999999', '2106-02-07 06:28:15')",
    "INSERT INTO far VALUES (2, '2038-01-19 03:14:08.000001', '2038-01-19 03:14:08')",
    "INSERT INTO far VALUES (3, '1970-01-01 00:00:01', '2038-01-19 03:14:07')",
    "INSERT INTO by_rows SELECT seq, seq FROM seq_1_to_300",
    "UPDATE by_rows SET v = v + 1",
    "UPDATE by_rows SET v = v + 1 WHERE id < 200",
    "DELETE FROM by_rows WHERE id % 7 = 0",
    "INSERT INTO by_hours VALUES (1, 1), (2, 2)",
    "SET timestamp = UNIX_TIMESTAMP() + 7300",  # hours later: the server makes partitions
    "UPDATE by_hours SET v = 5",
    "DELETE FROM by_hours WHERE id = 2",
    "SET timestamp = DEFAULT",
    "INSERT INTO keyless VALUES (1, '2050-01-01'), (1, '2050-01-01'), (2, '2000-01-01')",
    "DELETE FROM keyless WHERE v = 1 LIMIT 1",
    "INSERT INTO ids (v) VALUES (VEC_FromText('[1,2,3]')), (VEC_FromText('[-0.5,2,3e10]'))",
    "INSERT INTO texts VALUES ('a', 1), ('A', 2), ('ä', 3)",
)
_CHANGED = (
    "UPDATE far SET b = '2106-02-07 06:28:14' WHERE id = 2",
    "UPDATE by_rows SET v = v + 1",
    "UPDATE by_rows SET v = v + 1",
    "ALTER TABLE by_rows DROP PARTITION p0",  # of history
    "UPDATE by_rows SET v = 0 WHERE id = 1",
    "UPDATE by_hours SET v = 7",
    "DELETE FROM ids LIMIT 1",
    "UPDATE texts SET v = 9 WHERE t = 'A'",
    "DELETE FROM keyless LIMIT 1",
)
_COUNTS = {"far": 3, "by_rows": 258, "by_hours": 1, "keyless": 2, "ids": 2, "texts": 3}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with own_server_or_skip("mariadb118", tmp_path_factory.mktemp("own") / "server") as server:
        yield server


def _run(server: Server, database: str, *statements: str) -> None:
    with server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        for statement in statements:
            cursor.execute(statement)
            connection.commit()


def _partitions(server: Server, table: str) -> int:
    sql = "SELECT count(*) FROM information_schema.partitions WHERE table_schema = 'one' AND table_name = '{}'"
    return int(server.query(sql.format(table))[0][0])


@pytest.mark.parametrize("existing", [False, True], ids=["by the log", "by a snapshot"])
def test_what_is_new_in_it_is_equal(server: Server, spark: SparkSession, tmp_path: Path, existing: bool) -> None:
    server.query("CREATE OR REPLACE DATABASE one")
    road = Road(server, tmp_path, include="one.*")
    creates = [f"CREATE TABLE {name} {columns}" for name, columns in _MADE.items()]
    if existing:
        _run(server, "one", *creates, *_FILLED)
        server.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{server.user}'@'%'")
        road.capture()
        Reading(road, spark).run()
    else:
        road.capture()
        _run(server, "one", *creates, *_FILLED)
        road.capture()
        road.apply(spark)
    assert road.assert_equal() == _COUNTS
    made = {table: _partitions(server, table) for table in ("by_rows", "by_hours")}
    _run(server, "one", *_CHANGED)
    assert _partitions(server, "by_rows") >= made["by_rows"], "the server made others for the one that went"
    road.capture()
    app = road.apply(spark)
    assert not [name for name, state in app.states.items() if state.state is State.HELD]
    assert road.assert_equal() == {**_COUNTS, "ids": 1, "keyless": 1}
