"""The road with its lake on S3: capture through delta-rs, apply through Spark, each with the connection's keys.

Needs what CI doesn't bring: the jars of `make jars-s3`. The store is that of tests/kit/s3.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from deltalake import DeltaTable, QueryBuilder

from tests.kit.reached import position_of
from tests.kit.s3 import S3
from tests.support.bronze import pack
from tests.support.servers import ROOT, FreshDatabase
from tidegate import config
from tidegate.capture.run import CaptureRun
from tidegate.lake.bronze.log import BronzeLog
from tidegate.lake.files import LakeFiles
from tidegate.limits import BRONZE_RUN_FILES_MIN
from tidegate.local.jars import S3 as JARS
from tidegate.local.server import Server
from tidegate.mysql.capturing.reader import binlog_run
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.facts.server_facts import current_position
from tidegate.verify.report import Outcome
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.fixture
def store(s3: S3) -> dict[str, str]:
    """Storage options of a store with a bucket `lake`."""
    missing = [jar.file_name for jar in JARS if not (ROOT / ".tidegate" / "jars" / jar.file_name).exists()]
    if missing:
        pytest.skip(f"no {', '.join(missing)}: make jars-s3")
    return s3.options


def test_a_lake_on_s3_is_captured_and_applied(
    mariadb: Server, fresh_database: FreshDatabase, store: dict[str, str], tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    file = tmp_path / "cloud.yaml"
    file.write_text(
        f"pipeline: cloud\nlake: {{path: 's3://lake/{uuid.uuid4().hex}', conn_id: the_lake}}\n"
        "sources: {one: {conn_id: one, flavour: mariadb}}\n"
        f"tables: {{include: ['{database}.*']}}\ncapture: {{land_seconds: 0.1, heartbeat_seconds: 0.5}}\n"
    )
    pipeline = config.load(file)
    info = ConnectionInfo(host=mariadb.host, port=mariadb.port, user=mariadb.user, password=mariadb.password)
    run = binlog_run(pipeline, "one", info, tmp_path / "state", storage_options=store)
    _capture(run, mariadb)
    mariadb.query(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, a VARCHAR(20))")
    mariadb.query(f"INSERT INTO {database}.t VALUES (1, 'one'), (2, 'two'), (3, 'three')")
    mariadb.query(f"UPDATE {database}.t SET a = 'zwei' WHERE id = 2")
    mariadb.query(f"DELETE FROM {database}.t WHERE id = 3")
    _capture(run, mariadb)
    tidegate = _tidegate_with(store, file)
    tidegate("apply", "--mode", "batch")
    uri = f"{pipeline.lake.path}/silver/{database}/t"
    assert _rows(uri, store) == {"id": [1, 2], "a": ["one", "zwei"]}
    # The second window finds rows there: it probes them, and marks dead ones by a deletion vector in the store.
    mariadb.query(f"INSERT INTO {database}.t VALUES (4, 'four')")
    mariadb.query(f"UPDATE {database}.t SET id = 5, a = 'five' WHERE id = 1")
    _capture(run, mariadb)
    tidegate("apply", "--mode", "batch")
    assert _rows(uri, store) == {"id": [2, 4, 5], "a": ["zwei", "four", "five"]}
    assert _verified(pipeline, info, store) == {"t": (Outcome.EQUAL, 3)}
    operations = [entry["operation"] for entry in DeltaTable(uri, storage_options=store).history()]
    assert [one for one in operations if one != "OPTIMIZE"] == ["UPSERT", "UPSERT", "CREATE TABLE"]
    for number in range(BRONZE_RUN_FILES_MIN):
        mariadb.query(f"INSERT INTO {database}.t VALUES ({10 + number}, 'more')")
        _capture(run, mariadb)
    tidegate("maintain")
    lake = LakeFiles(pipeline.lake.path, store)
    before = _bronze_files(lake)
    pack(lake)
    assert _bronze_files(lake) < before
    mariadb.query(f"ALTER TABLE {database}.t ADD COLUMN b DATETIME, ADD COLUMN n INT NOT NULL DEFAULT 7")
    mariadb.query(f"UPDATE {database}.t SET b = '2026-11-22 03:30:00', n = 8 WHERE id = 4")
    _capture(run, mariadb)
    # Spark works on private logs: it fills the column, merges, rewrites all, and then clusters what that left.
    file.write_text(file.read_text() + "apply: {writer: merge}\nmaintain: {cluster_share: 0}\n")
    tidegate("apply", "--mode", "batch")
    mariadb.query(f"ALTER TABLE {database}.t RENAME COLUMN a TO word")
    mariadb.query(f"DELETE FROM {database}.t WHERE id > 4")
    _capture(run, mariadb)
    tidegate("apply", "--mode", "batch")
    tidegate("maintain")
    assert _rows(uri, store, "id, word, n") == {"id": [2, 4], "word": ["zwei", "four"], "n": [7, 8]}
    assert _verified(config.load(file), info, store) == {"t": (Outcome.EQUAL, 2)}
    every = lake.filesystem.get_file_info(pafs.FileSelector(lake.local(f"silver/{database}/t"), recursive=True))
    assert any("/tg-" in info.path for info in every)
    assert not [info.path for info in every if "/tg-" in info.path and "/_delta_log/" in info.path]
    assert "equal" in tidegate("rebuild", f"{database}.t", "--compare").splitlines()[-1]


def _verified(pipeline: config.Pipeline, info: ConnectionInfo, store: dict[str, str]) -> dict[str, tuple[Outcome, int]]:
    report = verify(pipeline, {"one": info}, pipeline.lake.path, store, VerifyOptions(timeout_seconds=30, record=True))
    return {one.table.split(".")[1]: (one.outcome, one.silver_rows) for one in report.tables}


def _capture(run: CaptureRun, server: Server) -> None:
    """Capture until the server's own position; a busy machine may need several runs to get there."""
    with server.connect() as connection, connection.cursor() as cursor:
        goal = current_position(cursor)
    for _ in range(5):
        found = run.run(60, idle_seconds=1.0)
        if goal is None or position_of(found.position) >= goal:
            return
    raise AssertionError(f"capture is at {found.position}, the server at {goal}")


def _bronze_files(lake: LakeFiles) -> int:
    log = BronzeLog.load(lake)
    assert log is not None
    return len(log.files()["one"])


def _rows(uri: str, store: dict[str, str], columns: str = "id, a") -> dict[str, list[object]]:
    silver = DeltaTable(uri, storage_options=store)
    found: dict[str, list[object]] = pa.table(
        QueryBuilder().register("t", silver).execute(f"SELECT {columns} FROM t ORDER BY id")
    ).to_pydict()
    return found


def _tidegate_with(store: dict[str, str], file: Path) -> Callable[..., str]:
    """A `tidegate` command on the pipeline, with the store's keys in its connection; they are never printed."""
    environment = os.environ | {"AIRFLOW_CONN_THE_LAKE": json.dumps({"conn_type": "generic", "extra": store})}

    def run(command: str, *rest: str) -> str:
        argv = [str(Path(sys.executable).parent / "tidegate"), command, str(file), *rest]
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=900, check=False)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
        assert "known-to-the-test-only" not in done.stdout + done.stderr
        return done.stdout

    return run
