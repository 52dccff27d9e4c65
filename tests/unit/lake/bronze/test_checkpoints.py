"""Whoever appends to bronze writes its checkpoints beside the commits; readers that people use read what is left."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.bronze import QuietBronze, pack
from tests.support.readers import READERS
from tidegate.delta.checkpoints import checkpoint
from tidegate.delta.checkpoints import write as checkpoint_write
from tidegate.delta.cleaning.log_upkeep import LogUpkeep
from tidegate.delta.object_names import Hint, commit_name
from tidegate.delta.stores.store import LogStore
from tidegate.lake.bronze import checkpoints as bronze_checkpoints
from tidegate.lake.bronze.log import BronzeLog, bronze_log
from tidegate.lake.bronze.retention import remove
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.tables import SEGMENTS


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bronze_checkpoints, "CHECKPOINT_COMMITS", 10)


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


class Capture:
    """Lands heartbeats, one commit each, and waits for what they lead to."""

    def __init__(self, folder: Path, source: str = "a") -> None:
        self.bronze = Bronze(LakeFiles(str(folder)), source)
        self._quiet = QuietBronze(folder)

    def land(self) -> int:
        """One more; the version."""
        version = self.bronze.append([self._quiet._segment(self.bronze.source, 10, 10, 10)])
        until(lambda: not self.bronze._checkpoints._busy)
        return version


def checkpointed(lake: LakeFiles) -> int:
    found = checkpoint.find(bronze_log(lake).store)
    return found.version if found else -1


def test_a_checkpoint_is_written_after_so_many_commits(tmp_path: Path) -> None:
    lake, capture = LakeFiles(str(tmp_path)), Capture(tmp_path)
    found = {capture.land(): checkpointed(lake) for _ in range(35)}
    assert set(found.values()) == {-1, 9, 19, 29}
    assert found[8] == -1
    assert found[9] == found[18] == 9
    assert capture.bronze.live_files == 30, "as its newest checkpoint counts them"
    again = Capture(tmp_path, "b")
    again.land()
    assert again.bronze.live_files == 30


def test_of_two_captures_one_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    real = checkpoint_write.write

    def noted(store: LogStore, version: int, *, now_ms: int, files: int | None = None) -> Hint:
        written.append(version)
        return real(store, version, now_ms=now_ms, files=files)

    monkeypatch.setattr(checkpoint_write, "write", noted)
    one, two = Capture(tmp_path, "a"), Capture(tmp_path, "b")
    for _ in range(20):
        one.land()
        two.land()
    assert written == [9, 19, 29, 39]


def test_many_files_mean_fewer_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bronze_checkpoints, "BRONZE_CHECKPOINT_COMMIT_ROWS", 1)
    lake, capture = LakeFiles(str(tmp_path)), Capture(tmp_path)
    found = []
    for _ in range(64):
        capture.land()
        found.append(checkpointed(lake))
    assert sorted(set(found)) == [-1, 9, 22, 48], "10 files and 3 lines more are 13 commits, and so on"


def test_a_landing_does_not_wait_for_a_checkpoint_that_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    going, done = threading.Event(), threading.Event()

    def slow(*_: object, **__: object) -> None:
        going.set()
        assert done.wait(120)
        raise OSError("and then it fails")

    monkeypatch.setattr(checkpoint_write, "write", slow)
    quiet, writer = QuietBronze(tmp_path), Bronze(LakeFiles(str(tmp_path)), "a")
    for ts in range(10, 310, 10):
        writer.append([quiet._segment("a", ts, ts, ts)])
        assert ts < 100 or going.wait(120)
    assert writer.last_seq == 30
    done.set()


def test_what_is_too_old_leaves_the_log(tmp_path: Path) -> None:
    lake, capture = LakeFiles(str(tmp_path)), Capture(tmp_path)
    for _ in range(25):
        capture.land()
    folder = tmp_path / SEGMENTS.path / "_delta_log"
    long_ago = time.time() - 4 * 86_400
    for entry in folder.iterdir():
        os.utime(entry, (long_ago, long_ago))
    capture.bronze._checkpoints._upkeep = LogUpkeep()  # of the next day
    for _ in range(5):
        capture.land()
    assert min(folder.glob("*.json")).name == commit_name(19)
    log = BronzeLog.load(lake)
    assert log is not None
    assert [file.min_seq for file in log.files()["a"]] == list(range(1, 31))


@pytest.mark.parametrize("reader", READERS)
def test_bronze_is_read_by_whoever_reads_delta(tmp_path: Path, reader: str) -> None:
    """Packed, its oldest removed, two sources and days, by a checkpoint and the commits behind it."""
    lake = LakeFiles(str(tmp_path))
    for capture in (Capture(tmp_path, "a"), Capture(tmp_path, "b")):
        for _ in range(30):
            capture.land()
    log = BronzeLog.load(lake)
    assert log is not None
    remove(log, log.files()["a"][:5])
    pack(lake)
    log.checkpoint()
    quiet = QuietBronze(tmp_path)
    quiet.land("c", (10, 11, 11), (20,))
    folder = tmp_path / SEGMENTS.path / "_delta_log"
    for old in range(checkpointed(lake)):
        (folder / commit_name(old)).unlink()
    rows = READERS[reader](str(tmp_path / SEGMENTS.path))
    assert set(rows.column_names) == set(SEGMENTS.schema.names)
    found = sorted(zip((str(name) for name in rows["source"]), rows["seq"].to_pylist(), strict=True))
    assert found == [*(("a", n) for n in range(6, 31)), *(("b", n) for n in range(1, 31)), ("c", 1), ("c", 2)]
