"""Which segments below a window may hold rows that it commits, by what segments say of themselves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.support.bronze import QuietBronze
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.bronze.lookback import lookback
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.segments.window import SegmentRef
from tidegate.tables import SegmentFlag, SegmentKind

NOWHERE = LakeFiles("/nowhere")
BLANK = SegmentRef("p", 0, "node", 0, 9, 0, 0, 0, (), SegmentFlag(0), "f", 0, 0, whole=False)


def refs(*stamps: tuple[int, int]) -> list[SegmentRef]:
    """(max_commit_ts, resolved_ts) of each, from seq 1 on."""
    before = [0, *(resolved for _, resolved in stamps)]
    return [
        replace(BLANK, seq=seq, max_commit_ts=latest, resolved_ts=resolved, prev_commit_ts=prev)
        for seq, ((latest, resolved), prev) in enumerate(zip(stamps, before, strict=False), 1)
    ]


def seqs(found: list[SegmentRef]) -> list[int]:
    return [ref.seq for ref in found]


def test_a_prewrite_that_waits_is_in_a_segment_that_names_what_was_resolved_or_more() -> None:
    # 20 began in the second and was committed at 35, in the fourth: a window above 30 needs the second.
    known = refs((10, 10), (20, 20), (30, 20), (40, 40))
    assert seqs(lookback(NOWHERE, known, "p", 30)) == [2, 3]


def test_nothing_is_needed_below_what_is_resolved() -> None:
    known = refs((10, 10), (20, 19), (30, 29), (40, 40))
    assert seqs(lookback(NOWHERE, known, "p", 30)) == [3]
    assert seqs(lookback(NOWHERE, known, "p", 40)) == []  # nothing lies above it


def test_windows_that_follow_each_other_find_what_they_look_back_at_without_bronze(tmp_path: Path) -> None:
    lake, quiet = LakeFiles(str(tmp_path)), QuietBronze(tmp_path)
    writer, index, low_ts = Bronze(lake, "p"), BronzeIndex(lake), 0
    held_back = {5: 42, 6: 42, 7: 42}  # what the fifth prepares is answered in the eighth
    found, kept = [], []
    for number in range(1, 15):
        segment = quiet._segment("p", number * 10, number * 10 + 3, held_back.get(number, number * 10))
        writer.append([replace(segment, kind=SegmentKind.TIDB)])
        index.refresh(low_ts)
        by_index = lookback(NOWHERE, index.refs["p"], "p", low_ts)
        assert by_index == lookback(lake, index.refs["p"], "p", low_ts)
        found.append(seqs(by_index))
        low_ts = max(low_ts, segment.resolved_ts)
        index.forget(low_ts)
        kept.append(len(index.refs["p"]))
    assert found == [[], [], [1], [2], [3], [3], [3], [3], [4, 5, 6, 7], [8], [9], [10], [11], [12]]
    assert kept[6] == 6, "while it waits, all since"
    assert kept[-1] == 3
