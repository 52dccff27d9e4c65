"""A TiDB's tables for a reader are named as the source names them: a changefeed in lower case alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tidegate.snapshot.reading.tidb_definitions import Definitions
from tidegate.tidb.jobs import Job
from tidegate.tidb.tables.live_tables import fold

CASE = Path(__file__).resolve().parents[2] / "golden" / "tidb" / "l02_partitions"


class Told:
    """In the place of TiDB's DDL history."""

    def __init__(self) -> None:
        lines = (CASE / "ddl_jobs.jsonl").read_text().replace('"O": "ro"', '"O": "Ro"').splitlines()
        self._text = fold(map(Job.from_text, lines)).text.encode()

    def jobs_at(self, ts: int) -> tuple[int, int]:
        return 1, ts

    def tables_at(self, ts: int) -> bytes:
        del ts
        return self._text


def test_a_changefeeds_tables_are_found_by_their_names_in_lower_case() -> None:
    history: Any = Told()
    names = [("w2", "ro"), ("w2", "Ro"), ("w2", "h")]
    assert Definitions(history).at("s", names, 7).keys() == {("w2", "Ro"), ("w2", "h")}
    found = Definitions(history, lower_tables=True).at("s", names, 7)
    assert found.keys() == {("w2", "ro"), ("w2", "h")}
    assert found["w2", "ro"].table == "ro"
