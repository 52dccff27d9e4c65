"""Generated columns that MariaDB 11.8 logs in inserts alone: apply asks the source for updated rows' values.

In:  a server of our own from Debian's packages; where they can't be had these tests are skipped, or fail in CI.
Out: silver equal to the server's SELECT; a table waits where its rows change faster than they can be asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.asked import lacking
from spark_jobs.rebuild import Rebuild, rebuild
from spark_jobs.session import source_logins
from spark_jobs.session.background import BackgroundSession
from tests.kit.asked import begun, run, waiting_in
from tests.kit.road import Road
from tests.kit.snapshots import Reading, changing
from tests.support.own_server import own_server_or_skip
from tidegate.connections import variable
from tidegate.local.server import Server
from tidegate.tables import WATERMARK_DATABASE, State

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(900)]

_ZOO = {
    "numbers": "id INT PRIMARY KEY, a INT, f FLOAT, d DECIMAL(20,4), v INT AS (a + 1), w DOUBLE AS (f * 2) STORED,"
    " x DECIMAL(21,4) AS (d + a), n INT",
    "texts": "t VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, u VARCHAR(20) CHARACTER SET latin1,"
    " v VARCHAR(60) AS (concat(u, '-', upper(t), '''')), l INT AS (char_length(u)) STORED",
    "dates": "d DATE, n INT, t DATETIME(3), v DATETIME AS (date_add(t, INTERVAL 1 DAY)), y INT AS (year(d)) STORED,"
    " z VARCHAR(10) AS (coalesce(d, 'none')), PRIMARY KEY (n, d)",
    "documents": "id BIGINT UNSIGNED PRIMARY KEY, j JSON, v VARCHAR(20) AS (json_value(j, '$.a')) STORED,"
    " w INT AS (json_length(j)), e ENUM('x','y') , ev INT AS (e + 0), UNIQUE (v)",
    "chained": "id BINARY(4) PRIMARY KEY, a INT, b INT AS (a * 2) STORED, c INT AS (b + a) VIRTUAL, s SET('p','q'),"
    " g VARCHAR(9) AS (if(s = 'p', 'only', 'more'))",
    "counted": "id INT PRIMARY KEY, hits INT, name VARCHAR(20), low VARCHAR(20) AS (lower(name))",
}
_FILLED = (
    "INSERT INTO numbers (id, a, f, d, n) VALUES (1, 1, 0.1, 1.5, 1), (2, 2, -0.0, 2.5, 2), (3, NULL, NULL, NULL, 3)",
    "UPDATE numbers SET a = 7, n = 4 WHERE id = 1",
    "UPDATE numbers SET f = 0.0 WHERE id = 2",
    "UPDATE numbers SET f = 1e20 WHERE id = 3",
    "UPDATE numbers SET id = 9 WHERE id = 3",
    "INSERT INTO texts (t, u) VALUES ('a', 'ä'), ('ü', NULL), ('x''y', 'z')",
    "UPDATE texts SET u = 'é' WHERE t = 'a'",
    "UPDATE texts SET t = 'A' WHERE t = 'a'",
    "UPDATE texts SET u = 'q' WHERE t = 'ü'",
    "UPDATE texts SET u = 'r' WHERE t = 'x''y'",
    "INSERT INTO dates (d, n, t) VALUES ('2020-02-29', 1, '2020-02-29 01:02:03.004'), ('2021-01-01', 1, NULL)",
    "UPDATE dates SET t = '1999-12-31 23:59:59.999' WHERE d = '2021-01-01'",
    "UPDATE dates SET d = '2022-02-02' WHERE d = '2020-02-29'",
    "INSERT INTO documents (id, j, e) VALUES (1, '{\"a\": 1}', 'x'), (18446744073709551615, '{}', NULL)",
    'UPDATE documents SET j = \'{"a": "b", "c": 3}\'  WHERE id = 1',
    "UPDATE documents SET e = 'y'",
    "INSERT INTO chained (id, a, s) VALUES ('a', 1, 'p'), ('b', 2, 'p,q')",
    "UPDATE chained SET a = 5, s = '' WHERE a = 1",
    "UPDATE chained SET a = 6",
    "DELETE FROM chained WHERE b = 12 LIMIT 1",
    "INSERT INTO counted (id, hits, name) VALUES (1, 0, 'Ann'), (2, 0, 'Bob')",
    "UPDATE counted SET hits = hits + 1",
    "INSERT INTO counted (id, hits, name) VALUES (1, 0, 'Eve') ON DUPLICATE KEY UPDATE name = 'Eve'",
    "REPLACE INTO counted (id, hits, name) VALUES (2, 7, 'Bea')",
)

_NAMES = (
    ", renames: [{match: 'one.*', columns: {id: key_id, a: b, b: a, v: x, x: v, d: day, t: key_t, n: num, low: small}}]"
)
_GOING = ("emptied", "dropped", "renamed", "deleted")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with own_server_or_skip("mariadb118", tmp_path_factory.mktemp("own") / "server") as server:
        yield server


@pytest.fixture
def _login(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    place = f"{server.host}:{server.port}"
    monkeypatch.setenv(variable("road_one"), f"mysql://{server.user}:{server.password}@{place}/")


@pytest.mark.usefixtures("_login")
@pytest.mark.parametrize(
    ("apply", "extra"),
    [("", ""), (", writer: merge", ""), (", driver_decode_bytes: 0", ""), ("", _NAMES)],
    ids=["here", "merge", "workers", "renamed"],
)
def test_updated_rows_have_the_values_that_the_source_computes(
    server: Server, spark: SparkSession, tmp_path: Path, apply: str, extra: str
) -> None:
    creates = [f"CREATE TABLE {name} ({columns})" for name, columns in _ZOO.items()]
    road = begun(server, tmp_path, *creates, *_FILLED, extra=extra, apply=apply)
    assert waiting_in(road, spark) == {}
    assert road.assert_equal() == {
        "numbers": 3, "texts": 3, "dates": 2, "documents": 2, "chained": 1, "counted": 2,
    }  # fmt: skip


@pytest.mark.usefixtures("_login")
def test_a_row_that_changed_again_since_is_taken_with_its_later_change(
    server: Server, spark: SparkSession, tmp_path: Path
) -> None:
    filled = "INSERT INTO counted (id, hits, name) VALUES (1, 0, 'Ann'), (2, 0, 'Bob')"
    road = begun(server, tmp_path, f"CREATE TABLE counted ({_ZOO['counted']})", filled)
    assert waiting_in(road, spark) == {}
    run(server, "UPDATE counted SET hits = 1", "UPDATE counted SET name = 'EVE' WHERE id = 1")
    road.capture()
    run(server, "UPDATE counted SET hits = 2")  # the value doesn't hang on it
    assert waiting_in(road, spark) == {}
    run(server, "UPDATE counted SET name = 'ADA' WHERE id = 1")
    road.capture()
    assert waiting_in(road, spark) == {}
    assert road.assert_equal() == {"counted": 2}
    run(server, "UPDATE counted SET name = 'Cy' WHERE id = 2")
    road.capture()
    run(server, "UPDATE counted SET name = 'Di' WHERE id = 2")
    (reason,) = waiting_in(road, spark).values()
    assert "changed again at the source since" in reason
    assert f"it needs GRANT CREATE TEMPORARY TABLES ON {WATERMARK_DATABASE}.* and that database" in reason
    road.capture()
    assert waiting_in(road, spark) == {}
    assert road.assert_equal() == {"counted": 2}
    run(server, "UPDATE counted SET name = 'Gone' WHERE id = 2")
    road.capture()
    run(server, "DELETE FROM counted WHERE id = 2")
    assert len(waiting_in(road, spark)) == 1
    road.capture()
    assert waiting_in(road, spark) == {}
    assert road.assert_equal() == {"counted": 1}


@pytest.mark.usefixtures("_login")
def test_a_changed_expression_is_noticed_before_it_is_captured(
    server: Server, spark: SparkSession, tmp_path: Path
) -> None:
    road = begun(
        server,
        tmp_path,
        "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9), v VARCHAR(20) AS (concat(a, 'x', cast(id AS CHAR))))",
        "INSERT INTO t (id, a) VALUES (1, 'a'), (2, 'b')",
        "UPDATE t SET a = 'c' WHERE id = 1",
    )
    assert waiting_in(road, spark) == {}
    assert road.assert_equal() == {"t": 2}
    run(server, "UPDATE t SET a = 'd' WHERE id = 1", "ALTER TABLE t ADD n INT")
    road.capture()
    run(server, "ALTER TABLE t MODIFY v VARCHAR(20) AS (concat(a, 'y'))")
    (reason,) = waiting_in(road, spark).values()
    assert "the table has been changed since at the source" in reason
    road.capture()
    (reason,) = waiting_in(road, spark).values()
    assert "a statement in the window changed how its values are computed" in reason
    Reading(road, spark).run(at_once=True)
    assert waiting_in(road, spark) == {}
    assert road.assert_equal() == {"t": 2}


@pytest.mark.usefixtures("_login")
def test_rows_that_go_in_the_window_are_not_asked_for(server: Server, spark: SparkSession, tmp_path: Path) -> None:
    creates = [f"CREATE TABLE {name} ({_ZOO['counted']})" for name in _GOING]
    fills = [f"INSERT INTO {name} (id, hits, name) VALUES (1, 0, 'Ann'), (2, 0, 'Bob')" for name in _GOING]
    road = begun(server, tmp_path, *creates, *fills)
    assert waiting_in(road, spark) == {}
    run(server, *(f"UPDATE {name} SET name = 'Cid'" for name in _GOING))
    run(server, "TRUNCATE emptied", "INSERT INTO emptied (id, hits, name) VALUES (1, 1, 'Di')", "DROP TABLE dropped")
    run(server, "UPDATE emptied SET name = 'Eli'", "RENAME TABLE renamed TO other", "DELETE FROM deleted WHERE id = 1")
    road.capture()
    waiting = waiting_in(road, spark)
    assert waiting.keys() == {"one.renamed", "one.other", "one.dropped"}, waiting
    Reading(road, spark).run()
    assert road.assert_equal() == {"emptied": 1, "deleted": 1, "other": 2}


@pytest.mark.usefixtures("_login")
def test_an_answered_prepared_transaction_masks_and_filters(
    server: Server, spark: SparkSession, tmp_path: Path
) -> None:
    rules = (
        ", masks: [{match: one.masked, columns: [low], how: constant, value: hidden}]"
        ", rows: [{match: one.filtered, where: \"low = 'eve'\"}], soft_delete: [one.soft], changelog: [one.told]"
    )
    tables = ("masked", "filtered", "soft", "told", "prepared")
    creates = [f"CREATE TABLE {name} ({_ZOO['counted']})" for name in tables]
    fills = [f"INSERT INTO {name} (id, hits, name) VALUES (1, 0, 'Ann'), (2, 0, 'Eve')" for name in tables]
    road = begun(server, tmp_path, *creates, *fills, extra=rules)
    assert waiting_in(road, spark) == {}
    run(server, *(f"UPDATE {name} SET name = if(id = 1, 'Eve', 'Ann')" for name in ("masked", "filtered")))
    xa = ("XA START 'x'", "UPDATE prepared SET name = 'Di' WHERE id = 1", "XA END 'x'", "XA PREPARE 'x'")
    with server.connect("one") as connection, connection.cursor() as cursor:
        for statement in xa:
            cursor.execute(statement)
    road.capture()
    assert waiting_in(road, spark) == {}
    with server.connect("one") as connection, connection.cursor() as cursor:
        cursor.execute("XA COMMIT 'x'")
    road.capture()
    assert waiting_in(road, spark) == {}
    assert road.assert_equal() == {"masked": 2, "filtered": 1, "soft": 2, "told": 2, "prepared": 2}
    run(server, *(f"UPDATE {name} SET name = 'Hal' WHERE id = 1" for name in ("soft", "told")))
    road.capture()
    waiting = waiting_in(road, spark)
    assert waiting.keys() == {"one.soft", "one.told"}, "what keeps earlier rows needs every image"
    assert all("an update doesn't tell column low" in reason for reason in waiting.values())


@pytest.mark.usefixtures("_login")
def test_too_many_rows_wait_for_a_snapshot(
    server: Server, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    road = begun(server, tmp_path, f"CREATE TABLE counted ({_ZOO['counted']})")
    assert waiting_in(road, spark) == {}
    monkeypatch.setattr(lacking, "ASKED_ROWS_MAX", 3)
    run(
        server,
        "INSERT INTO counted (id, hits, name) VALUES (1, 0, 'Ann'), (2, 0, 'Bob')",
        "UPDATE counted SET hits = 2 WHERE id = 1",
        "UPDATE counted SET hits = 3 WHERE id = 2",
    )
    road.capture()
    (reason,) = waiting_in(road, spark).values()
    assert "more than 3 changes" in reason
    # Its rows are of the last update's moment: that one comes once more, and is asked for.
    Reading(road, spark).run(at_once=True)
    assert road.assert_equal() == {"counted": 2}


@pytest.mark.parametrize("login", ["{user}:{password}@{host}:1", "{user}:wrong@{host}:{port}"], ids=["down", "refused"])
def test_a_source_that_cannot_be_asked_holds_its_tables_alone(
    server: Server, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, login: str
) -> None:
    place = login.format(user=server.user, password=server.password, host=server.host, port=server.port)
    monkeypatch.setenv(variable("road_one"), f"mysql://{place}/")
    kept, left = (f"CREATE TABLE {name} ({_ZOO['counted']})" for name in ("counted", "bare"))
    creates = (kept, left, "CREATE TABLE plain (id INT PRIMARY KEY, v INT)", "INSERT INTO plain VALUES (1, 1)")
    filled = [f"INSERT INTO {name} (id, hits, name) VALUES (1, 0, 'Ann')" for name in ("counted", "bare")]
    changed = [f"UPDATE {name} SET hits = 2" for name in ("counted", "bare")]
    without = ", columns: [{match: one.bare, exclude: [low]}]"
    road = begun(server, tmp_path, *creates, *filled, *changed, extra=without)
    ((name, reason),) = waiting_in(road, spark).items()
    assert (name, "can't be asked for generated columns" in reason, server.password in reason) == (
        "one.counted",
        True,
        False,
    )
    assert "tried again by itself" in reason
    assert road.assert_equal() == {"plain": 1, "bare": 1}


@pytest.mark.usefixtures("_login")
def test_a_locked_table_keeps_no_window_waiting(
    server: Server, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_logins, "ASKED_ANSWER_SECONDS", 2.0)
    tables = ("counted", "other")
    creates = [f"CREATE TABLE {name} ({_ZOO['counted']})" for name in tables]
    filled = [f"INSERT INTO {name} (id, hits, name) VALUES (1, 0, 'Ann')" for name in tables]
    road = begun(server, tmp_path, *creates, *filled, *(f"UPDATE {name} SET hits = 2" for name in tables))
    with server.connect("one") as connection, connection.cursor() as cursor:
        cursor.execute("LOCK TABLES counted WRITE")
        ((name, reason),) = waiting_in(road, spark).items()
    assert name == "one.counted"
    assert "tried again by itself" in reason
    assert road.assert_equal() == {"other": 1}


@pytest.mark.usefixtures("_login")
def test_a_value_that_cannot_be_read_is_its_tables_alone(server: Server, spark: SparkSession, tmp_path: Path) -> None:
    wide = f"CREATE TABLE dated (d DATE, pad VARCHAR(12000), {_ZOO['counted']})"
    fill = "INSERT INTO dated (d, pad, id, hits) SELECT '2020-01-01', repeat('x', 12000), seq, 0 FROM seq_1_to_400"
    other = (f"CREATE TABLE other ({_ZOO['counted']})", "INSERT INTO other (id, hits, name) VALUES (1, 0, 'Ann')")
    road = begun(server, tmp_path, wide, fill, *other, apply=", zero_dates: error")
    assert waiting_in(road, spark) == {}
    run(server, "UPDATE dated SET hits = 1", "UPDATE other SET hits = 1")
    road.capture()
    run(server, "SET sql_mode = ''", "UPDATE dated SET d = '0000-00-00'")
    for _ in range(2):
        waiting = waiting_in(road, spark)
        assert waiting.keys() == {"one.dated"}, waiting
        road.capture()
    assert road.assert_equal() == {"other": 1}


# Columns, and what is changed.
_SHOWN = {
    "precise": ("a DATETIME(3) DEFAULT '2020-01-01', v VARCHAR(40) AS (concat(a))", "MODIFY a DATETIME(6)"),
    "filled": ("a INT(5) UNSIGNED DEFAULT 3, v VARCHAR(40) AS (concat(a))", "MODIFY a INT(5) ZEROFILL"),
    "preset": ("a INT DEFAULT 3, d INT, v INT AS (a + DEFAULT(d))", "ALTER d SET DEFAULT 9"),
    "wide": ("a VARCHAR(9) DEFAULT 'abc', v VARCHAR(5) AS (concat(a, 'x'))", "MODIFY v VARCHAR(9) AS (concat(a, 'x'))"),
    "same": ("a INT DEFAULT 3, v INT AS (a + 1)", "COMMENT 'nothing of its values'"),
}


@pytest.mark.usefixtures("_login")
def test_a_value_that_shows_another_type_is_noticed(server: Server, spark: SparkSession, tmp_path: Path) -> None:
    creates = [f"CREATE TABLE {name} (id INT PRIMARY KEY, n INT, {columns})" for name, (columns, _) in _SHOWN.items()]
    road = begun(server, tmp_path, *creates)
    for name in _SHOWN:
        run(server, f"INSERT INTO {name} (id) VALUES (1)", f"UPDATE {name} SET n = 1")
    road.capture()
    for name, (_, changed) in _SHOWN.items():
        run(server, f"ALTER TABLE {name} {changed}")
    waiting = waiting_in(road, spark)
    assert waiting.keys() == {f"one.{name}" for name in _SHOWN.keys() - {"same"}}, waiting
    assert all("the table has been changed since at the source" in reason for reason in waiting.values())


@pytest.mark.usefixtures("_login")
def test_a_value_of_the_readers_session_is_not_asked_for(server: Server, spark: SparkSession, tmp_path: Path) -> None:
    """Also behind another column, while silver doesn't have it."""
    create = "CREATE TABLE t (id INT PRIMARY KEY, n INT, at TIMESTAMP, h INT AS (hour(at)), s INT AS (h + 1) STORED)"
    filled = ("SET time_zone = '+05:00'", "INSERT INTO t (id, at) VALUES (1, '2020-01-01')")
    road = begun(server, tmp_path, create, *filled, extra=", columns: [{match: one.t, exclude: [h]}]")
    assert waiting_in(road, spark) == {}
    run(server, "UPDATE t SET n = 1")
    road.capture()
    (reason,) = waiting_in(road, spark).values()
    assert "virtual column h (hour(`at`)) has another value in each session's time zone" in reason


@pytest.mark.usefixtures("_login")
def test_rows_that_change_behind_a_statement_wait_for_a_snapshot(
    server: Server, spark: SparkSession, tmp_path: Path
) -> None:
    tables = ("altered", "replaced", "s_1", "s_2")
    creates = [f"CREATE TABLE {name} ({_ZOO['counted']})" for name in tables]
    filled = [f"INSERT INTO {name} (id, hits, name) VALUES (1, 0, 'Ann'), (2, 0, 'Bob')" for name in tables]
    road = begun(server, tmp_path, *creates, *filled, extra=", routes: [{match: 'one.s_.', to: one.s}]")
    assert waiting_in(road, spark) == {}
    run(server, *(f"UPDATE {name} SET name = 'Cid' WHERE id = 1" for name in tables))
    run(server, "ALTER TABLE altered ADD n INT", "UPDATE altered SET name = 'Di' WHERE id = 1", "TRUNCATE s_1")
    run(server, f"CREATE OR REPLACE TABLE replaced ({_ZOO['counted']})")
    road.capture()
    waiting = waiting_in(road, spark)
    assert waiting.keys() == {"one.altered", "one.replaced", "one.s"}, waiting
    assert all(state.state is State.HELD for name, state in road.apply(spark).states.items() if name in waiting)
    Reading(road, spark).run()
    assert waiting_in(road, spark) == {}
    assert road.assert_equal() == {"altered": 2, "replaced": 0, "s_1": 0, "s_2": 2}


@pytest.mark.usefixtures("_login")
def test_a_snapshot_and_a_rebuild_under_load_are_equal(server: Server, spark: SparkSession, tmp_path: Path) -> None:
    server.query("CREATE OR REPLACE DATABASE one")
    server.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{server.user}'@'%'")
    rows = "INSERT INTO counted (id, hits, name) SELECT seq, 0, concat('N', seq) FROM seq_1_to_20000"
    run(server, f"CREATE TABLE counted ({_ZOO['counted']})", rows)
    road = Road(server, tmp_path, include="one.*")
    road.capture()

    def statements(number: int) -> Iterator[str]:
        for row in range(1, 5):
            # None of them again: on a slow machine it would have changed since in each window.
            yield f"UPDATE counted SET name = 'M{number}' WHERE id = {(4 * number + row) * 7 % 20_000 + 1}"
        yield f"UPDATE counted SET hits = hits + 1 WHERE id > {number * 11 % 390} LIMIT 5"

    with changing(server, "one", statements, 0.5):
        Reading(road, spark).run()
        for _ in range(4):
            road.capture()
            road.apply(spark)
    road.capture()
    assert waiting_in(road, spark) == {}
    assert road.assert_equal() == {"counted": 20_000}
    lines: list[str] = []
    plan = Rebuild.plan(road.pipeline, road.lake, "one.counted", "", "")
    assert rebuild(plan, BackgroundSession(lambda: spark), compare=True, report=lines.append) == 0, lines
