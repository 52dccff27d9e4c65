"""Records of work go after their time; whatever still counts stays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.maintain_steps.forget_records import forget_records
from spark_jobs.maintenance import Maintenance
from tidegate import config, tables
from tidegate.commit_ts import compose
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.held import last_states
from tidegate.tables.snapshot_tables import VERIFICATION

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def stamp(days: float) -> int:
    return compose(int(ago(days).timestamp() * 1000))


def filled(of: tables.Table, /, **cells: Any) -> dict[str, Any]:
    """A row of a table; what isn't given is nothing."""
    nothing: dict[str, Any] = {"string": "", "double": 0.0, "int64": 0}
    return {field.name: None if field.nullable else nothing.get(str(field.type)) for field in of.schema} | cells


def test_old_records_go_by_whole_files_and_the_last_event_of_each_table_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = LakeFiles(str(tmp_path))
    for days in (20, 11, 9, 1):
        control.append(lake, tables.LEDGER, [filled(tables.LEDGER, seq=int(days), cut_ts=stamp(10 + days))])
        seen_us = int(ago(days).timestamp() * 1e6)
        control.append(lake, tables.LATENCY, [filled(tables.LATENCY, written_us=1, visible_us=seen_us, cut_ts=days)])
        control.append(lake, tables.MAINTENANCE, [filled(tables.MAINTENANCE, at=ago(days), detail=str(days))])
        done = filled(tables.ACTIONS, id=str(days), tables=[], recorded_at=ago(days))
        control.append(lake, tables.ACTIONS, [done])
        control.append(lake, tables.TABLE_STATES, [event("d.a", "held", days), event("d.b", "held", days + 10)])
    # A file in which there is something young stays as it is. The source's log is ten days behind.
    rows = [filled(tables.LEDGER, seq=number, cut_ts=stamp(10 + number)) for number in (30, 0)]
    control.append(lake, tables.LEDGER, rows)
    cut = filled(tables.CUTS, cut_ts=stamp(10), published_at=NOW)
    control.append(lake, tables.CUTS, [cut])
    before = last_states(lake)
    opened: list[str] = []
    real = LakeFiles.open

    def noted(self: LakeFiles, path: str) -> Any:
        opened.append(path)
        return real(self, path)

    monkeypatch.setattr(LakeFiles, "open", noted)
    text = "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables: {include: ['d.*']}\n"
    pipeline = config.parse(text + "maintain: {keep_records_days: 10}\n", where="p.yaml")
    lines: list[str] = []
    no_spark: Any = None  # the step has no use for one
    job = Maintenance(no_spark, pipeline, lake, lines.append, NOW)
    forget_records(job)
    assert not [path for path in opened if path.startswith((tables.LEDGER.path, tables.LATENCY.path))]
    assert sorted(control.read(lake, tables.LEDGER)["seq"].to_pylist()) == [0, 1, 9, 30]
    assert sorted(control.read(lake, tables.LATENCY)["cut_ts"].to_pylist()) == [1, 9]
    assert sorted(control.read(lake, tables.MAINTENANCE)["detail"].to_pylist()) == ["1", "9"]
    assert sorted(control.read(lake, tables.ACTIONS)["id"].to_pylist()) == ["1", "9"]
    assert last_states(lake) == before
    left = control.read(lake, tables.TABLE_STATES).select(["table", "recorded_at"]).to_pylist()
    assert sorted((row["table"], row["recorded_at"]) for row in left) == [
        ("d.a", ago(9)),
        ("d.a", ago(1)),
        ("d.b", ago(11)),
    ]
    assert [(row["table"], row["files_before"], row["files_after"]) for row in job.rows] == [
        ("control/ledger", 6, 4),
        ("control/latency", 4, 2),
        ("control/maintenance", 4, 2),
        ("control/actions", 4, 2),
        ("control/table_states", 8, 3),
    ]
    forget_records(job)
    assert len(job.rows) == 5, "nothing is left to do"


def event(table: str, state: str, days: float, at_ts: int = 0) -> dict[str, Any]:
    cells = {"pipeline": "p", "table": table, "state": state, "commit_ts": at_ts, "recorded_at": ago(days)}
    return filled(tables.TABLE_STATES, **cells)


def test_the_states_stay_by_which_a_changelog_tells_what_it_lacks(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    states = [("released", 50, 1), ("held", 40, 2), ("snapshot", 30, 9), ("held", 25, 8), ("released", 20, 8)]
    control.append(lake, tables.TABLE_STATES, [event("d.a", *state) for state in states])
    text = "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables: {include: ['d.*']}\n"
    pipeline = config.parse(text + "maintain: {keep_records_days: 10}\n", where="p.yaml")
    no_spark: Any = None
    forget_records(Maintenance(no_spark, pipeline, lake, print, NOW))
    before = control.read(lake, tables.TABLE_STATES).sort_by("recorded_at").to_pylist()
    assert [(row["state"], row["commit_ts"]) for row in before] == [
        ("released", 1), ("held", 2), ("snapshot", 9), ("released", 8),
    ]  # fmt: skip


def test_of_verifications_each_table_s_newest_result_stays_without_keys_of_old_rows(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    for table, days in (("a", 30), ("a", 20), ("b", 40), ("b", 1)):
        run = {"verification": f"{table}{days}", "table": table, "recorded_at": ago(days)}
        keys = {1: "['ada']", 2: "['bob']", 0: None}
        found = [filled(VERIFICATION, chunk=number, key_upto=key, **run) for number, key in keys.items()]
        control.append(lake, VERIFICATION, found)
    text = "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables: {include: ['d.*']}\n"
    pipeline = config.parse(text + "maintain: {keep_records_days: 10}\n", where="p.yaml")
    no_spark: Any = None
    forget_records(Maintenance(no_spark, pipeline, lake, print, NOW))
    left = control.read(lake, VERIFICATION).to_pylist()
    assert sorted((row["verification"], row["chunk"]) for row in left) == [
        ("a20", 0),
        *(("b1", number) for number in (0, 1, 2)),
    ]
