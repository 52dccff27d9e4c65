"""History on real servers: at every moment silver's versions are what the server's own SELECT showed then."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild
from spark_jobs.session.background import BackgroundSession
from tests.kit.road import Road
from tests.support.driver import killed
from tests.support.past import Past
from tests.support.readers import READERS
from tests.support.seeds import seed
from tests.support.servers import FreshDatabase
from tidegate import config, tables
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.mark.parametrize("writer", ["positional", "merge"])
def test_every_moment_is_what_the_server_showed(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    database = fresh_database(any_server)
    rng = random.Random(seed())
    keys = f", history: ['{database}.*']"
    road = Road(any_server, tmp_path, include=f"{database}.*", extra=keys, apply=f", writer: {writer}")
    road.capture()
    past = Past(any_server, database, ["t"])
    past.begin()
    past.done("CREATE TABLE t (id INT PRIMARY KEY, code VARCHAR(20), amount DECIMAL(8,2), note TEXT)")
    for round_number in range(4):
        for _ in range(12):
            work = statements(rng)
            (past.undone if rng.random() < 0.15 else past.done)(*work)
        if round_number == 1:
            past.done("TRUNCATE TABLE t")
            past.done("INSERT INTO t (id, code) VALUES (3, 'again')")
        if round_number == 2:
            past.done("ALTER TABLE t ADD COLUMN extra INT DEFAULT 7")
            past.done("INSERT INTO t (id, code) VALUES (900, 'wide')")
            past.renamed["code"] = "label"
            past.done("ALTER TABLE t RENAME COLUMN code TO label")
            past.done("ALTER TABLE t RENAME COLUMN label TO code")
            past.renamed.clear()
        road.capture()
        app = road.apply(spark)
        assert not [state.reason for state in app.states.values() if state.state == "held"]
        road.assert_equal()
    assert past.check(road) > 40
    prepared_beside(any_server, past)
    past.done("ALTER TABLE t MODIFY amount DECIMAL(12,2), DROP COLUMN note")
    past.done("UPDATE t SET amount = 1234567890.5 WHERE id = 500")
    road.capture()
    app = road.apply(spark)
    assert not [state.reason for state in app.states.values() if state.state == "held"]
    past.check(road)
    past.done("DROP TABLE t")
    road.capture()
    road.apply(spark)
    past.check(road)


def prepared_beside(server: Server, past: Past) -> None:
    """A transaction is prepared, another one commits, and then the first: its rows are of its commit."""
    with server.connect(past.database) as connection, connection.cursor() as cursor:
        cursor.execute("XA START 'beside'")
        cursor.execute("INSERT INTO t (id, code) VALUES (500, 'prepared')")
        cursor.execute("XA END 'beside'")
        cursor.execute("XA PREPARE 'beside'")
        past.done("INSERT INTO t (id, code) VALUES (501, 'sooner')")
        cursor.execute("XA COMMIT 'beside'")
    past.done("DELETE FROM t WHERE id = 501")


@pytest.mark.parametrize("writer", ["positional", "merge"])
def test_a_window_that_dies_at_any_point_makes_the_versions_that_bronze_makes(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    database = fresh_database(mariadb)
    rng = random.Random(seed())
    keys = f", history: ['{database}.*']"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=keys, apply=f", writer: {writer}")
    road.capture()
    past = Past(mariadb, database, ["t"])
    past.begin()
    past.done("CREATE TABLE t (id INT PRIMARY KEY, code VARCHAR(20), amount DECIMAL(8,2), note TEXT)")
    points = ["apply_after_decode", "apply_in_merge", "apply_after_merge", "apply_before_publish"]
    if writer == "positional":
        points += ["apply_before_commit", "apply_after_commit"]
    for point in points:
        for _ in range(4):
            past.done(*statements(rng))
        if point == "apply_in_merge":
            past.done("ALTER TABLE t ADD COLUMN extra INT")
            past.done("TRUNCATE TABLE t")
            past.done(*statements(rng))
        road.capture()
        killed(spark, road.file, point)
    app = road.apply(spark)
    assert not [state.reason for state in app.states.values() if state.state == "held"]
    road.assert_equal()
    past.check(road)
    rebuilt = "merge" if writer == "positional" else "positional"
    assert made_of_bronze(road, spark, f"{database}.t", rebuilt) == versions_in(road, database, "t") != []


def made_of_bronze(road: Road, spark: SparkSession, name: str, writer: str) -> list[str]:
    """The versions that a rebuild makes by a writer, in whatever windows it takes."""
    text = road.text.replace("writer: merge", "writer: auto").replace("writer: positional", "writer: auto")
    pipeline = config.load(write(road.folder / "other.yaml", text.replace("writer: auto", f"writer: {writer}")))
    plan = Rebuild.plan(pipeline, road.lake, name, "", f"by_{writer}")
    assert rebuild(plan, BackgroundSession(lambda: spark), compare=True, report=road.lines.append) == 0, road.lines
    return versions_in(road, name.partition(".")[0], f"by_{writer}")


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def versions_in(road: Road, database: str, table: str) -> list[str]:
    rows = READERS["DuckDB"](road.lake.uri(tables.silver_path(database, table))).to_pylist()
    return sorted(str(sorted(row.items())) for row in rows)


def test_history_is_of_a_name_when_tables_change_theirs(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """The cut-over of an online schema change, a swap, a partition that changes tables."""
    database = fresh_database(any_server)
    road = Road(any_server, tmp_path, include=f"{database}.*", extra=f", history: ['{database}.*']")
    road.capture()
    past = Past(any_server, database, ["t", "u", "old", "p"])
    past.begin()
    for name in "tu":
        past.done(f"CREATE TABLE {name} (id INT PRIMARY KEY, code VARCHAR(20))")
        past.done(f"INSERT INTO {name} VALUES (1, '{name}1'), (2, '{name}2'), (3, 'same')")
    road.capture()
    road.apply(spark)
    past.done("UPDATE t SET code = 'new' WHERE id = 1")
    past.done("RENAME TABLE t TO old, u TO t")
    past.done("INSERT INTO t VALUES (9, 'nine')")
    road.capture()
    road.apply(spark)
    past.done("DELETE FROM old WHERE id = 2")
    past.done("RENAME TABLE old TO swapped, t TO old, swapped TO t")
    past.done("UPDATE t SET code = 'last'")
    past.done(
        "CREATE TABLE p (id INT PRIMARY KEY, code VARCHAR(20)) PARTITION BY RANGE (id)"
        " (PARTITION low VALUES LESS THAN (5), PARTITION high VALUES LESS THAN MAXVALUE)"
    )
    past.done("INSERT INTO p VALUES (1, 'a'), (7, 'b')")
    past.done("ALTER TABLE p DROP PARTITION low")
    past.done("INSERT INTO p VALUES (8, 'c')")
    road.capture()
    app = road.apply(spark)
    assert not [state.reason for state in app.states.values() if state.state == "held"]
    road.assert_equal()
    past.check(road)


def test_what_history_can_not_tell_is_held_by_name_and_a_rule_comes_and_goes(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    routes = f"routes: [{{match: '{database}.part_.*', to: {database}.parts}}], soft_delete: ['{database}.soft']"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f", {routes}")
    road.capture()
    keyed = "(id INT PRIMARY KEY, up INT)"
    for table in ("t", "part_1", "soft"):
        mariadb.query(f"CREATE TABLE {database}.{table} {keyed}")
        mariadb.query(f"INSERT INTO {database}.{table} VALUES (1, 1), (2, 1)")
    mariadb.query(f"CREATE TABLE {database}.bag (id INT)")
    cascades = f"FOREIGN KEY (up) REFERENCES {database}.t (id) ON DELETE CASCADE"
    mariadb.query(f"CREATE TABLE {database}.child (id INT PRIMARY KEY, up INT, {cascades})")
    road.capture()
    road.apply(spark)
    road.file.write_text(road.text.replace("routes:", f"history: ['{database}.*'], routes:"))
    road.pipeline = config.load(road.file)
    for table in ("t", "part_1", "soft", "child"):
        mariadb.query(f"REPLACE INTO {database}.{table} VALUES (2, 2)")
    mariadb.query(f"INSERT INTO {database}.bag VALUES (1)")
    road.capture()
    states = road.apply(spark).states
    reasons = {name.partition(".")[2]: state.reason for name, state in states.items() if state.state == "held"}
    assert reasons.keys() == {"soft", "bag", "child"}
    assert "tables.soft_delete" in reasons["soft"]
    assert "without a key" in reasons["bag"]
    assert "foreign keys" in reasons["child"]
    for name in ("t", "parts"):
        path = road.lake.uri(tables.silver_path(database, name))
        rows = {(row["id"], row["up"]): row for row in READERS["DuckDB"](path).to_pylist()}
        assert {pair: (row[tables.IS_CURRENT], row[tables.FROM_KNOWN]) for pair, row in rows.items()} == {
            (1, 1): (True, False),
            (2, 1): (False, False),
            (2, 2): (True, True),
        }
        assert rows[2, 1][tables.VALID_TO] == rows[2, 2][tables.VALID_FROM] > rows[2, 1][tables.VALID_FROM]
    road.file.write_text(road.text)
    road.pipeline = config.load(road.file)
    mariadb.query(f"INSERT INTO {database}.t VALUES (3, 3)")
    road.capture()
    assert "silver keeps 1 old versions" in road.apply(spark).states[f"{database}.t"].reason


def statements(rng: random.Random) -> list[str]:
    """The statements of a transaction."""
    work = []
    for _ in range(rng.choice([1, 1, 2, 5])):
        one, two = rng.randrange(12), rng.randrange(12)
        text = rng.choice(["NULL", "'a'", f"'{'x' * rng.randrange(30)}'"])
        work.append(
            rng.choice(
                [
                    f"REPLACE INTO t (id, code, amount, note) VALUES ({one}, 'c{two}', {two}.5, {text})",
                    f"UPDATE t SET amount = {rng.randrange(1000)} WHERE id = {one}",
                    f"UPDATE t SET note = {text} WHERE id < {one}",
                    f"UPDATE IGNORE t SET id = {two} WHERE id = {one}",
                    f"DELETE FROM t WHERE id = {one}",
                ]
            )
        )
    return work
