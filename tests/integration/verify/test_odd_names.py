"""Tables whose names, or whose databases' names, have dots in them are verified like any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate.local.server import Server

pytestmark = pytest.mark.server


def test_a_database_with_a_dot_in_its_name_is_verified(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    dotted = f"{database}.do"
    road = Road(mariadb, tmp_path, include=f"{database}\\W\\w*.*")
    road.capture()
    mariadb.query(f"CREATE DATABASE `{dotted}`")
    try:
        for name in (f"`{dotted}`.t", f"`{dotted}`.`x.y`"):
            mariadb.query(f"CREATE TABLE {name} (id INT PRIMARY KEY)")
            mariadb.query(f"INSERT INTO {name} VALUES (1), (2)")
        road.capture()
        road.apply()
        assert road.assert_equal() == {"do.t": 2, "do.x.y": 2}
    finally:
        mariadb.query(f"DROP DATABASE `{dotted}`")
