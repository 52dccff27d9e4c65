"""Bronze's files above a mark, as one carries them forward who looks below the cut in each window."""

from __future__ import annotations

from pathlib import Path

from tests.support.bronze import QuietBronze
from tests.unit.lake.bronze.test_upkeep import compact
from tidegate.lake.bronze.above import FilesAbove
from tidegate.lake.bronze.backlog import WantedSegments, backlog
from tidegate.lake.bronze.log import BronzeLog
from tidegate.lake.files import LakeFiles
from tidegate.tables import SEGMENTS


def test_files_are_carried_forward_as_a_fresh_look_finds_them(tmp_path: Path) -> None:
    bronze, lake = QuietBronze(tmp_path), LakeFiles(str(tmp_path))
    above = FilesAbove(lake)
    assert above.of(["a"], 0) == {"a": []}
    for ts in range(10, 100, 10):
        bronze.land("a", (ts, ts + 1, ts + 1))
        bronze.land("b", (ts, ts + 1, ts + 1))
        assert above.of(["a"], 30) == FilesAbove(lake).of(["a"], 30)
    assert len(above.of(["a", "b"], 30)["b"]) == 7
    compact(lake)
    assert above.of(["a", "b"], 30) == FilesAbove(lake).of(["a", "b"], 30)
    above.let_go(50)
    assert above.of(["a"], 50) == FilesAbove(lake).of(["a"], 50)
    assert above.of(["a"], 0) == FilesAbove(lake).of(["a"], 0), "a table was released further down"
    log = BronzeLog.load(lake)
    assert log is not None
    log.commit(log.files()["a"][:1], [], data_change=True)
    assert above.of(["a"], 0) == FilesAbove(lake).of(["a"], 0)


def test_a_later_look_reads_new_commits_alone(tmp_path: Path) -> None:
    bronze, lake = QuietBronze(tmp_path), LakeFiles(str(tmp_path))
    for ts in range(10, 60, 10):
        bronze.land("a", (ts, ts + 1, ts + 1))
    above = FilesAbove(lake)
    wanted = {"a": WantedSegments(0)}
    assert len(backlog(lake, wanted, 51, 1 << 30, above)[1]) == 5
    bronze.land("a", (60, 61, 61))
    for version in range(4):  # whoever reads the log from its beginning is refused
        (tmp_path / SEGMENTS.path / "_delta_log" / f"{version:020}.json").unlink()
    assert len(backlog(lake, wanted, 61, 1 << 30, above)[1]) == 6
