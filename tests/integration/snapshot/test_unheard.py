"""Quiet tables that join a pipeline: their server is asked for them once, and the lake isn't read for each question."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.opened import opened
from tests.support.servers import FreshDatabase
from tidegate import tables
from tidegate.config import parse
from tidegate.errors import SourceUnavailable
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing import followed
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.schema.model.columns import TableVersion
from tidegate.snapshot.progress.unheard import Unheard

pytestmark = pytest.mark.server
__all__ = ["opened"]  # a fixture


def version(lake: LakeFiles, database: str, table: str) -> None:
    found = TableVersion("s", database, table, 1, 5, "f", 4, "baseline", "", (), (), "utf8mb4")
    control.append(lake, tables.SCHEMA_HISTORY, [found.to_row()])


def publish(lake: LakeFiles, at: datetime) -> None:
    cut_ts = int(at.timestamp() * 1000) << 18
    row = {"cut_ts": cut_ts, "table": "", "delta_version": -1, "applied_ts": cut_ts, "state": "active"}
    control.append(lake, tables.CUTS, [row | {"published_at": at}])


def behind(lake: LakeFiles, at: datetime) -> None:
    change = followed.FollowedChange("s", followed.CATCHING_UP, int(at.timestamp() * 1000) << 18)
    control.append(lake, tables.FOLLOWED, followed.rows_of(1, "p", [change], None, 0))


def test_what_a_server_has_and_no_log_names_is_asked_for_without_reading_the_lake_anew(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path, opened: list[str]
) -> None:
    database = fresh_database(any_server)
    any_server.query(f"CREATE TABLE {database}.heard (id INT PRIMARY KEY)")
    any_server.query(f"CREATE TABLE {database}.quiet (id INT PRIMARY KEY)")
    lake = LakeFiles(str(tmp_path))
    text = f"pipeline: p\nlake: {{path: x}}\nsources: {{s: {{conn_id: c, flavour: {any_server.flavour}}}}}\n"
    pipeline = parse(f"{text}tables: {{include: ['{database}.*']}}\n", where="p.yaml")
    asked: list[str] = []
    down = [True]

    def info_of(source: str) -> ConnectionInfo:
        asked.append(source)
        if down[0]:
            raise SourceUnavailable("it is down")
        return ConnectionInfo(any_server.host, any_server.port, any_server.user, any_server.password)

    def unheard() -> Unheard:
        return Unheard(pipeline, lake, info_of)

    looks = unheard()
    assert [looks.tables() for _ in range(5)] == [[]] * 5
    assert asked == ["s"], "a source that is down isn't asked each time"
    assert str(looks.unasked["s"]) == "it is down"
    down[0], asked[:] = False, []
    looks = unheard()
    assert looks.tables() == [], "nothing is captured yet"
    version(lake, database, "heard")
    assert looks.tables() == [], "there is no cut yet: its CREATE TABLE may be in the log"
    opened.clear()
    assert [looks.tables() for _ in range(5)] == [[]] * 5
    assert not [path for path in opened if path.startswith(tables.SCHEMA_HISTORY.path)], "nothing came since"
    publish(lake, datetime.now(UTC) + timedelta(hours=1))
    assert looks.tables() == [("s", database, "quiet")]
    behind(lake, datetime.now(UTC) - timedelta(hours=1))
    assert looks.tables() == [], "its source is left behind, and the log between may have it"
    assert asked == ["s"]
    version(lake, database, "quiet")
    assert looks.tables() == []
