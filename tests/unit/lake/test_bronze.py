"""An append to bronze is there once, whatever the store said of the commit."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from tests.integration.capture_support import bronze_segments
from tests.unit.capture.test_lander import chain
from tidegate.binlog.crc32c import crc32c
from tidegate.binlog.segment import Segment
from tidegate.errors import Fenced, LakeUnavailable
from tidegate.lake import bronze as bronze_module
from tidegate.lake.bronze import Bronze
from tidegate.lake.bronze_log import BronzeLog
from tidegate.lake.bronze_upkeep import compact_run
from tidegate.lake.files import LakeFiles
from tidegate.tables import SEGMENTS

ERRORS = [
    CommitFailedError("the store's answer was lost"),
    OSError(errno.EIO, "Input/output error"),
    OSError(errno.ENOSPC, "No space left on device"),
]


def seqs(folder: Path) -> list[int]:
    return [segment.seq for segment in bronze_segments(folder)]


def opened(folder: Path) -> Bronze:
    return Bronze(LakeFiles(str(folder)), "one")


def captured_later(numbers: range) -> list[Segment]:
    """What another capture makes of the same bytes."""
    return [replace(one, captured_at=one.captured_at.replace(year=2027)) for one in chain(numbers)]


class Unlucky:
    """Commits fail with an error as often as asked for, before or after they are made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.before: list[Exception] = []
        self.after: list[Exception] = []
        self.then: Callable[[], None] = lambda: None
        real = DeltaTable.create_write_transaction

        def commit(table: DeltaTable, *arguments: Any, **named: Any) -> None:
            if self.before:
                raise self.before.pop()
            real(table, *arguments, **named)
            if self.after:
                self.then()
                raise self.after.pop()

        monkeypatch.setattr(DeltaTable, "create_write_transaction", commit)
        monkeypatch.setattr(bronze_module, "_BACKOFF_SECONDS", 0.001)


@pytest.mark.parametrize("error", ERRORS)
def test_a_commit_that_was_made_and_reported_as_failed_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    store, bronze = Unlucky(monkeypatch), opened(tmp_path)
    bronze.append(chain(range(1, 3)))
    store.after = [error]
    bronze.append(chain(range(3, 5)))
    bronze.append(chain(range(5, 6)))
    assert seqs(tmp_path) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("error", ERRORS)
def test_a_commit_that_was_not_made_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    store, bronze = Unlucky(monkeypatch), opened(tmp_path)
    store.before = [error, error]
    bronze.append(chain(range(1, 3)))
    store.before, store.after = [error], [error]  # first not made, then made and reported as failed
    bronze.append(chain(range(3, 5)))
    assert seqs(tmp_path) == [1, 2, 3, 4]


def test_a_commit_of_unknown_outcome_behind_which_the_lake_went_away_is_settled_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table vanishes with the answer, for longer than the attempts last; nothing new is begun in its place."""
    lake, aside = tmp_path / "lake", tmp_path / "aside"
    store, bronze = Unlucky(monkeypatch), opened(lake)
    bronze.append(chain(range(1, 3)))
    store.after, store.then = [OSError(errno.EIO, "Input/output error")], lambda: shutil.move(lake, aside) and None
    for _ in range(2):
        with pytest.raises(LakeUnavailable, match="isn't there any more"):
            bronze.append(chain(range(3, 5)))
        assert not (lake / SEGMENTS.path / "_delta_log").exists()
    shutil.move(aside, lake)
    bronze.append(chain(range(3, 5)))
    bronze.append(chain(range(5, 6)))
    assert seqs(lake) == [1, 2, 3, 4, 5]


def test_a_commit_of_unknown_outcome_that_another_writer_overtook_is_fenced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is there under our seq is another's: it was captured at another time."""
    store, bronze, other = Unlucky(monkeypatch), opened(tmp_path), opened(tmp_path)
    bronze.append(chain(range(1, 3)))
    other_ones = captured_later(range(3, 5))
    store.before = [OSError(errno.EIO, "Input/output error")]
    real = bronze_module.time.sleep

    def overtaken(seconds: float) -> None:
        monkeypatch.setattr(bronze_module.time, "sleep", real)
        other.append(other_ones)

    monkeypatch.setattr(bronze_module.time, "sleep", overtaken)
    with pytest.raises(Fenced, match="another writer moved bronze from seq 2 to 4"):
        bronze.append(chain(range(3, 5)))
    assert seqs(tmp_path) == [1, 2, 3, 4]


def test_segments_that_bronze_has_already_are_left_out_after_a_restart(tmp_path: Path) -> None:
    opened(tmp_path).append(chain(range(1, 4)))
    opened(tmp_path).append(chain(range(1, 4)))
    opened(tmp_path).append(chain(range(1, 6)))
    assert seqs(tmp_path) == [1, 2, 3, 4, 5]


def test_two_writers_that_hold_the_same_version_commit_once(tmp_path: Path) -> None:
    first, second = opened(tmp_path), opened(tmp_path)
    first.append(chain(range(1, 3)))
    assert second.last_segments()[-1].seq == 2
    first.append(chain(range(3, 4)))
    with pytest.raises(Fenced, match="another writer moved bronze from seq 2 to 3"):
        second.append(captured_later(range(3, 4)))
    first.append(chain(range(4, 5)))
    assert seqs(tmp_path) == [1, 2, 3, 4]


def test_a_lake_that_goes_between_two_reads_of_its_log_is_away_not_broken(tmp_path: Path) -> None:
    lake, aside = tmp_path / "lake", tmp_path / "aside"
    opened(lake).append(chain(range(1, 3)))
    bronze = opened(lake)
    assert bronze._load()
    lake.rename(aside)
    lake.write_text("a file is where the lake was")
    for ask in (lambda: bronze.last_seq, bronze.last_segments, lambda: list(bronze.newest_first())):
        with pytest.raises(LakeUnavailable, match="can't be read"):
            ask()
    lake.unlink()
    aside.rename(lake)
    assert bronze.last_segments()[-1].seq == 2


def test_what_others_pack_is_seen_by_the_count_that_makes_landings_rarer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bronze_module, "_COUNT_SEQS", 4)
    lake = opened(tmp_path)
    segments = [replace(one, payload_crc32c=crc32c(one.payload)) for one in chain(range(1, 10))]
    for one in segments[:7]:
        lake.append([one])
    assert lake.live_files == 7
    log = BronzeLog.load(LakeFiles(str(tmp_path)))
    assert log is not None
    compact_run(log, log.files()["one"])
    for one in segments[7:]:
        lake.append([one])
    assert lake.live_files == 3


def test_a_long_gtid_set_is_packed(tmp_path: Path) -> None:
    gtids = ",".join(f"{number:08x}-0000-0000-0000-000000000001:1-{number * 7919}" for number in range(300))
    opened(tmp_path).append([replace(one, gtid_executed=gtids) for one in chain(range(1, 9))])
    (file,) = tmp_path.rglob("*.parquet")
    assert file.stat().st_size < len(gtids)
    assert {one.gtid_executed for one in bronze_segments(tmp_path)} == {gtids}
