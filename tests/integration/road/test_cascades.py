"""What foreign keys change below the binlog, end to end: silver equals the server's own SELECT."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.changelogs import changes_of, played, silver_rows
from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.support.servers import FreshDatabase
from tidegate.changelog.changelog_table import BY_A_FOREIGN_KEY, GAP
from tidegate.local.server import Server
from tidegate.standing.causes import Cause
from tidegate.tables import WATERMARK_DATABASE, State

pytestmark = [pytest.mark.server, pytest.mark.spark]

SCHEMA = """
CREATE TABLE p (id INT PRIMARY KEY, code VARCHAR(20) NOT NULL, n INT, UNIQUE (code));
CREATE TABLE c (id INT PRIMARY KEY, p INT, v VARCHAR(20),
  CONSTRAINT fk_c FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE g (id INT PRIMARY KEY, c INT, v VARCHAR(20),
  CONSTRAINT fk_g FOREIGN KEY (c) REFERENCES c (id) ON DELETE CASCADE);
CREATE TABLE s (id INT PRIMARY KEY, code VARCHAR(20), v INT,
  FOREIGN KEY (code) REFERENCES p (code) ON DELETE SET NULL ON UPDATE CASCADE);
CREATE TABLE tree (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES tree (id) ON DELETE CASCADE)
"""

WIDE = (
    "f FLOAT, d DOUBLE, n DECIMAL(20,5), s SET('a', 'b'), e ENUM('x', 'y'), j JSON, y YEAR, t TIME(3), m"
    " TIMESTAMP(6) NULL, dt DATETIME(2), b BLOB, bits BIT(5), g POINT, u UUID, txt TEXT,"
    " big BIGINT UNSIGNED, flag BIT(1)"
)
VALUES = (
    "1.1, 2.5, 12.34567, 'a,b', 'y', '{\"k\": [1, \"é\"]}', 2024, '-12:34:56.789', '2024-02-29 01:02:03.456789',"
    " '2024-02-29 01:02:03.45', x'00ff', b'10110', ST_GeomFromText('POINT(1 2)', 4326),"
    " '123e4567-e89b-12d3-a456-426614174000', 'it''s \"é\"', 18446744073709551615, 1"
)


@pytest.fixture(params=["mariadb", "mysql9"])
def server(request: pytest.FixtureRequest) -> Server:
    """MySQL from 9.6 on logs the children's rows: nothing must be done twice."""
    made: Server = request.getfixturevalue(request.param)
    return made


def test_children_follow_their_parents(
    server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(server)
    road = Road(server, tmp_path, include=f"{database}.*")
    road.capture()

    def run(*statements: str) -> None:
        with server.connect(database) as connection, connection.cursor() as cursor:
            for sql in statements:
                cursor.execute(sql)
            connection.commit()

    def check(**counts: int) -> None:
        road.capture()
        app = road.apply(spark)
        assert not [(name, state.reason) for name, state in app.states.items() if state.state == "held"]
        assert road.assert_equal() == counts

    run(*SCHEMA.split(";"))
    run("INSERT INTO p VALUES (1, 'One', 1), (2, 'Two', 2), (3, 'Three', 3), (4, 'Four', 4)")
    run("INSERT INTO c VALUES (10, 1, 'a'), (20, 2, 'b'), (30, 3, 'c'), (40, NULL, 'd')")
    run("INSERT INTO g VALUES (100, 10, 'x'), (200, 20, 'y'), (300, 30, 'z')")
    run("INSERT INTO s VALUES (1, 'one', 1), (2, 'TWO', 2), (3, NULL, 3)")
    run("INSERT INTO tree VALUES (1, NULL), (2, 1), (3, 2), (4, 3), (5, NULL)", "DELETE FROM p WHERE id = 4")
    check(p=3, c=4, g=3, s=3, tree=5)

    run("DELETE FROM p WHERE id = 1")
    check(p=2, c=3, g=2, s=3, tree=5)

    run("UPDATE p SET id = 22, code = 'TwoTwo' WHERE id = 2", "DELETE FROM tree WHERE id = 1")
    check(p=2, c=3, g=2, s=3, tree=1)

    run("SET foreign_key_checks = 0", "DELETE FROM p WHERE id = 3")
    check(p=1, c=3, g=2, s=3, tree=1)

    run("INSERT INTO p VALUES (3, 'again', 3)", "UPDATE c SET v = 'later' WHERE id = 30", "DELETE FROM p WHERE id = 3")
    check(p=1, c=2, g=1, s=3, tree=1)

    run("ALTER TABLE g DROP FOREIGN KEY fk_g", "DELETE FROM p")
    check(p=0, c=1, g=1, s=3, tree=1)


def test_a_changelog_has_what_foreign_keys_did(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """In the place of the parent's change, with both sides, as they would have been logged."""
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f", changelog: ['{database}.*']")
    road.capture()
    nulls, both = "ON DELETE SET NULL ON UPDATE CASCADE", "ON DELETE CASCADE ON UPDATE CASCADE"
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        for statement in (
            "CREATE TABLE p (id INT PRIMARY KEY)",
            f"CREATE TABLE c (id INT PRIMARY KEY, p INT, v VARCHAR(9), FOREIGN KEY (p) REFERENCES p (id) {nulls})",
            f"CREATE TABLE w (p INT PRIMARY KEY, {WIDE}, FOREIGN KEY (p) REFERENCES p (id) {both})",
            "CREATE TABLE tree (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES tree (id) ON DELETE CASCADE)",
            "INSERT INTO p VALUES (1), (2), (3)",
            "INSERT INTO c VALUES (10, 1, 'a'), (11, 1, 'b'), (20, 2, 'c')",
            f"INSERT INTO w VALUES (1, {VALUES}), (2, {VALUES})",
            "INSERT INTO tree VALUES (1, NULL), (2, 1), (3, 1), (4, 2), (5, NULL), (6, 5), (7, 6), (8, NULL)",
        ):
            cursor.execute(statement)
        road.capture()
        road.apply(spark)
        for statement in (
            "UPDATE c SET v = 'own' WHERE id = 10",
            "UPDATE p SET id = 9 WHERE id = 1",
            "UPDATE c SET v = 'then' WHERE id = 11",
            "DELETE FROM p WHERE id IN (2, 9)",
            "INSERT INTO c VALUES (30, 3, 'd')",
            "DELETE FROM tree WHERE id IN (1, 5, 8)",
            "INSERT INTO tree VALUES (1, NULL), (2, 1)",
        ):
            cursor.execute(statement)
    road.capture()
    road.apply(spark)
    assert road.assert_equal() == {"p": 1, "c": 4, "w": 0, "tree": 2}
    for table in ("p", "c", "w", "tree"):
        rows = changes_of(road.lake, database, table)
        assert GAP not in {row["op"] for row in rows}
        assert played(rows) == silver_rows(road.lake, database, table), table
    rows = [row for row in changes_of(road.lake, database, "c") if row["note"] == BY_A_FOREIGN_KEY]
    assert [(row["op"], row["before"]["p"], row["after"]["p"]) for row in rows] == [
        *[("update", 1, 9)] * 2,
        ("update", 2, None),
        *[("update", 9, None)] * 2,
    ]
    parents = {(row["file"], row["pos"], row["gtid"], row["commit_ts"]) for row in changes_of(road.lake, database, "p")}
    assert {(row["file"], row["pos"], row["gtid"], row["commit_ts"]) for row in rows} <= parents
    made = changes_of(road.lake, database, "w")
    assert [(row["op"], row["note"] == BY_A_FOREIGN_KEY) for row in made[-3:]] == [
        ("update", True),
        *[("delete", True)] * 2,
    ]
    assert {**made[-3]["before"], "p": 9} == made[-3]["after"]
    logged = [row["after"] for row in made if row["op"] == "insert"]
    assert made[-3]["before"] == logged[0], "as the log has it"


def test_a_child_that_is_renamed_behind_what_its_key_did_is_read_anew_by_its_new_name(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """And nothing waits under the old one, which nobody could read."""
    database = fresh_database(mariadb)
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{mariadb.user}'@'%'")
    road = Road.begun(
        mariadb,
        tmp_path,
        database,
        "CREATE TABLE p (id INT PRIMARY KEY)",
        "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
        "INSERT INTO p VALUES (1), (2)",
        "INSERT INTO c VALUES (1, 1), (2, 2)",
        "DELETE FROM p WHERE id = 1",
        "RENAME TABLE c TO d",
    )
    road.capture()
    held = {name.split(".")[1]: state.cause for name, state in road.apply(spark).states.items() if state.cause}
    assert held == {"c": Cause.NEEDS_ROWS, "d": Cause.WAITS_WITH}
    app = Reading(road, spark).run()
    assert not [state.reason for state in app.states.values() if state.state is State.HELD]
    assert road.assert_equal() == {"p": 1, "d": 1}


class _Lines(list[str]):
    """An application's report, which says when it goes round in circles."""

    def append(self, line: str) -> None:
        super().append(line)
        assert len(self) < 40, self[-6:]


def test_a_child_that_no_foreign_key_can_be_followed_for_is_gone_once_it_is_dropped(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """It waited, was dropped in the segment of its parents' changes, and its window begins right below that."""
    database = fresh_database(mariadb)
    road = Road.begun(
        mariadb, tmp_path, database,
        "CREATE TABLE p (id FLOAT PRIMARY KEY)",
        "CREATE TABLE c (id INT PRIMARY KEY, p FLOAT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
        "CREATE TABLE other (id INT PRIMARY KEY)",
        "INSERT INTO p VALUES (1), (2)",
        "INSERT INTO c VALUES (1, 1), (2, 2)",
        "DELETE FROM p WHERE id = 1",
        "DROP TABLE c",
        "INSERT INTO other VALUES (1)",
        "INSERT INTO p VALUES (3)",
    )  # fmt: skip
    road.lines = _Lines()
    road.capture()
    road.apply(spark)
    app = road.apply(spark)  # the first one met it
    assert app.states[f"{database}.c"].state is State.DROPPED
    assert road.assert_equal() == {"p": 2, "other": 1}
