"""What a window's markers tell, and percentiles of what was told."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from tidegate import tables
from tidegate.lake import control, latency
from tidegate.lake.files import LakeFiles


def test_percentiles_are_those_of_nearest_rank() -> None:
    found = latency.Percentiles.of([n / 10 for n in range(100, 0, -1)])
    assert found == latency.Percentiles(100, p50=5.0, p95=9.5, p99=9.9, longest=10.0)
    assert latency.Percentiles.of([3.0]) == latency.Percentiles(1, 3.0, 3.0, 3.0, 3.0)
    assert latency.Percentiles.of([]) is None


def test_only_the_windows_markers_count_and_the_clocks_difference_is_taken_off(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    place = lake.uri(tables.silver_path(tables.MARKER_DATABASE, tables.MARKER_TABLE))
    rows = {
        "slot": [1, 2, 3, 4],
        "written_us": [1_000_000, 2_000_000, 3_000_000, 4_000_000],
        "ahead_us": [0, 0, 500_000, 0],  # the source's clock showed 3 s when here it was 2.5 s
        tables.COMMIT_TS: [10, 20, 30, 40],
    }
    write_deltalake(place, pa.table(rows))
    found = latency.of_window(lake, after_ts=10, cut_ts=30, visible_us=5_000_000)
    assert sorted((row["written_us"], row["seconds"]) for row in found) == [(2_000_000, 3.0), (3_000_000, 2.5)]
    assert {row["cut_ts"] for row in found} == {30}


def test_status_sums_up_the_last_minutes_from_the_files_that_can_hold_them(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    assert latency.recent(lake, 300) is None
    now = time.time_ns() // 1000
    for age_seconds, took in ((4000, 9.0), (200, 0.5), (10, 0.7)):
        visible = now - age_seconds * 1_000_000
        row = {"written_us": visible - int(took * 1e6), "visible_us": visible, "seconds": took, "cut_ts": age_seconds}
        control.append(lake, tables.LATENCY, [row])
    assert latency.recent(lake, 300) == latency.Percentiles(2, 0.5, 0.7, 0.7, 0.7)
    assert latency.windows_since(lake, now - 300 * 1_000_000) == 2
    old = min(Path(tmp_path, tables.LATENCY.path).glob("*.parquet"), key=lambda path: path.stat().st_mtime)
    old.unlink()  # proves that it isn't opened
    assert latency.recent(lake, 300) == latency.Percentiles(2, 0.5, 0.7, 0.7, 0.7)
