"""Whether anything is missing: a quiet source, one that writes, and one that can't be asked, told apart.

In:  real servers, captured into a lake; cuts as apply would publish them.
Out: lags that grow only when something is missing.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from tests.support.captures import capture_until_quiet, info_of, pipeline_for
from tests.support.servers import FreshDatabase
from tidegate import tables
from tidegate.capture.health import Hop, slowest
from tidegate.capture.standing import CaptureStanding, standing
from tidegate.cli.status import status_lines
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.looking.asked import ask

pytestmark = pytest.mark.server


def _publish(lake: LakeFiles, cut_ts: int) -> None:
    cut = {"delta_version": -1, "applied_ts": cut_ts, "state": "active", "published_at": dt.datetime.now(dt.UTC)}
    control.append(lake, tables.CUTS, [{**cut, "cut_ts": cut_ts, "table": name} for name in ("", "x.t")])


def test_a_quiet_source_is_not_behind_and_one_that_wrote_is(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, path = fresh_database(any_server), tmp_path / "lake"
    pipeline, lake = pipeline_for(any_server, path), LakeFiles(str(path))
    info = info_of(any_server)

    def look(connection: ConnectionInfo = info) -> CaptureStanding:
        return standing(pipeline, lake, lambda _: ask(pipeline, lambda: connection))

    before = look()
    assert (before.lag_seconds, before.sources[0].captured) == (None, None)
    capture_until_quiet(any_server, path)
    any_server.query("CREATE TABLE t (a INT)", database=database)
    any_server.query("INSERT INTO t VALUES (1)", database=database)
    capture_until_quiet(any_server, path)
    applied = look().sources[0].captured
    assert applied is not None
    _publish(lake, applied.max_commit_ts - 1)
    assert (look().lag_seconds or 0) > 0, "captured, but not applied"
    _publish(lake, applied.resolved_ts)

    (path / "silver" / "x" / "t__rebuilt_5").mkdir(parents=True)
    monkeypatch.setattr("time.time", lambda: dt.datetime(2099, 1, 1, tzinfo=dt.UTC).timestamp())
    quiet = look()
    assert (quiet.lag_seconds, quiet.nothing_missing, quiet.sources[0].nothing_missing) == (0, True, True)
    assert f"{database}.t" in quiet.unseen
    assert quiet.rebuilt == ("silver/x/t__rebuilt_5",)
    assert quiet.sources[0].purge is not None, "what is captured to the end stays for the server's whole age"
    assert quiet.sources[0].purge.rule != "gone"
    text = " ".join(" ".join(status_lines(quiet)).split())
    assert text.startswith("test: nothing is missing; cut of ")
    assert "source one: all of it is captured from " in text

    any_server.query("INSERT INTO t VALUES (2)", database=database)
    stuck = look()
    assert stuck.sources[0].nothing_missing is False
    assert (stuck.lag_seconds or 0) > 3600
    assert 0 < (stuck.sources[0].behind_bytes or 0) < 10_000
    at = slowest(stuck)
    assert at is not None
    assert (at.hop, at.source) == (Hop.CAPTURE, "one")
    any_server.query("FLUSH BINARY LOGS", database=database)
    assert 0 < (look().sources[0].behind_bytes or 0) < 20_000, "over two files"

    lost = look(info_of(any_server, port=1))
    assert lost.sources[0].nothing_missing is None
    assert "connection refused" in lost.sources[0].server.error
    assert (lost.lag_seconds or 0) > 3600
    assert "no answer" in "\n".join(status_lines(lost))


def test_patterns_that_match_nothing_are_said(mariadb: Server, tmp_path: Path) -> None:
    pipeline = pipeline_for(mariadb, tmp_path)
    nothing = pipeline.tables.model_copy(update={"include": ["nosuch.*"]})
    pipeline = pipeline.model_copy(update={"tables": nothing})
    found = standing(pipeline, LakeFiles(str(tmp_path)), lambda _: ask(pipeline, lambda: info_of(mariadb)))
    assert "tables.include matches no table" in " ".join(" ".join(status_lines(found)).split())
