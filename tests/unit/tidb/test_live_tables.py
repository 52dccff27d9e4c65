"""Which tables there are is known again by what schema_history has of them, whenever an apply begins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidegate.schema.model.columns import VersionStatus
from tidegate.schema.replay.history import SchemaHistory
from tidegate.tidb.definitions import Stands, live_tables, versions_of
from tidegate.tidb.jobs import Job

CASE = Path(__file__).resolve().parents[2] / "golden" / "tidb" / "p05_ddl"


@pytest.mark.parametrize("written", ["DROP DATABASE p05_ddl_db2", "/* of a tool */ Drop\n schema p05_ddl_db2 -- tail"])
def test_tables_that_come_back_with_their_database_are_known_however_its_drop_was_written(written: str) -> None:
    history = SchemaHistory("p", ())
    for at, line in enumerate((CASE / "ddl_jobs.jsonl").read_text().splitlines(), 1):
        job = Job.from_text(
            json.dumps(json.loads(line)).replace("DROP DATABASE p05_ddl_db2", json.dumps(written)[1:-1])
        )
        history.add(versions_of(live_tables(history).run(job), Stands(at, "", at, job.query), history))
        if "p05_ddl_db2" in job.query and "FLASHBACK" in job.query:
            break
    for table in ("f", "moved"):
        last = history.last(("p05_ddl_db2", table))
        assert last is not None
        assert last.status is VersionStatus.NEEDS_SNAPSHOT, last
