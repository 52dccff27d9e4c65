"""What foreign keys change below the binlog, end to end: silver equals the server's own SELECT."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate.local.server import Server

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
