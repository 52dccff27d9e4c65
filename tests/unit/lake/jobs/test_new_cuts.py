"""Cuts of a run that goes on are news once; those of a run that ends at once are not.

In:  cuts and apply's lease, as runs of apply leave them.
Out: what a watcher of them says, over its restarts.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tidegate import tables
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.jobs.leases import take_lease
from tidegate.lake.jobs.new_cuts import NewCuts


@pytest.fixture
def lake(tmp_path: Path) -> LakeFiles:
    return LakeFiles(str(tmp_path))


def cut(lake: LakeFiles, cut_ts: int) -> None:
    row = {"cut_ts": cut_ts, "applied_ts": cut_ts, "table": "", "delta_version": -1, "state": "active"}
    control.append(lake, tables.CUTS, [row | {"published_at": datetime.now(UTC)}])


def watcher(lake: LakeFiles, kept: dict[str, object] | None = None) -> NewCuts:
    made = NewCuts("shop", kept, 0.0)
    made.open(lake.root, {})
    return made


def test_each_further_cut_of_a_run_is_news_once_and_a_restart_forgets_none(lake: LakeFiles) -> None:
    news = watcher(lake)
    assert news.look() is None, "no cut yet"
    lease = take_lease(lake, "shop", "apply", report=print)
    cut(lake, 1)
    assert news.look() is None, "the run has just begun: it may end as soon"
    assert news.look() is None
    cut(lake, 2)
    cut(lake, 3)
    assert news.look() == {"cut_ts": 3}
    assert news.look() is None
    kept = news.kept
    cut(lake, 4)
    again = watcher(lake, kept)
    assert again.look() == {"cut_ts": 4}
    cut(lake, 5)
    lease.release()
    assert again.look() is None, "the run's end tells of it"


def test_short_runs_have_no_news(lake: LakeFiles) -> None:
    news = watcher(lake)
    for number in range(1, 4):
        lease = take_lease(lake, "shop", "apply", report=print)
        cut(lake, number)
        assert news.look() is None
        lease.release()
        assert news.look() is None


def test_it_looks_once_in_its_time(lake: LakeFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    news = NewCuts("shop", None, 60.0)
    news.open(lake.root, {})
    take_lease(lake, "shop", "apply", report=print)
    cut(lake, 1)
    assert news.look() is None
    cut(lake, 2)
    clock[0] += 59
    assert news.look() is None
    clock[0] += 1
    assert news.look() == {"cut_ts": 2}
