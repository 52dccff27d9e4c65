"""Upkeep of a control table beside a writer that never stops."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidegate import tables
from tidegate.lake import control
from tidegate.lake.control_upkeep import commit_times, compact, rewrite
from tidegate.lake.files import LakeFiles


def row(number: int) -> dict[str, Any]:
    now = datetime.now(UTC)
    return {"cut_ts": number, "table": "", "delta_version": -1, "applied_ts": 0, "state": "active", "published_at": now}


def test_compaction_keeps_every_row_and_the_transaction_version(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    assert compact(lake, tables.CUTS, files_min=2) is None
    for number in range(20):
        control.append(lake, tables.CUTS, [row(number)], app_transaction=("cuts", number))
    found = compact(lake, tables.CUTS, files_min=8)
    assert found is not None
    assert (found[0].files, found[1].files) == (20, 1)
    assert sorted(control.read(lake, tables.CUTS)["cut_ts"].to_pylist()) == list(range(20))
    assert control.application_version(lake, tables.CUTS, "cuts") == 19
    assert list((tmp_path / "control/cuts/_delta_log").glob("*.checkpoint.parquet"))


def test_an_append_between_a_rewrites_read_and_its_commit_is_kept(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    for number in range(5):
        control.append(lake, tables.CUTS, [row(number)])

    def stays(rows: pa.Table) -> pa.Table:
        if 99 not in rows["cut_ts"].to_pylist():
            control.append(lake, tables.CUTS, [row(99)])  # apply publishes right now
        return rows.filter(pc.greater_equal(rows["cut_ts"], 3))

    assert rewrite(lake, tables.CUTS, stays) is not None
    assert sorted(control.read(lake, tables.CUTS)["cut_ts"].to_pylist()) == [3, 4, 99]


def test_a_writer_that_holds_an_older_snapshot_appends_all_the_same(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    control.append(lake, tables.CUTS, [row(1)])
    stale = control.load(lake, tables.CUTS)
    assert stale is not None
    rewrite(lake, tables.CUTS, lambda rows: rows.slice(0, 0))
    control.append(lake, tables.CUTS, [row(2)])
    assert control.read(lake, tables.CUTS)["cut_ts"].to_pylist() == [2]


def test_commit_times_are_the_log_files_and_a_missing_one_is_left_out(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    control.append(lake, tables.CUTS, [row(1)])
    found = commit_times(lake, tables.CUTS.path, [0, 1, 2])
    assert set(found) == {0, 1}
    assert abs(found[1] - datetime.now(UTC).timestamp()) < 60
