"""A lake that is begun anew, or has lost its bronze, behind what was captured and applied."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate.capture.health import why
from tidegate.capture.standing import CaptureStanding, SourceAnswer, standing
from tidegate.cli.check import lost_lines
from tidegate.errors import LakeLost
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.held import last_states
from tidegate.local.server import Server
from tidegate.mysql.checking.examination import SourceVerdict
from tidegate.tables import SCHEMA_HISTORY

pytestmark = pytest.mark.server


def stood(road: Road) -> CaptureStanding:
    """As people see the pipeline on capture's machine, while the server isn't asked."""
    state_dir = road.folder / "state"
    return standing(road.pipeline, road.lake, lambda _: SourceAnswer(error="not asked"), state_dir)


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


def test_an_empty_lake_in_the_place_of_a_lost_one_is_refused_until_the_value_log_is_moved_away(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    """The new lake then has a baseline: else a table without changes would be in no list, and in no silver."""
    database = fresh_database(any_server)
    road = begun_anew(any_server, database, tmp_path)
    (source,) = stood(road).sources
    folder = tmp_path / "state" / "value_log" / "road" / "one"
    assert source.lost.endswith(f"for a new lake move {folder} away")
    assert source.lost in why(stood(road))
    (line,) = lost_lines(road.pipeline, road.lake, tmp_path / "state")
    assert line.verdict is SourceVerdict.REFUSED
    for _ in range(2):
        with pytest.raises(LakeLost, match=rf"is mounted .*; for a new lake move {folder} away") as error:
            road.capture()
    assert "has captured one before, and the lake has nothing of it" in str(error.value)
    assert not Path(road.lake.root, "control", "schema_history").exists(), "nothing began in it"
    shutil.move(folder, tmp_path / "away")
    assert not stood(road).sources[0].lost
    road.capture()
    kinds = {row["table"]: row["kind"] for row in control.read(road.lake, SCHEMA_HISTORY).to_pylist() if row["table"]}
    assert kinds == {"quiet": "baseline", "busy": "baseline"}
    any_server.query("INSERT INTO busy VALUES (4)", database=database)
    road.capture()
    road.apply()
    states = last_states(road.lake)
    assert states[f"{database}.busy"].lacks_rows


@pytest.mark.parametrize("is_older", [False, True], ids=["nothing", "older_copy"])
def test_a_lake_that_lost_its_bronze_is_not_gone_on_with(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path, is_older: bool
) -> None:
    """A new beginning above silver's cut would lack what lies between, if the server purged it: a table that is empty
    now would keep its rows in silver. From an older copy, rows behind a heartbeat would get a commit_ts below the cut.
    """
    database = fresh_database(any_server)
    any_server.query("CREATE TABLE t (id INT PRIMARY KEY)", database=database)
    road = Road(any_server, tmp_path, include=f"{database}.*")
    road.capture()
    bronze, older = Path(road.lake.root, "bronze"), tmp_path / "older"
    shutil.copytree(bronze, older)
    any_server.query("INSERT INTO t VALUES (1)", database=database)
    road.capture(heartbeat=True)
    road.apply()
    for lost in (bronze, tmp_path / "state"):
        shutil.rmtree(lost)
    if is_older:
        shutil.copytree(older, bronze)
    road.lake = LakeFiles(road.lake.root)
    any_server.query("INSERT INTO t VALUES (2)", database=database)
    ends = "ends at .*" if is_older else "has nothing of it"
    with pytest.raises(LakeLost, match=rf"silver has one up to .*, and bronze {ends}: a part of bronze is lost"):
        road.capture()
    assert bronze.exists() == is_older
    assert set(control.read(road.lake, SCHEMA_HISTORY)["version"].to_pylist()) == {1}, "nothing began anew"
