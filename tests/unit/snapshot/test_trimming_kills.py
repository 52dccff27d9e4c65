"""SIGKILL while maintain trims control/snapshots: what anybody reads of it is what it was, and the next run ends it."""

from __future__ import annotations

import signal
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.forks import exit_code
from tests.support.trims import trim
from tests.unit.snapshot.test_event_log import BEGAN, event, said
from tests.unit.snapshot.test_worth_keeping import answers, of_one_table
from tidegate import tables
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.snapshot.chunks.spans import Span
from tidegate.snapshot.progress.events import EventKind, SnapshotState
from tidegate.snapshot.progress.requests import Told
from tidegate.snapshot.progress.standing import KnownEvents

OLDEST = BEGAN + timedelta(seconds=60)
ENDS = {"done": EventKind.DONE, "failed": EventKind.FAILED, "cancelled": EventKind.CANCELLED, "open": None}
# Six files are made: of each step its rows, then its commit. Half a commit, then what is there without or with it.
POINTS = ["store_before_link:2", "store_after_link:1", "store_after_link:2", "store_after_link:5", "store_after_link:6"]


def trimmed(lake: Path, point: str = "") -> int | None:
    """The exit code of a run that is killed at a point."""
    return exit_code(trim, str(lake), OLDEST, point)


@pytest.mark.parametrize("point", POINTS)
def test_killed_anywhere_it_says_what_it_must_and_the_next_run_ends_it(tmp_path: Path, point: str) -> None:
    lake = LakeFiles(str(tmp_path))
    for number, (name, last) in enumerate(ENDS.items()):
        said(lake, *of_one_table(name, number, last))
    said(lake, *of_one_table("young", 80, EventKind.DONE))
    follower = Told(lake, "p")
    before = {one.table: one for one in follower.tables()}
    standing, rows = KnownEvents.read(lake), control.read(lake, tables.SNAPSHOTS).num_rows

    def check() -> None:
        for told in (follower, Told(lake, "p")):
            found = {one.table: one for one in told.tables() if one.table != "beside"}
            assert {name: answers(one) for name, one in found.items()} == {
                name: answers(one) for name, one in before.items()
            }
            assert found["open"] == before["open"], "of what isn't over nothing goes"
        now = KnownEvents.read(lake)
        assert (now.going.keys() - {("s3", "s", "d", "beside")}) == standing.going.keys()
        assert now.began_empty == standing.began_empty
        for key in standing.tables:
            assert now.opened(key[0], key[1:]) == standing.opened(key[0], key[1:])
            assert now.begun_by(key[1:], 3) == standing.begun_by(key[1:], 3)

    assert trimmed(tmp_path, point) == -signal.SIGKILL
    check()
    assert trimmed(tmp_path) == 0
    check()
    kept = control.read(lake, tables.SNAPSHOTS)
    trims = sum(1 for last in ENDS.values() if last is not None)
    beside = sum(name == "beside" for name in kept["table"].to_pylist())
    assert kept.num_rows == rows + beside - 2 * trims, "ranges and ended of what was over by then"
    assert beside in (1, 2), "what was appended stays"
    said(lake, event(EventKind.WAVE, 99, "open", "s1", wave=3, token="new", spans=(Span(None, ("5",)),), rows=7))
    (going,) = [one for one in follower.tables() if one.table == "open"]
    assert (going.state, going.rows, going.waiting) == (SnapshotState.ENDED, 12, ("new",)), "who follows it goes on"
