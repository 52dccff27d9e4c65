"""TiDB's DDL history is never whole in a Pump's memory: a MySQL in its place has a table of the same shape."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from tidegate.errors import SourceUnavailable
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.pump.cluster import History
from tidegate.tidb.tables.live_tables import LiveTables

pytestmark = pytest.mark.server

CASE = Path(__file__).resolve().parents[2] / "golden" / "tidb" / "p04_bank"
JOBS, PADDING = 1500, 40_000


def test_a_long_history_is_folded_a_job_at_a_time(mysql9: Server) -> None:
    lines = [json.loads(line) for line in (CASE / "ddl_jobs.jsonl").read_text().splitlines()]
    made = next(job for job in lines if job["type"] == 3)
    info = ConnectionInfo(mysql9.host, mysql9.port, mysql9.user, mysql9.password)
    history, there = History(info), "mysql.tidb_ddl_history"
    mysql9.query(f"CREATE TABLE {there} (job_id BIGINT PRIMARY KEY, job_meta LONGBLOB)")
    try:
        with mysql9.connect("mysql") as connection, connection.cursor() as cursor:
            for number in range(JOBS):
                job = json.loads(json.dumps(made)) | {"id": number, "table_id": number, "error": "x" * PADDING}
                table = job["binlog"]["TableInfo"]
                table["id"], table["name"] = number, {"O": f"t{number}", "L": f"t{number}"}
                job["binlog"]["FinishedTS"] = 1000 + (number ^ 3)  # four at a time end the other way round
                cursor.execute(f"INSERT INTO {there} VALUES (%s, %s)", (number, json.dumps(job)))
            connection.commit()
        tracemalloc.start()
        text = history.tables(1000 + 1003)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        names = {name[1] for name, _ in LiveTables.from_text(text)}
        assert names == {f"t{number}" for number in range(1004)}
        assert peak < JOBS * PADDING / 3
    finally:
        mysql9.query(f"DROP TABLE {there}")
    with pytest.raises(SourceUnavailable, match="doesn't exist"):
        history.tables(1)
