"""A keyed table that is divided anew six times while three sessions write to it: silver's changes leave TiDB's rows.

The stream is l05_divided, of a TiDB 7.5. Its changes come twice in places, an UPDATE as a DELETE of the row besides,
and transactions commit under the id that the table had before.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.kit.tidb.replay.command import recorded_tables
from tests.kit.tidb.replay.recording import Recording
from tidegate.schema.replay.history import SchemaHistory
from tidegate.segments.result import CommitSpan, Known
from tidegate.tables import COMMIT_TS, OP, OP_DELETE, ORDINAL
from tidegate.tidb.records.enclosed import joined
from tidegate.tidb.records.payload import BinlogType, binlog_of
from tidegate.tidb.rows.decode import decode_in_pieces
from tidegate.tidb.tables.definitions import Stands, live_tables, versions_of

CASE = Path(__file__).resolve().parents[2] / "golden" / "tidb" / "l05_divided"
NAME = ("q", "k")


def test_what_comes_twice_leaves_the_rows_that_select_shows() -> None:
    recording, history = Recording(CASE), SchemaHistory("p", ())
    payloads = [payload for _, payload in recording.payloads()]
    binlogs = [binlog_of(payload) for payload in payloads]
    commits = [one for one in binlogs if one.tp is BinlogType.COMMIT]
    last = {one.ddl_job_id: one.commit_ts for one in sorted(commits, key=lambda one: one.commit_ts) if one.ddl_job_id}
    for job_id, commit_ts in sorted(last.items(), key=lambda one: one[1]):
        job = recording.jobs[job_id]
        history.add(versions_of(live_tables(history).run(job), Stands(commit_ts, "p", 0, job.query), history))
    segment: Any = SimpleNamespace(payload=joined(payloads), start_pos=0, file="p", seq=1)
    answers = {one.start_ts: one.commit_ts for one in commits if not one.ddl_job_id}
    spans = {NAME: CommitSpan(0, max(answers.values()))}
    found = list(decode_in_pieces(segment, {NAME: history.versions(*NAME)}, spans, known=Known(answers=answers)))
    assert [problem for one in found for problem in one.problems] == []
    changes = [row for one in found for change in one.changes for row in change.batch.to_pylist()]
    rows: dict[tuple[int, int], str] = {}
    for row in sorted(changes, key=lambda row: (row[COMMIT_TS], row[ORDINAL])):
        if row[OP] == OP_DELETE:
            rows.pop((row["id"], row["p"]), None)
        else:
            rows[row["id"], row["p"]] = row["v"]
    (table,) = recorded_tables(CASE / "tables")
    assert sorted([str(id_), str(p), v] for (id_, p), v in rows.items()) == table["rows"]
