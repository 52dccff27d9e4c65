"""Waves that keep segments in bronze: those that may still be taken, and no others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tidegate import tables
from tidegate.lake import control
from tidegate.lake.bronze.retention import floors
from tidegate.lake.files import LakeFiles
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent

CUT, NOW = 1000, datetime.now(UTC)
ASKED, UNASKED = "a" * 32, "b" * 32
TABLE = {"database": "d", "table": "t"}


@pytest.fixture
def lake(tmp_path: Path) -> LakeFiles:
    lake = LakeFiles(str(tmp_path))
    row = {"cut_ts": CUT, "table": "", "delta_version": -1, "applied_ts": CUT, "state": "active", "published_at": NOW}
    control.append(lake, tables.CUTS, [row])
    return lake


def said(snapshot: str, kind: EventKind, age: float = 0, **cells: Any) -> SnapshotEvent:
    source = cells.pop("source", "s")
    return SnapshotEvent(snapshot, "p", source, kind, NOW - timedelta(days=age), **cells)


def floor(lake: LakeFiles, *events: SnapshotEvent) -> int:
    control.append(lake, tables.SNAPSHOTS, [event.to_row() for event in events])
    return floors(lake, ["s"])["s"].commit_ts


def test_an_open_wave_keeps_all_from_its_low_mark_on_until_it_is_answered(lake: LakeFiles) -> None:
    opened = said(ASKED, EventKind.OPENED, token="x", low_ts=500)
    assert floor(lake, said(ASKED, EventKind.REQUESTED, 99, **TABLE), opened) == 499
    assert floor(lake, said(ASKED, EventKind.APPLIED, token="x", **TABLE)) == CUT


def test_a_later_wave_of_a_snapshot_stands_for_those_before_it_whatever_the_clock_says(lake: LakeFiles) -> None:
    first = said(ASKED, EventKind.OPENED, 0, token="x", low_ts=500)
    second = said(ASKED, EventKind.OPENED, 1, token="y", low_ts=600)
    assert floor(lake, said(ASKED, EventKind.REQUESTED, **TABLE), first, second) == 599


def test_another_lakes_wave_begun_since_lets_nothing_go_that_ours_needs(lake: LakeFiles) -> None:
    ours = said(ASKED, EventKind.OPENED, token="x", low_ts=500)
    theirs = said(UNASKED, EventKind.OPENED, token="y", low_ts=600)
    assert floor(lake, said(ASKED, EventKind.REQUESTED, **TABLE), ours, theirs) == 499
    assert floor(lake, said(UNASKED, EventKind.REFUSED, token="y", **TABLE)) == 499


def test_a_wave_that_nobody_here_asked_for_and_nobody_ends_keeps_bronze_for_some_days_alone(lake: LakeFiles) -> None:
    assert floor(lake, said(UNASKED, EventKind.OPENED, 6, token="x", low_ts=500)) == 499


def test_a_killed_repairs_wave_keeps_bronze_not_for_ever(lake: LakeFiles) -> None:
    assert floor(lake, said(UNASKED, EventKind.OPENED, 8, token="x", low_ts=500)) == CUT


@pytest.mark.parametrize("place", [{"source": ""}, TABLE], ids=["as a whole", "its table"])
def test_a_cancelled_snapshots_wave_keeps_nothing(lake: LakeFiles, place: dict[str, str]) -> None:
    opened = said(ASKED, EventKind.OPENED, token="x", low_ts=500)
    floor(lake, said(ASKED, EventKind.REQUESTED, **TABLE), opened)
    assert floor(lake, said(ASKED, EventKind.CANCELLED, **place)) == CUT
