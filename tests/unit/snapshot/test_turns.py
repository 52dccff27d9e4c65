"""Events of a snapshot while clocks are put back: what is told later counts later."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Self

import pytest

from tidegate.lake.files import LakeFiles
from tidegate.snapshot.progress import requests, turns
from tidegate.snapshot.progress.events import EventKind, SnapshotState
from tidegate.snapshot.progress.standing import KnownEvents
from tidegate.table_names import Physical

TABLE = Physical("s", "d", "t")


class Clock(datetime):
    """Shows an hour less at each look."""

    shown = datetime(2026, 3, 4, 12, tzinfo=UTC)

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        cls.shown -= timedelta(hours=1)
        return cls.fromtimestamp(cls.shown.timestamp(), tz)


@pytest.fixture(autouse=True)
def back(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (requests, turns):
        monkeypatch.setattr(module, "datetime", Clock)


def state(lake: LakeFiles) -> SnapshotState:
    (table,) = requests.told(lake, "p")
    return table.state


@pytest.mark.parametrize("whole", [True, False])
def test_a_pause_ends_by_a_resume_and_comes_again_whatever_the_clock_says(whole: bool, tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    snapshot = requests.request(lake, "p", [TABLE])

    def tell(kind: EventKind) -> SnapshotState:
        if whole:
            requests.tell(lake, "p", snapshot, kind)
        else:
            requests.tell_tables(lake, "p", requests.told(lake, "p"), kind)
        return state(lake)

    for _ in range(3):
        assert tell(EventKind.PAUSED) is SnapshotState.PAUSED
        assert tell(EventKind.RESUMED) is SnapshotState.REQUESTED
    assert tell(EventKind.CANCELLED) is SnapshotState.CANCELLED


def test_the_next_time_of_a_snapshot_is_behind_all_that_is_known_of_it(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    snapshot = requests.request(lake, "p", [TABLE])
    known, told = KnownEvents.read(lake), requests.Told(lake, "p")
    (requested,) = requests.events_of(lake, "p")
    assert requested.recorded_at < known.next_at(snapshot) == told.next_at(snapshot)
    told.said([requested.__class__(snapshot, "p", "s", EventKind.RANGES, told.next_at(snapshot), "d", "t")])
    assert known.next_at(snapshot) < told.next_at(snapshot)
    assert known.next_at("another") < requested.recorded_at, "its events have an order of their own"
