"""What capture and apply used is in the lake beside a real server, and the page's history shows it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate.lake import control
from tidegate.lake.figures import usage
from tidegate.lake.figures.timeline import timeline
from tidegate.local.server import Server
from tidegate.tables import CUTS
from tidegate.tables.usage_table import USAGE

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]


def test_runs_of_capture_and_apply_leave_their_cpu_and_lag(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "USAGE_LEAST_SECONDS", 0.0)
    database = fresh_database(any_server)
    begun = time.time()
    road = Road.begun(
        any_server, tmp_path, database, "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)"
    )
    road.capture()
    road.apply()
    rows = control.read(road.lake, USAGE).to_pylist()
    assert {(row["work"], row["of"]) for row in rows} == {("capture", "one"), ("apply", road.pipeline.pipeline)}
    assert all(row["cpu_seconds"] >= 0 and row["seconds"] > 0 for row in rows)
    assert sum(row["cpu_seconds"] for row in rows) > 0, "a short run may take less than a tick"
    (applied,) = [row for row in rows if row["work"] == "apply"]
    assert 0 < applied["lag_seconds"] < time.time() - begun + 5
    sizes = control.newest(road.lake, CUTS, by=["table"], order=["cut_ts", "published_at"])
    assert [row["silver_rows"] for row in sizes.to_pylist() if row["table"] == f"{database}.t"] == [2]
    past = timeline(road.lake, time.time(), 3600.0)
    assert any(past.capture_cpu)
    assert any(past.apply_cpu)
