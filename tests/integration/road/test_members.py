"""Members of ENUM and SET that their column's character set lacks, end to end: silver has what a SELECT shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.own_server import own_server_or_skip
from tidegate.local.server import Server
from tidegate.tables import State

pytestmark = [pytest.mark.server, pytest.mark.spark]

LATER = (
    "ALTER TABLE changed MODIFY e ENUM('日', 'é', 'b') CHARACTER SET latin1",
    "INSERT INTO changed VALUES (3, '?'), (4, 'b')",
    "ALTER TABLE taken CONVERT TO CHARACTER SET latin1",
    "INSERT INTO taken VALUES (3, 2), (4, 'b')",
)


@pytest.mark.parametrize("metadata", ["FULL", "less"])
@pytest.mark.parametrize("flavour", ["mariadb", "mysql9"])
def test_silver_has_the_members_that_the_server_has(
    flavour: str, metadata: str, spark: SparkSession, tmp_path: Path
) -> None:
    less = "NO_LOG" if flavour == "mariadb" else "MINIMAL"
    option = f"--binlog-row-metadata={less if metadata == 'less' else metadata}"
    with own_server_or_skip(flavour, tmp_path / "server", options=(option,)) as server:
        server.query("CREATE DATABASE d CHARACTER SET utf8mb4")
        road = Road.begun(
            server, tmp_path, "d",
            "SET sql_mode = ''",
            "CREATE TABLE lacks (id INT PRIMARY KEY, e ENUM('a', 'é', '日') CHARACTER SET latin1,"
            " s SET('x', '日') CHARACTER SET ascii)",
            "CREATE TABLE changed (id INT PRIMARY KEY, e ENUM('日', 'é', 'b'))",
            "CREATE TABLE taken (id INT PRIMARY KEY, e ENUM('a', 'é', 'b'))",
            "INSERT INTO lacks VALUES (1, 'é', 'x'), (2, 3, 3), (3, '?', 2)",
            "INSERT INTO changed VALUES (2, 'é'), (5, 'b')",
            "INSERT INTO taken VALUES (1, 'a'), (5, 'b')",
        )  # fmt: skip
        _compared(road, spark, {"lacks": 3, "changed": 2, "taken": 2})
        _run(server, *LATER)
        _compared(road, spark, {"lacks": 3, "changed": 4, "taken": 4})


def test_more_members_than_bits_in_a_set(spark: SparkSession, tmp_path: Path) -> None:
    """A MariaDB without strict mode takes them, if all beyond the 64th stand in the list already."""
    members = ", ".join(f"'{number if number < 60 else 1}'" for number in range(66))
    with own_server_or_skip("mariadb", tmp_path / "server") as server:
        server.query("CREATE DATABASE d")
        road = Road.begun(
            server, tmp_path, "d",
            "SET sql_mode = ''",
            f"CREATE TABLE many (id INT PRIMARY KEY, s SET({members}), KEY (s))",
            "INSERT INTO many VALUES (1, '3,5'), (2, 1 << 63), (3, -1), (4, '')",
        )  # fmt: skip
        _compared(road, spark, {"many": 4})
        _run(server, "INSERT INTO many VALUES (5, 1 << 63 | 1), (6, '59')", "DELETE FROM many WHERE id = 3")
        _compared(road, spark, {"many": 5})
        _run(server, "ALTER TABLE many MODIFY s VARCHAR(999)", "UPDATE many SET s = 'x' WHERE id = 4")
        _compared(road, spark, {"many": 5})


def _run(server: Server, *statements: str) -> None:
    with server.connect("d") as connection, connection.cursor() as cursor:
        for statement in ("SET sql_mode = ''", *statements):
            cursor.execute(statement)
        connection.commit()


def _compared(road: Road, spark: SparkSession, counts: dict[str, int]) -> None:
    road.capture()
    app = road.apply(spark)
    assert not [(name, state.reason) for name, state in app.states.of(State.HELD)]
    assert road.assert_equal() == counts
