"""What a window believes of silver, and what its cut says of tables that it didn't ask: no Spark, only the logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.window.application import Application
from spark_jobs.window.standing import silver_guard
from tests.spark_jobs.apply_steps.test_publish_cut import application
from tidegate import tables
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.names import commit_name
from tidegate.errors import SilverUnlike
from tidegate.lake.silver_tables import create_silver
from tidegate.merge.silver_sql import SilverColumn, SilverShape

APP = tables.app_id("shop", "d.t")
PATH = tables.silver_path("d", "t")


def _filled(log: DeltaLog, *stamps: int) -> DeltaLog:
    create_silver(log, SilverShape((SilverColumn("id", "int"),), ("id",)))
    for at_ts in stamps:
        log.commit(log.state(), Change([], "UPSERT", {APP: at_ts}))
    return log


def begun(folder: Path) -> tuple[Application, DeltaLog]:
    """Silver of d.t has all up to 100, and that was published."""
    app = application(folder)
    app.claim()
    log = _filled(app.lake.log(PATH), 50, 100)
    version = log.state().version
    row = {"table": "d.t", "delta_version": version, **silver_guard.silver_cells(app, "d.t", version)}
    silver_guard.note_published(app, [row])
    return app, log


def test_others_commits_dont_make_up_for_ours_that_are_lost(tmp_path: Path) -> None:
    app, log = begun(tmp_path)
    silver_guard.check(app, "d.t", log.state())
    (tmp_path / PATH / "_delta_log" / commit_name(log.known.version)).unlink()
    app.lake.log(PATH).forget()
    other = DeltaLog(app.lake.uri(PATH))
    other.commit(other.state(), Change([], "OPTIMIZE"))
    with pytest.raises(SilverUnlike, match="older than what was published"):
        silver_guard.check(app, "d.t", log.state())
