"""Which tables are due for a comparison: those that weren't seen equal lately."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from tidegate import pipelines, tables
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.repair import due_tables
from tidegate.verify.recording import record
from tidegate.verify.report import Outcome, Report, TableResult

PIPELINE = "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables: {include: ['a.*']}\n"


def test_a_table_that_differs_or_was_not_compared_is_due_again(tmp_path: Path) -> None:
    file, lake = tmp_path / "p.yaml", LakeFiles(str(tmp_path / "lake"))
    file.write_text(f"{PIPELINE}verify: {{each_table_hours: 24}}\n")
    pipeline = pipelines.load(file)
    names = ["", "a.equal", "a.differs", "a.mended", "a.shards", "a.never"]
    told = {"delta_version": 1, "applied_ts": 1, "state": "active", "published_at": datetime.now(UTC)}
    control.append(lake, tables.CUTS, [{"cut_ts": 1, "table": name, **told} for name in names])

    def said(**outcomes: Outcome) -> None:
        found = (TableResult("s", f"a.{name}", f"a.{name}", outcome) for name, outcome in outcomes.items())
        record(lake, Report("p", 1, {}, tuple(found)))

    said(equal=Outcome.EQUAL, differs=Outcome.DIFFERENT, mended=Outcome.UNSETTLED)
    shards = zip(("a.s1", "a.s2"), (Outcome.EQUAL, Outcome.DIFFERENT), strict=True)
    record(lake, Report("p", 1, {}, tuple(TableResult("s", one, "a.shards", outcome) for one, outcome in shards)))
    assert due_tables(lake, pipeline) == ["a.differs", "a.mended", "a.never", "a.shards"]
    said(mended=Outcome.EQUAL)
    assert due_tables(lake, pipeline) == ["a.differs", "a.never", "a.shards"]
