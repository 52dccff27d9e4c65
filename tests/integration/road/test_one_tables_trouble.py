"""One table's trouble stays its own: whatever breaks its silver, before whichever step, the others go on.

In:  a real server's tables; silver of one of them broken as people, disks and other writers break it.
Out: that table alone is held, by a typed cause, with what to do; once that is done it is equal to the source again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spark_jobs.window.application import Application
from tests.kit.road import Road
from tests.support.readers import READERS
from tests.support.seeds import LONG
from tests.support.servers import FreshDatabase
from tests.support.steps import NAMES, do_before
from tidegate.cli.main import app as command_line
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.standing.causes import Cause
from tidegate.tables import State, silver_path

pytestmark = pytest.mark.server

Mend = Callable[[], object]
_UNKNOWN = "featureOfTomorrow"


def _log(table: Path) -> Path:
    return table / "_delta_log"


def _newest(table: Path) -> int:
    return max(int(file.name[:20]) for file in _log(table).glob("*.json") if file.name[:20].isdigit())


def _commit(table: Path, *actions: dict[str, object]) -> None:
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (_log(table) / f"{_newest(table) + 1:020d}.json").write_text(text)


def feature(table: Path) -> Mend:
    """A protocol of another writer's."""
    lines = (_log(table) / f"{0:020d}.json").read_text().splitlines()
    protocol = next(json.loads(line)["protocol"] for line in lines if "protocol" in json.loads(line))
    features = [*protocol.get("writerFeatures", ()), _UNKNOWN]
    _commit(table, {"protocol": {**protocol, "minWriterVersion": 7, "writerFeatures": features}})
    return lambda: _commit(table, {"protocol": protocol})


def torn(table: Path) -> Mend:
    """A commit that was half written."""
    file = _log(table) / f"{_newest(table) + 1:020d}.json"
    file.write_text('{"add":{"path":"part-0')
    return file.unlink


def checkpoint(table: Path) -> Mend:
    """A checkpoint that can't be read, of which a process that starts anew makes its state."""
    file = _log(table) / f"{_newest(table):020d}.checkpoint.parquet"
    file.write_bytes(b"PAR1 no more")
    return file.unlink


def folder(table: Path) -> Mend:
    """A folder that the store doesn't give: for root, who has all rights, a file in its place."""
    aside = table.with_name(f"{table.name}.aside")
    table.rename(aside)
    table.write_text("")

    def mend() -> None:
        table.unlink()
        aside.rename(table)

    return mend


def gone(table: Path) -> Mend:
    """Data files that somebody took."""
    files = list(table.glob("*.parquet"))
    for file in files:
        file.rename(file.with_suffix(".aside"))
    return lambda: [file.with_suffix(".aside").rename(file) for file in files]


def damaged(table: Path) -> Mend:
    """Data files that a disk gives as other bytes."""
    was = {file: file.read_bytes() for file in table.glob("*.parquet")}
    for file in was:
        file.write_bytes(b"PAR1" + b"\0" * 100 + b"PAR1")
    return lambda: [file.write_bytes(data) for file, data in was.items()]


WAYS = (feature, torn, checkpoint, folder, gone, damaged)


def begun(server: Server, database: str, folder_: Path, names: tuple[str, ...]) -> Road:
    road = Road(server, folder_, include=f"{database}.*")
    road.capture()
    for name in names:
        server.query(f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT)", database=database)
        server.query(f"INSERT INTO {name} VALUES (1, 1), (2, 2)", database=database)
    road.capture()
    apply_anew(road)
    return road


def apply_anew(road: Road) -> Application:
    """By a process that knows nothing of the lake yet."""
    road.lake = LakeFiles(road.lake.root)
    return road.apply()


def release(road: Road, name: str) -> None:
    done = CliRunner().invoke(command_line, ["release", str(road.file), name])
    assert done.exit_code == 0, done.output


def held(app: Application) -> dict[str, Cause | None]:
    return {name.partition(".")[2]: state.cause for name, state in app.states.items() if state.state is State.HELD}


def test_whatever_breaks_one_table_the_others_go_on(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    broken = tuple(way.__name__ for way in WAYS)
    road = begun(mariadb, database, tmp_path, ("whole", *broken))
    long = "鯨" * 45  # more bytes than a file system takes in a name
    mends = [way(Path(road.lake.uri(silver_path(database, way.__name__)))) for way in WAYS]
    mariadb.query(f"CREATE TABLE `{long}` (id INT PRIMARY KEY, v INT)", database=database)
    mariadb.query(f"INSERT INTO `{long}` VALUES (1, 1)", database=database)
    for name in ("whole", *broken):
        mariadb.query(f"UPDATE {name} SET v = v + 10", database=database)
        mariadb.query(f"INSERT INTO {name} VALUES (3, 3)", database=database)
    road.capture()
    app = apply_anew(road)
    assert held(app) == dict.fromkeys(broken, Cause.FAULT)
    for name in broken:
        reason = app.states[f"{database}.{name}"].reason
        assert silver_path(database, name) in reason
    assert road.assert_equal() == {"whole": 3, long: 1}
    assert not [line for line in road.lines if " try " in line]

    for mend in mends:
        mend()
    for name in broken:
        release(road, f"{database}.{name}")
    app = apply_anew(road)
    assert not held(app)
    assert road.assert_equal() == {**dict.fromkeys(("whole", *broken), 3), long: 1}


def _breaks(breaks: Callable[[], Mend], mends: list[Mend]) -> None:
    """A table breaks, once."""
    if not mends:
        mends.append(breaks())


@pytest.mark.long
@pytest.mark.parametrize("number", range(len(WAYS)), ids=[way.__name__ for way in WAYS])
def test_before_whichever_step_a_table_breaks_the_others_go_on(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    database = fresh_database(mariadb)
    way = WAYS[number]
    road = begun(mariadb, database, tmp_path, ("whole", "broken"))
    table = Path(road.lake.uri(silver_path(database, "broken")))
    # Each step in one way; `make test-long` breaks it before each step in each way.
    for step in NAMES if LONG else NAMES[number :: len(WAYS)]:
        mends = list[Mend]()
        mariadb.query("UPDATE whole SET v = v + 1", database=database)
        mariadb.query("UPDATE broken SET v = v + 1", database=database)
        road.capture()
        with monkeypatch.context() as patch:
            do_before(patch, step, partial(_breaks, lambda: way(table), mends))
            app = apply_anew(road)
        assert set(held(app)) <= {"broken"}, (step, road.lines)
        rows = READERS["DuckDB"](road.lake.uri(silver_path(database, "whole"))).select(["id", "v"]).to_pylist()
        there = mariadb.query("SELECT id, v FROM whole", database=database)
        assert sorted((row["id"], row["v"]) for row in rows) == sorted(there), step
        for mend in mends:
            mend()
        if held(app):
            release(road, f"{database}.broken")
        app = apply_anew(road)
        assert not held(app), step
        assert road.assert_equal() == {"whole": 2, "broken": 2}, step
