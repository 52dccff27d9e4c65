"""What control/snapshots says to apply, to upkeep of bronze and to status."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tidegate import tables
from tidegate.cli.status import snapshot_lines
from tidegate.config import Tables
from tidegate.lake import control
from tidegate.lake.bronze.retention import floors
from tidegate.lake.files import LakeFiles
from tidegate.snapshot.chunks.spans import Span
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent
from tidegate.snapshot.progress.standing import KnownEvents, under_way
from tidegate.table_names import Physical

T = Physical("s", "d", "t")


def event(kind: EventKind, seconds: int, table: str = "t", snapshot: str = "s1", **cells: Any) -> SnapshotEvent:
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    return SnapshotEvent(snapshot, "p", "s", kind, at, "d" if table else "", table, **cells)


@pytest.mark.parametrize(
    ("later", "lacks"),
    [
        ([], True),
        ([event(EventKind.CANCELLED, 5)], True),
        ([event(EventKind.DONE, 5)], False),
        ([event(EventKind.DONE, 0)], False),  # another machine's clock
        ([event(EventKind.DONE, 5, snapshot="s2")], False),
        ([event(EventKind.DONE, 5, "other")], True),
        ([event(EventKind.DONE, 5), event(EventKind.OPENED, 6, snapshot="s2", low_ts=9)], True),
    ],
)
def test_a_table_lacks_rows_from_its_beginning_until_its_snapshot_is_done(
    later: list[SnapshotEvent], lacks: bool
) -> None:
    known = KnownEvents.of([event(EventKind.OPENED, 1, low_ts=5, token="a"), *later])
    assert (known.filled(T) is not None) is lacks
    assert known.opened("s1", T) is not None
    assert known.low_ts("s", "a") is None, "it isn't the wave that it names"


@pytest.mark.parametrize("second_done", [False, True])
@pytest.mark.parametrize("ahead_seconds", [0, 100])
def test_an_earlier_snapshots_end_isnt_that_of_a_later_one_by_any_clock(ahead_seconds: int, second_done: bool) -> None:
    """The first one's apply had a clock that far ahead of the second one's."""
    first = [
        event(EventKind.REQUESTED, 0),
        event(EventKind.OPENED, ahead_seconds + 1, low_ts=5, token="a"),
        event(EventKind.APPLIED, ahead_seconds + 2, low_ts=5, high_ts=6, token="a"),
        event(EventKind.DONE, ahead_seconds + 3),
    ]
    second = [
        event(EventKind.REQUESTED, 4, snapshot="s2"),
        event(EventKind.OPENED, 5, snapshot="s2", low_ts=9, token="b"),
        event(EventKind.APPLIED, 6, snapshot="s2", low_ts=9, high_ts=10, token="b"),
        *([event(EventKind.DONE, 7, snapshot="s2")] if second_done else []),
    ]
    going_on = KnownEvents.of(first)
    going_on.take_in(second)
    for known in (going_on, KnownEvents.of(first + second)):
        lacks = known.filled(T)
        assert (lacks.snapshot if lacks else "") == ("" if second_done else "s2")


def lake_with(folder: Path, events: list[SnapshotEvent]) -> LakeFiles:
    lake = LakeFiles(str(folder))
    cut = {"cut_ts": 100, "table": "", "delta_version": -1, "applied_ts": 100, "state": "active"}
    control.append(lake, tables.CUTS, [cut | {"published_at": datetime.now(UTC)}])
    control.append(lake, tables.SNAPSHOTS, [one.to_row() for one in events])
    return lake


@pytest.mark.parametrize(
    ("later", "floor"),
    [
        ([], 39),
        ([event(EventKind.APPLIED, 2, token="a", low_ts=40, high_ts=90)], 100),
        ([event(EventKind.REFUSED, 2, token="a", high_ts=90)], 100),
        ([event(EventKind.APPLIED, 2, token="b", snapshot="s0")], 39),
        ([event(EventKind.REQUESTED, 0), event(EventKind.REQUESTED, 0, "u"), event(EventKind.DONE, 2, "u")], 39),
        ([event(EventKind.REQUESTED, 0), event(EventKind.REQUESTED, 0, "u"), event(EventKind.FAILED, 2)], 39),
        ([event(EventKind.REQUESTED, 0), event(EventKind.CANCELLED, 2)], 100),
        ([event(EventKind.OPENED, 2, "", token="b", low_ts=70)], 69),
    ],
)
def test_bronze_keeps_what_an_open_wave_needs(tmp_path: Path, later: list[SnapshotEvent], floor: int) -> None:
    begun = [event(EventKind.REQUESTED, 0), event(EventKind.OPENED, 1, "", token="a", low_ts=40)]
    lake = lake_with(tmp_path, [*begun, *later])
    assert floors(lake, ["s"])["s"].commit_ts == floor
    assert floors(lake, ["other"])["other"].commit_ts == 100


def test_status_names_tables_under_a_snapshot_with_its_progress(tmp_path: Path) -> None:
    spans = (Span(None, ("5",)),)
    told = [
        event(EventKind.REQUESTED, 0),
        event(EventKind.REQUESTED, 0, "done"),
        event(EventKind.DONE, 1, "done"),
        event(EventKind.WAVE, 2, wave=1, token="a", spans=(Span(("5",), ("9",)),), rows=3),
        event(EventKind.WAVE, 3, wave=2, token="b", spans=spans, rows=1200),
        event(EventKind.REFUSED, 4, wave=1, token="a", reason="a DDL changed the table while it was read"),
    ]
    lines = " ".join(" ".join(snapshot_lines(under_way(lake_with(tmp_path, told)))).split())
    for words in ("snapshot of d.t of s: running; 1,200 rows of 1 wave are", "1 wave waits for apply", "a DDL changed"):
        assert words in lines
    assert "done" not in lines
    begun = snapshot_lines(under_way(lake_with(tmp_path / "begun", told[:1])))
    assert "requested; 0 rows" in " ".join(begun)


def test_marks_are_no_table_of_silver() -> None:
    kept = Tables(include=("*.*",))
    assert not kept.keeps(tables.WATERMARK_DATABASE, tables.WATERMARK_TABLE)
    assert kept.keeps(tables.WATERMARK_DATABASE, "other")
