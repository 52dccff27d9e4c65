"""The snapshot task's own behaviour on a real MariaDB: stopped, tried again, done, and failed for a table.

In:  a database on MariaDB, a pipeline file, the operator called as Airflow's task runner calls it. Apply's answers are
     written by the test.
Out: control/snapshots, and the exception by which the task tells Airflow what to do next.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers import FreshDatabase
from tidegate.errors import ConfigError, Terminal, Transient
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent, SnapshotState
from tidegate.snapshot.progress.requests import events_of, told
from tidegate.tables import SNAPSHOTS, WATERMARK_DATABASE

pytestmark = [pytest.mark.airflow, pytest.mark.server]


def operator(file: Path) -> Any:
    from tidegate_airflow.snapshot_operator import SnapshotOperator

    return SnapshotOperator(task_id="snapshot", pipeline_file=str(file))


def stopped_once_waiting(task: Any, lake: LakeFiles) -> None:
    """From a thread: told to end, as by Airflow, when a wave waits for apply."""

    def work() -> None:
        while not any(one.waiting for one in told(lake, "snap")):
            time.sleep(0.05)
        time.sleep(1)
        task.on_kill()

    threading.Thread(target=work, daemon=True).start()


def events(lake: LakeFiles, kind: EventKind) -> list[SnapshotEvent]:
    return [one for one in events_of(lake, "snap") if one.event is kind]


def test_a_task_that_is_stopped_goes_on_where_it_was_and_tells_what_was_not_read(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, lake, file = fresh_database(mariadb), LakeFiles(str(tmp_path / "lake")), tmp_path / "snap.yaml"
    mariadb.query(f"CREATE TABLE {database}.t (id INT PRIMARY KEY)")
    mariadb.query(f"CREATE TABLE {database}.bare (id INT) ENGINE = MyISAM")
    mariadb.query(f"INSERT INTO {database}.t VALUES (1), (2), (3)")
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{mariadb.user}'@'%'")
    file.write_text(
        f"pipeline: snap\nlake: {{path: {tmp_path / 'lake'}}}\n"
        f"sources: {{main: {{conn_id: snap_db, flavour: mariadb}}}}\ntables: {{include: ['{database}.*']}}\n"
    )
    monkeypatch.setenv(
        "AIRFLOW_CONN_SNAP_DB", f"mysql://{mariadb.user}:{mariadb.password}@{mariadb.host}:{mariadb.port}/"
    )
    context: Any = {"params": {"parallel": 1, "tables": [f"{database}.t", f"{database}.bare"]}, "run_id": "manual__1"}
    for _ in range(2):
        task = operator(file)
        stopped_once_waiting(task, lake)
        with pytest.raises(Transient, match="told to end"):
            task.execute(context)
        assert len(events(lake, EventKind.REQUESTED)) == 2, "a second try asks for nothing anew"
        assert len(events(lake, EventKind.WAVE)) == 1, "... and reads nothing twice"
    (wave,) = events(lake, EventKind.WAVE)
    place = (wave.snapshot, "snap", "main", EventKind.APPLIED, datetime.now(UTC), *wave.name)
    control.append(lake, SNAPSHOTS, [SnapshotEvent(*place, wave=wave.wave, token=wave.token, low_ts=1).to_row()])
    with pytest.raises(Terminal, match=rf"{database}\.bare is failed it has no key"):
        operator(file).execute(context)
    assert {one.table: one.state for one in told(lake, "snap")} == {
        "t": SnapshotState.ENDED,
        "bare": SnapshotState.FAILED,
    }
    operator(file).execute({"params": {"tables": []}, "run_id": "manual__2"})
    with pytest.raises(ConfigError, match="param parallel"):
        operator(file).execute({"params": {"parallel": 0}, "run_id": "manual__3"})
    mariadb.query(f"DROP DATABASE {WATERMARK_DATABASE}")
