"""Generated columns of rows that have changed again since: the source computes them for the log's own rows.

In:  a server of our own from Debian's packages; where they can't be had these tests are skipped, or fail in CI.
Out: silver with the values of the log, while the server's rows have others.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.asked import begun, run, waiting_in
from tests.support.own_server import own_server_or_skip
from tests.support.readers import rows_of
from tidegate.connections import variable
from tidegate.local.server import Server
from tidegate.tables import WATERMARK_DATABASE, silver_path

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(900)]

_HOT = (
    "id INT PRIMARY KEY, name VARCHAR(20), n INT CHECK (n < 100), f FLOAT, j JSON, d DATE, u VARCHAR(9) NOT NULL UNIQUE"
    ", e VARCHAR(9) NOT NULL, low VARCHAR(20) AS (lower(name)), twice INT AS (n * 2) STORED, g DOUBLE AS (f + n)"
    ", k VARCHAR(9) AS (json_value(j, '$.k')) STORED, y INT AS (if(d IS NULL, NULL, year(d)))"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with own_server_or_skip("mariadb118", tmp_path_factory.mktemp("own") / "server") as server:
        server.query(f"CREATE DATABASE IF NOT EXISTS {WATERMARK_DATABASE}")
        server.query(f"GRANT CREATE TEMPORARY TABLES ON {WATERMARK_DATABASE}.* TO '{server.user}'@'%'")
        yield server


@pytest.fixture
def _login(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    place = f"{server.host}:{server.port}"
    monkeypatch.setenv(variable("road_one"), f"mysql://{server.user}:{server.password}@{place}/")


@pytest.mark.usefixtures("_login")
def test_rows_that_change_at_every_moment_have_the_values_of_the_log(
    server: Server, spark: SparkSession, tmp_path: Path
) -> None:
    rows = [f"({row}, 'Ann', {row}, -0.0, '{{}}', '2020-01-0{row + 1}', 'u{row}', 'e')" for row in range(4)]
    insert = f"INSERT INTO hot (id, name, n, f, j, d, u, e) VALUES {', '.join(rows)}"
    road = begun(server, tmp_path, f"CREATE TABLE hot ({_HOT})", insert)
    assert waiting_in(road, spark) == {}
    place = server.query("SHOW MASTER STATUS")
    for turn in range(3):
        run(
            server,
            f"UPDATE hot SET name = 'T''é{turn}', n = n + 1, f = -0.5 * n, j = '{{\"k\": \"ü{turn}\"}}' WHERE id < 3",
            f"UPDATE hot SET d = NULL, u = concat('v', id), name = NULL WHERE id = {turn}",
        )
        expected = [tuple(row) for row in server.query("SELECT * FROM one.hot ORDER BY id")]
        road.capture()
        run(server, "UPDATE hot SET name = concat(name, '!'), n = n + 7, d = now()", "DELETE FROM hot WHERE id = 3")
        if turn == 2:
            run(server, "DELETE FROM hot")
        place = server.query("SHOW MASTER STATUS")
        assert waiting_in(road, spark) == {}
        columns = "id, name, n, f, j, d, u, e, low, twice, g, k, y"
        rows_there = sorted(rows_of(road.lake.uri(silver_path("one", "hot")), columns))
        assert rows_there == expected
        assert server.query("SHOW MASTER STATUS") == place, "the server logs nothing of the question"
        road.capture()
        assert waiting_in(road, spark) == {}
    assert road.assert_equal() == {"hot": 0}


@pytest.mark.usefixtures("_login")
def test_what_a_writer_may_have_computed_otherwise_is_not_computed_again(
    server: Server, spark: SparkSession, tmp_path: Path
) -> None:
    whole = "id INT PRIMARY KEY, name VARCHAR(20)"
    low = "low VARCHAR(20) AS (lower(name))"
    tables = {
        "divided": f"({whole}, n INT, part DECIMAL(20,10) AS (n / 3) STORED)",
        "moment": f"({whole}, n INT, at TIME AS (maketime(n, 0, 0)) STORED)",
        "parted": f"({whole}, n INT, {low}) PARTITION BY HASH (id) PARTITIONS 2",
        "twice": f"({whole}, n INT, {low}) CHARACTER SET cp932",
        "listed": f"({whole}, n INT, e ENUM('a', ''), v VARCHAR(20) AS (concat(name, n, e)))",
    }
    creates = [f"CREATE TABLE {name} {columns}" for name, columns in tables.items()]
    fills = [f"INSERT INTO {name} (id, name, n) VALUES (1, 'Ann', 1)" for name in tables]
    road = begun(server, tmp_path, *creates, *fills, "UPDATE listed SET e = ''")
    assert waiting_in(road, spark) == {}
    run(server, *(f"UPDATE {name} SET name = '表', n = 10" for name in tables))
    road.capture()
    run(server, *(f"UPDATE {name} SET name = 'Cy', n = 7" for name in tables))
    waiting = waiting_in(road, spark)
    assert waiting.keys() == {f"one.{name}" for name in tables}
    assert all("changed again at the source since" in reason for reason in waiting.values())
    road.capture()
    assert waiting_in(road, spark) == {}
    assert road.assert_equal() == dict.fromkeys(tables, 1)
