"""What is left of a Pump's segments once the first ones were removed serves every window that may still come."""

from __future__ import annotations

import dataclasses
from datetime import date
from pathlib import Path

import pytest

from tests.support.bronze import QuietBronze
from tidegate.errors import LakeRefused
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.bronze.log import BronzeLog
from tidegate.lake.bronze.lookback import lookback
from tidegate.lake.bronze.retention import choose_gone, remove, whole_transactions
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.tables import SegmentKind


def test_segments_of_a_pump_go_once_no_commit_to_come_is_of_their_rows(tmp_path: Path) -> None:
    """In each something is prepared that the next one commits: at no place does nothing wait."""
    lake, writer = LakeFiles(str(tmp_path)), Bronze(LakeFiles(str(tmp_path)), "p")
    quiet = QuietBronze(tmp_path)
    for number in range(1, 13):
        held_back = 25 if 3 <= number < 7 else number * 10  # the third's is answered in the seventh
        segment = quiet._segment("p", number * 10, number * 10 + 3, held_back)
        writer.append([dataclasses.replace(segment, kind=SegmentKind.TIDB)])
    log = BronzeLog.load(lake)
    assert log is not None
    files = log.files()["p"]
    chosen = choose_gone({"p": files}, {"p": 103}, date.max)[0]
    assert len(chosen) == 10
    gone = whole_transactions(lake, chosen, files, 103)
    assert len(gone) == 8, "a window above 103 needs what the tenth names, and so the ninth is the first"
    assert [len(whole_transactions(lake, files[:count], files, 63)) for count in (3, 4, 5, 6)] == [1, 1, 1, 1]
    remove(log, gone)
    index = BronzeIndex(lake)
    index.refresh(0)
    index.check_reaches(103, ["p"])
    with pytest.raises(LakeRefused, match="bronze begins after commit_ts 103"):
        index.check_reaches(102, ["p"])
    refs = index.refs["p"]
    needed = {low_ts: lookback(lake, refs, "p", low_ts) for low_ts in (103, 110, 113, 122)}
    assert {low_ts: [ref.seq for ref in found] for low_ts, found in needed.items()} == {
        103: [10], 110: [10], 113: [11], 122: [11],
    }  # fmt: skip
