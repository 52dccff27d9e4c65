"""A run that ends before anything of it is durable: the next one goes on where it began, not where the binlog is now.

In:  real servers; a run that is killed behind the baseline, one whose time is up at once, two that begin at once.
Out: bronze that begins where the first run did, one baseline, and the rows written in between.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.capture_process import CaptureProcess
from tests.support.captures import assert_equals_binlog, binlog_end, bronze_segments, capture_run, info_of, pipeline_for
from tests.support.nursery import Nursery
from tests.support.servers import FreshDatabase
from tidegate.errors import SourceRefused
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.mysql.capturing import reader
from tidegate.mysql.capturing.reader import binlog_run
from tidegate.tables import SCHEMA_HISTORY

pytestmark = pytest.mark.server


def assert_begins_at(server: Server, lake: Path, place: tuple[str, int], table: str) -> None:
    segments = bronze_segments(lake)
    assert (segments[0].file, segments[0].start_pos) == place
    assert table in {name for segment in segments for name in segment.tables}
    assert_equals_binlog(segments, server)
    rows = control.read(LakeFiles(str(lake)), SCHEMA_HISTORY).to_pylist()
    (found,) = [row for row in rows if f"{row['database']}.{row['table']}" == table]
    assert (found["file"], found["pos"], found["status"]) == (*place, "active")


@pytest.mark.parametrize("how", [("mariadb", "gtid"), ("mysql9", "position")], ids="-".join)
def test_killed_behind_the_baseline(
    request: pytest.FixtureRequest,
    fresh_database: FreshDatabase,
    nursery: Nursery,
    tmp_path: Path,
    how: tuple[str, str],
) -> None:
    source: Server = request.getfixturevalue(how[0])
    capture = CaptureProcess(nursery, source, tmp_path, how[1])
    database = fresh_database(source)
    source.query("CREATE TABLE t (a INT PRIMARY KEY)", database=database)
    place = binlog_end(source)
    assert capture.run("capture_after_first_start") == -signal.SIGKILL
    source.query("INSERT INTO t VALUES (1), (2)", database=database)
    capture.runs_until_quiet()
    assert_begins_at(source, tmp_path / "lake", place, f"{database}.t")


def test_a_run_that_was_over_before_its_first_heartbeat(
    mysql9: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database, lake = fresh_database(mysql9), tmp_path / "lake"
    mysql9.query("CREATE TABLE t (a INT PRIMARY KEY)", database=database)
    place = binlog_end(mysql9)
    run = capture_run(mysql9, lake, baseline=True)
    assert run.run(0).segments == 0
    mysql9.query("INSERT INTO t VALUES (1), (2)", database=database)
    run.run(300, idle_seconds=1)
    assert_begins_at(mysql9, lake, place, f"{database}.t")


@pytest.mark.parametrize("captures", [True, False], ids=["captured", "recorded"])
def test_of_two_sources_at_one_server_that_begin_at_once_one_begins(
    mysql9: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, captures: bool
) -> None:
    """As a pipeline's DAGs do: each looked for the other before it was there. Every row would come twice."""
    mysql9.query("CREATE TABLE t (a INT PRIMARY KEY)", database=fresh_database(mysql9))
    lake, began = tmp_path / "lake", reader.first_checkpoint
    pipeline = pipeline_for(mysql9, lake)
    pipeline = pipeline.model_copy(update={"sources": dict.fromkeys(("one", "two"), pipeline.sources["one"])})
    one, two = (binlog_run(pipeline, name, info_of(mysql9), tmp_path / name) for name in pipeline.sources)

    def late(*given: Any) -> Any:
        with monkeypatch.context() as patched:
            patched.setattr(reader, "first_checkpoint", began)
            two.run(300 if captures else 0, idle_seconds=1)
        return began(*given)

    with monkeypatch.context() as patched:
        patched.setattr(reader, "first_checkpoint", late)
        with pytest.raises(SourceRefused, match="source two is captured from this very server"):
            one.run(300, idle_seconds=1)
    with pytest.raises(SourceRefused, match="source two is captured from this very server"):
        one.run(300, idle_seconds=1)
    if captures:
        assert bronze_segments(lake) == []
