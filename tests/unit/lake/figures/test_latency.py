"""What a window's markers tell, and percentiles of what was told."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from tidegate import tables
from tidegate.delta.log import DeltaLog
from tidegate.lake import control
from tidegate.lake.figures import latency
from tidegate.lake.files import LakeFiles


def test_percentiles_are_those_of_nearest_rank() -> None:
    found = latency.Percentiles.of([n / 10 for n in range(100, 0, -1)])
    assert found == latency.Percentiles(100, p50=5.0, p95=9.5, p99=9.9, longest=10.0)
    assert latency.Percentiles.of([3.0]) == latency.Percentiles(1, 3.0, 3.0, 3.0, 3.0)
    assert latency.Percentiles.of([]) is None


def test_only_the_windows_markers_count_and_the_clocks_difference_is_taken_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window's commits are read by number, however many came before it."""
    lake = LakeFiles(str(tmp_path))
    place = lake.uri(tables.silver_path(tables.MARKER_DATABASE, tables.MARKER_TABLE))

    def write(upto_ts: int, written_us: list[int], ahead_us: list[int], commit_ts: list[int]) -> int:
        rows = {"slot": commit_ts, "written_us": written_us, "ahead_us": ahead_us, tables.COMMIT_TS: commit_ts}
        mark = Transaction(tables.app_id("p", tables.MARKER), upto_ts)
        write_deltalake(
            place,
            pa.table(rows),
            mode="append" if upto_ts < 30 else "overwrite",
            commit_properties=CommitProperties(app_transactions=[mark]),
        )
        return int(DeltaTable(place).version())

    for upto_ts in range(1, 11):
        write(upto_ts, [1_000_000], [0], [upto_ts])
    write(15, [2_000_000], [0], [15])
    # As MERGE rewrites a small table; the source's clock showed 3 s when here it was 2.5 s.
    written = [1_000_000, 2_000_000, 3_000_000, 4_000_000]
    version = write(30, written, [0, 0, 500_000, 0], [10, 15, 30, 40])
    looked: list[int] = []
    real = DeltaLog.actions

    def noted(self: DeltaLog, at: int) -> list[dict[str, Any]] | None:
        looked.append(at)
        return real(self, at)

    monkeypatch.setattr(DeltaLog, "actions", noted)
    found = latency.of_window(lake, "p", version, after_ts=10, cut_ts=30, visible_us=5_000_000)
    assert sorted((row["written_us"], row["seconds"]) for row in found) == [(2_000_000, 3.0), (3_000_000, 2.5)]
    assert {row["cut_ts"] for row in found} == {30}
    assert looked == [version, version - 1, version - 2]
    assert len(latency.of_window(lake, "p", 3, after_ts=0, cut_ts=30, visible_us=5_000_000)) == 4


def test_status_sums_up_the_last_minutes_from_the_files_that_can_hold_them(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    assert latency.recent(lake, 300) is None
    now = time.time_ns() // 1000
    for age_seconds, took in ((4000, 9.0), (200, 0.5), (10, 0.7)):
        visible = now - age_seconds * 1_000_000
        row = {"written_us": visible - int(took * 1e6), "visible_us": visible, "seconds": took, "cut_ts": age_seconds}
        control.append(lake, tables.LATENCY, [row])
    assert latency.recent(lake, 300) == latency.Percentiles(2, 0.5, 0.7, 0.7, 0.7)
    old = min(Path(tmp_path, tables.LATENCY.path).glob("*.parquet"), key=lambda path: path.stat().st_mtime)
    old.unlink()  # proves that it isn't opened
    assert latency.recent(lake, 300) == latency.Percentiles(2, 0.5, 0.7, 0.7, 0.7)
