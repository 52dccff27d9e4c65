"""A backlog of small segments: their changes are written as JSON together, and are the changelog's as ever."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from spark_jobs.apply_steps import write_changelog
from tests.integration.query.test_changelog import logging, rows_of, run
from tests.support.servers import FreshDatabase
from tidegate.changelog.rows import Imaged, as_changes
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]

SEGMENTS = 4


def test_changes_of_many_segments_are_written_at_once(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, written = fresh_database(any_server), list[int]()

    def counting(parts: Sequence[Imaged]) -> pa.Table:
        written.append(len(parts))
        return as_changes(parts)

    monkeypatch.setattr(write_changelog, "as_changes", counting)
    any_server.query("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))", database=database)
    road = logging(any_server, database, tmp_path, "t")
    for at in range(SEGMENTS):
        run(road, database, f"INSERT INTO t VALUES ({at}, 'é')", f"UPDATE t SET v = 'w{at}' WHERE id = {at}")
        road.capture()
    road.apply()
    assert sum(written) == SEGMENTS
    assert written == [SEGMENTS], "all segments have the same columns"
    rows = [row for row in rows_of(road, database, "t") if row["op"] in ("insert", "update")]
    ops = [(row["op"], row["after"]) for row in rows]
    assert ops == [
        (op, {"id": at, "v": v}) for at in range(SEGMENTS) for op, v in (("insert", "é"), ("update", f"w{at}"))
    ]
    assert len({row["seq"] for row in rows}) == SEGMENTS
