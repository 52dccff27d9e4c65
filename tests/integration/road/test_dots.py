"""Databases and tables with dots in their names, under patterns that keep every database.

In:  real MariaDB; a name that can be read in two ways.
Out: the table is followed from its CREATE on. Two tables of one name are held, and no other one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.road.test_renames import held
from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate.local.server import Server

pytestmark = pytest.mark.server


@contextmanager
def database_of(server: Server, name: str) -> Iterator[str]:
    server.query(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4")
    try:
        yield name
    finally:
        server.query(f"DROP DATABASE `{name}`")


def test_a_table_of_a_database_with_a_dot_is_followed_from_its_create_on(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    with database_of(mariadb, f"{database}.b") as dotted:
        road = Road(mariadb, tmp_path, include=f"{database}.*.*")
        road.capture()
        for of in (database, dotted):
            for table in ("t", "u.v"):
                mariadb.query(f"CREATE TABLE `{of}`.`{table}` (id INT PRIMARY KEY)")
                mariadb.query(f"INSERT INTO `{of}`.`{table}` VALUES (1), (2)")
        road.capture()
        assert not held(road.apply())
        mariadb.query(f"INSERT INTO `{dotted}`.t VALUES (3)")
        road.capture()
        assert not held(road.apply())
        assert road.assert_equal() == {"t": 2, "u.v": 2, "b.t": 3, "b.u.v": 2}


def test_two_tables_that_read_the_same_are_held(mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path) -> None:
    database = fresh_database(mariadb)
    with database_of(mariadb, f"{database}.b") as dotted:
        road = Road(mariadb, tmp_path, include=f"{database}.*.*")
        road.capture()
        mariadb.query(f"CREATE TABLE `{dotted}`.t (id INT PRIMARY KEY)")
        mariadb.query(f"INSERT INTO `{dotted}`.t VALUES (1)")
        road.capture()
        assert not held(road.apply())
        mariadb.query(f"CREATE TABLE `{database}`.`b.t` (id INT PRIMARY KEY)")
        mariadb.query(f"INSERT INTO `{database}`.`b.t` VALUES (1), (2)")
        mariadb.query(f"INSERT INTO `{dotted}`.t VALUES (2)")
        road.capture()
        (reason,) = held(road.apply()).values()
        assert "are both" in reason
