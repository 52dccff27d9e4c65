"""`tidegate erase` beside statements in the place of rows, and of a mistyped table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.road.test_erase import PERSON, erased
from tests.integration.road.test_renames import run
from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tests.support.stored import places_of
from tidegate import config
from tidegate.errors import UsageError
from tidegate.local.server import Server

pytestmark = pytest.mark.server


def test_a_statement_about_another_table_is_left_and_named(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    """It refused the erasure of each table of its database."""
    database = fresh_database(any_server)
    road = Road.begun(any_server, tmp_path, database)
    road.file.write_text(f"{road.text}ddl: {{statement_effects: named}}\n")
    road.pipeline = config.load(road.file)
    run(any_server, database, f"""
        CREATE TABLE t (id INT PRIMARY KEY, mail VARCHAR(60))
        CREATE TABLE other (id INT PRIMARY KEY, note VARCHAR(60))
        INSERT INTO t VALUES (4711, '{PERSON}'), (4712, 'bob')
        INSERT INTO other VALUES (1, 'a')
        SET SESSION binlog_format = 'STATEMENT'
        UPDATE other SET note = CONCAT(note, 'b') WHERE id = 1
        SET SESSION binlog_format = 'ROW'
        DELETE FROM t WHERE id = 4711
    """)  # fmt: skip
    road.capture()
    road.apply()
    with pytest.raises(UsageError, match=rf"there is no table {database}.tt; did you mean {database}.t\?"):
        erased(road, f"{database}.tt", "id = 4711")
    with pytest.raises(UsageError, match=r"its silver isn't complete|statement in the place of rows"):
        erased(road, f"{database}.other", "id = 1")
    done = erased(road, f"{database}.t", "id = 4711")
    assert done.keys == 1
    assert "left: 1 statement in the place of rows of other tables" in done.line
    assert places_of(tmp_path / "lake", PERSON) == set()
