"""What cuts and the ledger say of the past: lag and rows per step."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.kit.decoding import segment
from tidegate import tables
from tidegate.commit_ts import compose
from tidegate.lake import control
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.figures.timeline import STEPS, timeline
from tidegate.lake.files import LakeFiles

NOW = 1_790_000_000.0
HOUR = 3600.0
STEP = HOUR / STEPS


def at(seconds_ago: float) -> int:
    return compose(int((NOW - seconds_ago) * 1000))


def published(lake: LakeFiles, *cuts: tuple[float, float]) -> None:
    """(complete up to so many seconds ago, published so many seconds ago), with a row of a table beside each."""
    rows = [
        {
            "cut_ts": at(complete),
            "table": table,
            "delta_version": 1,
            "applied_ts": at(complete),
            "state": "active",
            "published_at": datetime.fromtimestamp(NOW - when, UTC),
        }
        for complete, when in cuts
        for table in ("", "d.t")
    ]
    control.append(lake, tables.CUTS, rows)


def accounted(lake: LakeFiles, *windows: tuple[float, int, int]) -> None:
    """(cut so many seconds ago, rows, bytes)."""
    rows = [
        {
            "source": "s",
            "seq": number,
            "cut_ts": at(ago),
            "payload_bytes": size,
            "decoded_bytes": size,
            "ignored_bytes": 0,
            "quarantined_bytes": 0,
            "ignored_by_rule": "{}",
            "rows": changes,
        }
        for number, (ago, changes, size) in enumerate(windows, 1)
    ]
    control.append(lake, tables.LEDGER, rows)


def landed(lake: LakeFiles, *segments: tuple[float, float] | None, at_once: bool = False, source: str = "s") -> None:
    """(first commit, last commit) so many seconds ago; None: a heartbeat. at_once: in one file."""
    empty = segment(b"", b"")
    made = [
        replace(empty, source=source, seq=number, min_commit_ts=at(span[0]), max_commit_ts=at(span[1]))
        if span
        else replace(empty, source=source, seq=number, min_commit_ts=0, max_commit_ts=0)
        for number, span in enumerate(segments, 1)
    ]
    bronze = Bronze(lake, source)
    for some in [made] if at_once else [[each] for each in made]:
        bronze.append(some)


def test_nothing_is_known_of_an_empty_lake(tmp_path: Path) -> None:
    known = timeline(LakeFiles(str(tmp_path)), NOW, HOUR)
    assert known.lag == (None,) * STEPS
    assert (sum(known.rows), known.rows_a_second) == (0, 0.0)


def test_lag_grows_until_a_cut_is_published(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    landed(lake, (1801, 602), (602, 0), at_once=True)
    published(lake, (1801, 1800), (602, 600))
    lag = timeline(lake, NOW, HOUR).lag
    assert lag[:29] == (None,) * 29
    assert lag[30] == pytest.approx(STEP + 1, abs=0.01), "by the end of that minute"
    assert lag[49] == pytest.approx(1801 - 600, abs=0.01), "just before the second was published"
    assert lag[-1] == pytest.approx(602, abs=0.01)
    assert timeline(lake, NOW, HOUR).with_lag_now(0.0).lag == (*lag[:-1], 0.0)
    assert max(value for value in lag if value is not None) == pytest.approx(1201, abs=0.01)


@pytest.mark.parametrize("at_once", [False, True], ids=["files of one landing each", "one file, as maintain packs it"])
def test_a_quiet_source_was_not_behind(tmp_path: Path, *, at_once: bool) -> None:
    """Its cut was ten minutes old when a change came, and the picture showed a hump of ten minutes."""
    lake = LakeFiles(str(tmp_path))
    landed(lake, (3000, 2999), None, (2400, 2400), None, None, (1200, 1199.5), None, at_once=at_once)
    published(lake, (2999, 2998), (2990, 2989), (2399, 2398), (1800, 1799), (1199, 1195), (600, 599))
    lag = timeline(lake, NOW, HOUR, ["s"]).lag
    assert max(value for value in lag if value is not None) == pytest.approx(5, abs=0.01), "from 1200 to 1195"
    assert sorted(value for value in lag if value) == pytest.approx([2, 5], abs=0.01)
    assert lag[-1] == 0.0


def test_a_source_that_left_the_pipeline_makes_nobody_late(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    landed(lake, (100, 100), source="gone")
    published(lake, (600, 599))
    assert timeline(lake, NOW, HOUR, ["s"]).lag[-1] == 0.0
    assert timeline(lake, NOW, HOUR).lag[-1] == pytest.approx(100, abs=0.01)


def test_what_bronze_lacks_is_drawn_as_long_as_it_is_missing(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    landed(lake, (1000, 1000))
    published(lake, (1000, 999))
    lag = timeline(lake, NOW, HOUR).with_lag_now(300.0).lag
    assert lag[-6:] == pytest.approx((0.0, 60.0, 120.0, 180.0, 240.0, 300.0), abs=0.01)


def test_of_thinned_cuts_only_what_each_one_says_counts(tmp_path: Path) -> None:
    """A day's cuts are ten minutes apart since they were thinned, and silver wasn't ten minutes behind."""
    lake = LakeFiles(str(tmp_path))
    published(lake, *((600.0 * number + 2, 600.0 * number) for number in range(1, 140)))
    lag = timeline(lake, NOW, 86_400).lag
    assert max(value for value in lag[:-1] if value is not None) == pytest.approx(2, abs=0.01)
    assert lag[-1] == pytest.approx(602, abs=0.01), "of now it is known"


def test_a_cut_that_came_a_day_late_is_seen(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    landed(lake, (80_001, 70_000), (70_000, 60_000))
    published(lake, (80_000, 100))
    assert timeline(lake, NOW, HOUR).lag[-1] == pytest.approx(80_000, abs=0.1)


def test_rows_and_bytes_are_those_of_the_steps_windows(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    accounted(lake, (10, 5, 100), (20, 7, 200), (200, 1, 1), (7200, 9, 9))
    known = timeline(lake, NOW, HOUR)
    assert (known.rows[-1], known.payload_bytes[-1]) == (12, 300)
    assert (sum(known.rows), sum(known.payload_bytes)) == (13, 301)
    assert known.rows_a_second == pytest.approx(13 / 300)
