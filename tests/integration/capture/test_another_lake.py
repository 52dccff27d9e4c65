"""A lake that is begun anew while capture's folder still has the value log of the one before."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate.errors import StrayValueLog
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.held import last_states
from tidegate.local.server import Server
from tidegate.tables import SCHEMA_HISTORY

pytestmark = pytest.mark.server


def begun_anew(server: Server, database: str, folder: Path) -> Road:
    """Captured and applied; then the lake is removed."""
    for name in ("quiet", "busy"):
        server.query(f"CREATE TABLE {name} (id INT PRIMARY KEY)", database=database)
        server.query(f"INSERT INTO {name} VALUES (1)", database=database)
    road = Road(server, folder, include=f"{database}.*")
    road.capture()
    server.query("INSERT INTO busy VALUES (2)", database=database)
    road.capture()
    road.apply()
    shutil.rmtree(road.lake.root)
    road.lake = LakeFiles(road.lake.root)
    server.query("INSERT INTO busy VALUES (3)", database=database)
    return road


def test_a_new_lake_begins_with_a_baseline_though_an_older_value_log_is_there(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Else a table that has no changes would be in no list, and in no silver."""
    database = fresh_database(any_server)
    road = begun_anew(any_server, database, tmp_path)
    road.capture()
    assert "this value log is of another lake" in caplog.text
    kinds = {row["table"]: row["kind"] for row in control.read(road.lake, SCHEMA_HISTORY).to_pylist() if row["table"]}
    assert kinds == {"quiet": "baseline", "busy": "baseline"}
    any_server.query("INSERT INTO busy VALUES (4)", database=database)
    road.capture()
    road.apply()
    states = last_states(road.lake)
    assert states[f"{database}.busy"].lacks_rows
    assert len([path for path in (tmp_path / "state").rglob("*.left-*") if path.is_dir()]) == 1


def test_a_value_log_with_acknowledged_commits_is_left_where_it_is(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = begun_anew(mariadb, database, tmp_path)
    for folder in (path.parent for path in (tmp_path / "state").rglob("*.vlog")):
        (folder / "owes").touch()
    with pytest.raises(StrayValueLog, match=r"of another lake: one has not begun in this one; move it away, or put"):
        road.capture()
