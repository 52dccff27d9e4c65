"""What a reader of a TiDB knows without one: tables at a timestamp, how text comes, which failures are a table's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pymysql
import pytest

from tidegate import tables
from tidegate.config import parse
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.mysql.connecting.connection import ConnectionInfo, named
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.snapshot.progress.automatic import waiting
from tidegate.snapshot.reading.result.plan import make_read_plan
from tidegate.snapshot.reading.tidb_definitions import Definitions
from tidegate.snapshot.wave_reading import is_of_table
from tidegate.tidb.jobs import Job
from tidegate.tidb.tables.live_tables import fold

CASE: Final = Path(__file__).resolve().parents[2] / "golden" / "tidb" / "p07_charset"
DATABASE: Final = "p07_charset_db"


class Recorded:
    """The DDL history of a recording, as it was at a timestamp. read: how often all of it was."""

    def __init__(self) -> None:
        lines = (CASE / "ddl_jobs.jsonl").read_text().splitlines()
        self.stamps = {int(json.loads(line)["binlog"]["FinishedTS"]): line for line in lines}
        self.read = 0

    def jobs_at(self, ts: int) -> tuple[int, int]:
        there = [json.loads(line)["id"] for stamp, line in self.stamps.items() if stamp < ts]
        return len(there), max(there, default=0)

    def tables_at(self, ts: int) -> bytes:
        self.read += 1
        return fold(Job.from_text(line) for stamp, line in self.stamps.items() if stamp < ts).text.encode()


def test_a_table_is_as_it_was_at_the_timestamp() -> None:
    history = Recorded()
    definitions, stamps = Definitions(history), sorted(history.stamps)  # type: ignore[arg-type]
    names = [(DATABASE, name) for name in ("cs", "gpk", "u0900", "never")]
    found = [{name for _, name in definitions.at("s", names, ts)} for ts in (stamps[0], *stamps[1:3], 1 << 62, 1 << 62)]
    assert found == [set(), set(), {"cs"}, {"cs", "gpk", "u0900"}, {"cs", "gpk", "u0900"}]
    assert history.read == 4, "what has no more jobs isn't folded again"


def test_text_comes_in_utf_8_whatever_its_column_says() -> None:
    definitions = Definitions(Recorded())  # type: ignore[arg-type]
    version = definitions.at("s", [(DATABASE, "cs")], 1 << 62)[DATABASE, "cs"]
    assert {"gbk", "latin1", "utf8mb4"} <= {column.charset for column in version.columns}
    plan = make_read_plan(version)
    assert {one.plan.charset for one in plan.columns if one.plan is not None} <= {"utf8mb4", ""}
    assert {column.charset for column in plan.version.columns} == {"utf8mb4", ""}


@pytest.mark.parametrize(("code", "of_table"), [(9006, True), (8055, True), (2013, False), (1146, True)])
def test_what_garbage_collection_has_passed_is_read_again(code: int, *, of_table: bool) -> None:
    cause = pymysql.err.OperationalError(code, "GC life time is shorter than transaction duration")
    found = named(cause, ConnectionInfo("h"))
    found.__cause__ = cause
    assert is_of_table(found) == of_table
    assert ("raise tidb_gc_life_time" in str(found)) == (code > 8000)


def test_a_tidbs_tables_wait_under_the_first_pump_and_its_own_never(tmp_path: Path) -> None:
    pumps = ", ".join(f"p{n}: {{conn_id: c, flavour: tidb, listen: ['unix:/p{n}']}}" for n in (1, 2))
    text = f"pipeline: p\nlake: {{path: {tmp_path}}}\nsources: {{{pumps}}}\ntables: {{include: ['*.*']}}\n"
    lake = LakeFiles(str(tmp_path))
    for database in ("shop", "mysql"):
        version = TableVersion(
            "p1", database, "t", 1, 5, "f", 4, "baseline", "", (), (), "utf8mb4", status=VersionStatus.NEEDS_SNAPSHOT
        )
        control.append(lake, tables.SCHEMA_HISTORY, [version.to_row()])
    assert waiting(parse(text, where="p.yaml"), lake) == {"shop.t": (("p1", "shop", "t"),)}
