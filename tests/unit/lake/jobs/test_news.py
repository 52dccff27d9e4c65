"""What bronze's log says to whoever wakes apply, over a real log, without Airflow.

In:  bronze of one or two sources, that grows.
Out: the versions with something to apply; the same frontier as the window's own.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.bronze import QuietBronze
from tidegate.commit_ts import compose
from tidegate.delta.log import DeltaLog
from tidegate.errors import LakeUnavailable
from tidegate.lake import control
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.files import LakeFiles
from tidegate.lake.jobs import news, reader_news
from tidegate.lake.jobs.news import FollowedBronze
from tidegate.segments.frontier import cut_frontier
from tidegate.segments.window import resolved_everywhere
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent
from tidegate.tables import SNAPSHOTS


def followed(lake: Path, *sources: str, kept: object = None) -> FollowedBronze:
    found = FollowedBronze(sources, kept, quiet_seconds=3600)
    found.open(str(lake), {})
    return found


def test_changes_are_news_once_and_heartbeats_are_none(tmp_path: Path) -> None:
    bronze = QuietBronze(tmp_path)
    bronze.land("main", (100, 110, 110))
    log = followed(tmp_path, "main")
    assert log.look() == {"delta_version": 0}
    assert log.look() is None
    bronze.land("main", (120,))
    assert log.look() is None, "a source that only proves that it is quiet"
    bronze.land("main", (130, 131, 131))
    assert log.look() == {"delta_version": 2}


def test_what_is_kept_is_enough_to_go_on_in_another_process(tmp_path: Path) -> None:
    bronze = QuietBronze(tmp_path)
    bronze.land("a", (100, 100, 100))
    first = followed(tmp_path, "a", "b")
    assert first.look() is None, "b hasn't said a word: no window can be cut"
    bronze.land("b", (101,))
    assert first.look() == {"delta_version": 1}
    second = followed(tmp_path, "a", "b", kept=json.loads(json.dumps(first.kept)))
    assert second.look() is None
    bronze.land("a", (120, 121, 121))
    assert second.look() is None, "a's change lies above b"
    bronze.land("b", (130,))
    assert second.look() == {"delta_version": 3}


def test_a_further_hour_of_all_sources_is_news_where_others_wait_for_hours(tmp_path: Path) -> None:
    hour = compose(3_600_000)
    bronze = QuietBronze(tmp_path)
    log = FollowedBronze(("a", "b"), None, quiet_seconds=3600, hourly=True)
    bronze.land("a", (hour + 10,))
    bronze.land("b", (hour - 10,))
    log.open(str(tmp_path), {})
    assert log.look() is None, "b may still send commits of the first hour"
    bronze.land("b", (hour + 5,))
    assert log.look() == {"delta_version": 2}
    bronze.land("a", (hour + 20,))
    assert log.look() is None


@pytest.mark.parametrize(
    ("resolved", "sources", "frontier"),
    [({}, (), 0), ({}, ("a",), 0), ({"a": 5}, ("a",), 5), ({"a": 5, "b": 3}, ("a", "b"), 3), ({"a": 5}, ("a", "b"), 0)],
)
def test_a_cut_goes_as_far_as_every_source_is_known(
    resolved: dict[str, int], sources: tuple[str, ...], frontier: int
) -> None:
    assert cut_frontier(resolved, sources) == frontier


def test_news_and_the_window_agree_on_how_far_a_cut_may_go(tmp_path: Path) -> None:
    bronze = QuietBronze(tmp_path)
    bronze.land("a", (100, 110, 110), (150,))
    bronze.land("b", (120, 125, 125))
    index = BronzeIndex(LakeFiles(str(tmp_path)))
    index.refresh(0)
    log = followed(tmp_path, "a", "b")
    log.look()
    assert cut_frontier(log.kept["resolved"], ("a", "b")) == resolved_everywhere(index.refs, ("a", "b")) == 125


def test_a_quiet_source_is_news_while_a_reader_speaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(news, "READER_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(reader_news, "READER_LOOK_SECONDS", 0.0)
    bronze = QuietBronze(tmp_path)

    def say(kind: EventKind) -> None:
        event = SnapshotEvent("1" * 32, "one", "main", kind, datetime.now(UTC), "d", "t", wave=1)
        control.append(LakeFiles(str(tmp_path)), SNAPSHOTS, [event.to_row()])

    say(EventKind.REQUESTED)
    log = followed(tmp_path, "main")
    bronze.land("main", (110,))
    assert log.look() is None, "a request isn't for apply"
    say(EventKind.WAVE)
    assert log.look() is not None
    assert log.look() is None, "the source has said nothing since"
    bronze.land("main", (120,))
    assert log.look() is not None, "the wave's high mark may be below that"
    monkeypatch.setattr(reader_news, "READER_NEWS_SECONDS", 0.0)
    bronze.land("main", (130,))
    assert log.look() is None


def _unavailable(log: DeltaLog, version: int) -> None:
    raise LakeUnavailable(f"no commit {version}", where=str(log))


def test_an_event_that_an_error_kept_unread_is_heard_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_news, "READER_LOOK_SECONDS", 0.0)
    log = DeltaLog(str(tmp_path / SNAPSHOTS.path), {})
    heard = reader_news.ReaderNews(log)
    event = SnapshotEvent("1" * 32, "one", "main", EventKind.WAVE, datetime.now(UTC), "d", "t", wave=1)
    control.append(LakeFiles(str(tmp_path)), SNAPSHOTS, [event.to_row()])
    with monkeypatch.context() as away:
        away.setattr(DeltaLog, "actions", _unavailable)
        with pytest.raises(LakeUnavailable):
            heard.recent()
    assert heard.recent()


def test_events_for_apply_are_kinds_of_the_readers() -> None:
    assert {EventKind.VIEW, EventKind.WAVE, EventKind.MARKED, EventKind.ENDED} == set(reader_news.FOR_APPLY)
