"""Which tables there are is known again by what schema_history has of them, whenever an apply begins."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kit.tidb import encode
from tests.kit.tidb.replay.catalog import Catalog
from tidegate.schema.model.columns import VersionStatus
from tidegate.schema.replay.history import SchemaHistory
from tidegate.tidb.jobs import REFILLING, Job
from tidegate.tidb.records.payload import Mutation
from tidegate.tidb.tables.definitions import Stands, ids_of, live_tables, versions_of
from tidegate.tidb.tables.live_tables import LiveTables, VersionKind

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


def jobs_of(case: str) -> list[Job]:
    lines = (CASE.parent / case / "ddl_jobs.jsonl").read_text().splitlines()
    return [Job.from_text(line) for line in lines]


def test_a_table_that_was_divided_anew_has_its_rows_under_both_ids() -> None:
    """A transaction that began before PARTITION BY names the table by the id that it had."""
    history = SchemaHistory("p", ())
    for at, job in enumerate(jobs_of("l05_divided"), 1):
        history.add(versions_of(live_tables(history).run(job), Stands(at, "", at, job.query), history))
    versions = history.versions("q", "k")
    created, divided, reorganised, plain, again, more = ids_of(versions)
    assert {version.kind for version in versions[1:]} == {"alter"}
    assert len(created) == 1
    assert divided == reorganised == (divided[0], created[0])
    assert plain == (plain[0], divided[0])
    assert again == more == (again[0], plain[0])


def test_a_table_without_a_key_whose_rows_are_divided_anew_waits_for_them() -> None:
    live, waits = LiveTables(), {}
    for case in ("l02_partitions", "l05_divided"):
        for job in jobs_of(case):
            waits |= {
                change.info.name: (bool(change.unknown_rows), bool(change.info.key))
                for change in live.run(job)
                if job.type in REFILLING
            }
    assert waits == {"h": (True, False), "ro": (True, False), "k": (False, True)}


def test_so_does_one_of_which_that_was_given_up() -> None:
    """TiDB told twice of rows until then; a table with a key has each once."""
    waits = {}
    for case in ("l02_partitions", "l05_divided"):
        live = LiveTables()
        for job in jobs_of(case):
            if job.type in REFILLING:
                changes = live.run(replace(job, state=3))
                before = {info.id: (name, info) for name, info in live}[job.table_id]
                assert [(one.change, one.name, one.info) for one in changes] == [(VersionKind.ALTER, *before)] * len(
                    changes
                )
                waits[before[1].name] = [one.unknown_rows for one in changes]
            live.run(job)
    why = ["its rows were going into other partitions, and it has no key"]
    assert waits == {"h": why, "ro": why, "k": []}


def test_its_version_waits_for_a_snapshot_and_tidb_replay_knows_its_rows_no_more() -> None:
    history, catalog = SchemaHistory("p", ()), Catalog(0)
    for at, job in enumerate(jobs_of("l02_partitions"), 1):
        refused = replace(job, state=3) if job.type in REFILLING else job
        if refused is not job and job.table is not None and job.table.name == "ro":
            break
        history.add(versions_of(live_tables(history).run(job), Stands(at, "", at, job.query), history))
        catalog.run(job)
    history.add(versions_of(live_tables(history).run(refused), Stands(at, "", at, refused.query), history))
    one, last = history.versions("w2", "ro")[-2:]
    assert (one.status, last.status) == (VersionStatus.ACTIVE, VersionStatus.NEEDS_SNAPSHOT)
    assert (one.columns, one.origin) == (last.columns, last.origin)
    row = encode.datum(1) + encode.pairs({1: 1})
    catalog.change(encode.mutations(job.table_id, (Mutation.INSERT, row)), job.start_ts)
    catalog.run(refused)
    (table,) = (table for _, table in catalog if table.info.name == "ro")
    assert len(table.rows) == 1
    catalog.change(encode.mutations(job.table_id, (Mutation.INSERT, encode.datum(2) + encode.pairs({1: 2}))), 1 << 62)
    catalog.run(refused)
    assert "written to while its rows were put into other partitions" in str(table.unknown)
