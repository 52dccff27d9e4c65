"""`tidegate snapshot` as a person runs it: a table with rows from before capture is the source's, and held no more."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.servers import ROOT, FreshDatabase
from tidegate import config
from tidegate.home import EXIT_ERROR, EXIT_INTERRUPTED, EXIT_TRANSIENT
from tidegate.lake.jobs.leases import take_lease
from tidegate.local.server import Server
from tidegate.snapshot.progress.events import EventKind, SnapshotState
from tidegate.snapshot.progress.requests import events_of, request, told
from tidegate.standing.causes import Cause
from tidegate.tables import WATERMARK_DATABASE

pytestmark = [pytest.mark.server, pytest.mark.spark]

ROWS = 3000
WORDS = {"pause": ("paused", SnapshotState.PAUSED), "resume": ("resumed", SnapshotState.REQUESTED)}
RIGHTS = "CREATE, SELECT, INSERT, UPDATE"


def begun(road: Road, *words: str) -> subprocess.Popen[str]:
    """`tidegate snapshot` in a process of its own."""
    server = road.server
    connection = {
        "conn_type": "mysql",
        "host": server.host,
        "port": server.port,
        "login": server.user,
        "password": server.password,
    }
    return subprocess.Popen(
        [str(Path(sys.executable).parent / "tidegate"), "snapshot", words[0], str(road.file), *words[1:]],
        env=os.environ | {"TIDEGATE_HOME": str(ROOT), "AIRFLOW_CONN_ROAD_ONE": json.dumps(connection)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit code, what it said, and its last two lines on stderr."""
    out, err = process.communicate(timeout=300)
    assert "Traceback" not in err, err
    return process.returncode, out.strip(), "\n".join(err.splitlines()[-2:])


def begun_beside_another(road: Road, table: str) -> subprocess.Popen[str]:
    """`start` of a table that was paused and resumed, while somebody else has the lease: it waits, and then reads."""
    database, _, name = table.partition(".")
    request(road.lake, "road", [("one", database, name)])
    for word, (said, state) in WORDS.items():
        code, out, _ = ended(begun(road, word, table))
        assert (code, out, told(road.lake, "road")[0].state) == (0, f"{said}: {table}", state)
    with take_lease(road.lake, "one", "snapshot", report=road.lines.append):
        process = begun(road, "start", table)  # whoever has the lease reads it, and this one waits
        assert process.stderr is not None
        while "this one waits" not in (line := process.stderr.readline()):
            assert line, ended(process)
        assert "snapshot of one" in line
        code, _, line = ended(begun(road, "run"))  # as a timer does: the next one comes
        assert (code, "snapshot of one" in line) == (EXIT_TRANSIENT, True), line
    return process


@pytest.mark.timeout(900)
def test_a_table_that_held_rows_before_capture_is_filled_by_the_command(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    rows = ", ".join(f"({i}, 'old {i}')" for i in range(ROWS))
    for name, key, engine in (("t", " PRIMARY KEY", "InnoDB"), ("bare", "", "MyISAM")):
        mariadb.query(f"CREATE TABLE {database}.{name} (id INT{key}, a VARCHAR(20)) ENGINE = {engine}")
        mariadb.query(f"INSERT INTO {database}.{name} VALUES {rows}")
    mariadb.query(f"GRANT {RIGHTS} ON {WATERMARK_DATABASE}.* TO '{mariadb.user}'@'%'")
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.file.write_text(road.text + "snapshot: {mode: manual, parallel: 2, chunk_rows: 500}\n")
    road.pipeline = config.load(road.file)
    road.capture()
    app = road.apply(spark)
    assert {app.states[f"{database}.{name}"].cause for name in ("t", "bare")} == {Cause.NEEDS_ROWS}

    process = begun_beside_another(road, f"{database}.t")
    while not any(one.waiting for one in told(road.lake, "road")) and process.poll() is None:
        time.sleep(0.1)
    kinds = {event.event for event in events_of(road.lake, "road")}
    assert EventKind.RANGES in kinds, "it is divided, though it was paused and resumed before its turn"
    process.send_signal(signal.SIGINT)
    code, _, line = ended(process)
    where, last = line.splitlines()
    assert (code, last) == (EXIT_INTERRUPTED, "stopped; 1 table is left: tidegate snapshot run road goes on")
    assert re.search(
        r"waits for capture and apply \(capture is at [0-9.]+ (s|min) ago, apply at [0-9.]+ (s|min) ago\)$", where
    )
    code, out, line = ended(begun(road, "pause", f"{database}.t"))  # all of it is read
    assert (code, out, told(road.lake, "road")[0].state) == (0, "paused: no table", SnapshotState.RUNNING)
    assert "end by themselves" in line

    step = 0
    process = begun(road, "start")  # all that wait: the one that was asked for goes on, and the one without key
    while process.poll() is None:
        step += 1
        mariadb.query(f"UPDATE {database}.t SET a = 'new {step}' WHERE id % 50 = {step % 50}")
        mariadb.query(f"DELETE FROM {database}.t WHERE id = {7 * step}")
        road.capture()
        app = road.apply(spark)
    code, out, line = ended(process)
    assert (code, out.split(" rows;")[0].split(",")[0]) == (EXIT_ERROR, "1 table is read"), out
    assert f"{database}.bare of one is failed: it has no key" in line
    road.capture()
    app = road.apply(spark)
    assert app.states[f"{database}.t"].state == "active"
    assert app.states[f"{database}.bare"].cause == Cause.NEEDS_ROWS
    assert 0 < road.assert_equal()["t"] < ROWS
    code, out, _ = ended(begun(road, "status"))
    assert (code, [line.split()[1:3] for line in out.splitlines()[1:3]]) == (
        EXIT_ERROR,
        [[f"{database}.bare", "failed"], [f"{database}.t", "done"]],
    )
