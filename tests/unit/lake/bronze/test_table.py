"""An append to bronze is there once, whatever the store said of the commit."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.captures import bronze_segments
from tests.unit.capture.test_lander import chain
from tidegate.delta import log as log_module
from tidegate.delta.stores.store import LocalStore
from tidegate.errors import Fenced, LakeUnavailable
from tidegate.lake.bronze import file as bronze_file
from tidegate.lake.bronze import table as bronze_module
from tidegate.lake.bronze.log import BronzeLog
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.bronze.upkeep import compact_run
from tidegate.lake.files import LakeFiles
from tidegate.segments.crc32c import crc32c
from tidegate.segments.segment import Segment
from tidegate.tables import SEGMENTS, SegmentFlag, SegmentKind


def seqs(folder: Path) -> list[int]:
    return [segment.seq for segment in bronze_segments(folder)]


def opened(folder: Path) -> Bronze:
    return Bronze(LakeFiles(str(folder)), "one")


def whole(numbers: range) -> list[Segment]:
    """Such as upkeep takes them: with the checksum of their bytes."""
    return [replace(one, payload_crc32c=crc32c(one.payload)) for one in chain(numbers)]


def captured_later(numbers: range) -> list[Segment]:
    """What another capture makes of the same bytes."""
    return [replace(one, captured_at=one.captured_at.replace(year=2027)) for one in chain(numbers)]


class Unlucky:
    """Commits fail with an error as often as asked for, before or after they are made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.before = self.after = 0
        self.then: Callable[[], None] = lambda: None
        self.dark = False  # nothing can be read
        real, get = LocalStore.create, LocalStore.get

        def create(store: LocalStore, name: str, data: bytes) -> bool:
            if self.before:
                self.before -= 1
                raise LakeUnavailable("no answer", where=store.where)
            made = real(store, name, data)
            if self.after:
                self.after -= 1
                self.then()
                raise LakeUnavailable("no answer", where=store.where)
            return made

        def got(store: LocalStore, name: str) -> bytes | None:
            if self.dark:
                raise LakeUnavailable("no light", where=store.where)
            return get(store, name)

        monkeypatch.setattr(LocalStore, "create", create)
        monkeypatch.setattr(LocalStore, "get", got)
        monkeypatch.setattr(log_module, "COMMIT_BACKOFF_SECONDS", 0.001)
        monkeypatch.setattr(bronze_module, "BRONZE_BACKOFF_SECONDS", 0.001)


def test_a_commit_that_was_made_and_reported_as_failed_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, bronze = Unlucky(monkeypatch), opened(tmp_path)
    bronze.append(chain(range(1, 3)))
    store.after = 1
    bronze.append(chain(range(3, 5)))
    bronze.append(chain(range(5, 6)))
    assert seqs(tmp_path) == [1, 2, 3, 4, 5]


def test_a_commit_that_was_not_made_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, bronze = Unlucky(monkeypatch), opened(tmp_path)
    store.before = 2
    bronze.append(chain(range(1, 3)))
    store.before = store.after = 1  # first not made, then made and reported as failed
    bronze.append(chain(range(3, 5)))
    assert seqs(tmp_path) == [1, 2, 3, 4]
    assert len(list(tmp_path.rglob("*.parquet"))) == 2, "the files of an attempt are those of the next"


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_file_that_could_not_be_written_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    bronze, failures = opened(tmp_path), [OSError(number, os.strerror(number))] * 2
    real = bronze_file.write_file

    def unlucky(*arguments: Any) -> None:
        if failures:
            raise failures.pop()
        real(*arguments)

    monkeypatch.setattr(bronze_module, "BRONZE_BACKOFF_SECONDS", 0.001)
    monkeypatch.setattr(bronze_file, "write_file", unlucky)
    bronze.append(chain(range(1, 3)))
    failures += [OSError(number, os.strerror(number))] * 100
    with pytest.raises(LakeUnavailable, match=re.escape(os.strerror(number))):
        bronze.append(chain(range(3, 5)))
    failures.clear()
    bronze.append(chain(range(3, 5)))
    assert seqs(tmp_path) == [1, 2, 3, 4]


def test_a_commit_of_unknown_outcome_behind_which_the_lake_went_away_is_settled_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table vanishes with the answer, for longer than the attempts last; nothing new is begun in its place."""
    lake, aside = tmp_path / "lake", tmp_path / "aside"
    store, bronze = Unlucky(monkeypatch), opened(lake)
    bronze.append(chain(range(1, 3)))
    store.after, store.then = 1, lambda: shutil.move(lake, aside) and None
    for _ in range(2):
        with pytest.raises(LakeUnavailable, match="isn't there any more"):
            bronze.append(chain(range(3, 5)))
        assert not (lake / SEGMENTS.path / "_delta_log").exists()
    shutil.move(aside, lake)
    bronze.append(chain(range(3, 6)))
    bronze.append(chain(range(6, 7)))
    assert seqs(lake) == [1, 2, 3, 4, 5, 6]


def test_a_commit_of_unknown_outcome_that_others_commits_follow_is_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another source lands, and upkeep packs what came of it, before bronze can be read again."""
    store, bronze = Unlucky(monkeypatch), opened(tmp_path)
    bronze.append(whole(range(1, 3)))
    store.after, store.then = 1, lambda: setattr(store, "dark", True)
    for _ in range(2):
        with pytest.raises(LakeUnavailable, match="no light"):
            bronze.append(whole(range(3, 5)))
    store.dark = False
    Bronze(LakeFiles(str(tmp_path)), "two").append([replace(one, source="two") for one in whole(range(1, 3))])
    log = BronzeLog.load(LakeFiles(str(tmp_path)))
    assert log is not None
    compact_run(log, log.files()["one"])
    bronze.append(whole(range(3, 6)))
    assert seqs(tmp_path) == [1, 2, 3, 4, 5]


def test_a_commit_of_unknown_outcome_that_another_writer_overtook_is_fenced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is there under our seq is another's, though it is the same: nothing of it was tried by us."""
    store, bronze, other = Unlucky(monkeypatch), opened(tmp_path), opened(tmp_path)
    bronze.append(chain(range(1, 3)))
    store.before = 8
    with pytest.raises(LakeUnavailable, match="no answer"):
        bronze.append(chain(range(3, 5)))
    other.append(chain(range(3, 5)))
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


def test_a_lake_that_goes_between_two_reads_of_its_log_is_away_not_empty(tmp_path: Path) -> None:
    lake, aside = tmp_path / "lake", tmp_path / "aside"
    opened(lake).append(chain(range(1, 3)))
    bronze = opened(lake)
    assert bronze.last_seq == 2
    lake.rename(aside)
    for told in ("isn't there any more", "Not a directory"):
        for ask in (
            lambda: bronze.last_seq,
            bronze.last_segments,
            lambda: list(bronze.newest_first()),
            lambda: bronze.append(chain(range(3, 5))),
        ):
            with pytest.raises(LakeUnavailable, match=told):
                ask()
        lake.write_text("a file is where the lake was")
    lake.unlink()
    aside.rename(lake)
    assert bronze.last_segments()[-1].seq == 2


def test_the_newest_segments_are_found_a_few_files_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction that many files hold, and heartbeats behind it."""
    monkeypatch.setattr(bronze_module, "_LOOKED_BACK_SEQS", 2)
    open_both = SegmentFlag.OPEN_AT_START | SegmentFlag.OPEN_AT_END
    flags = {4: SegmentFlag.OPEN_AT_END, **dict.fromkeys(range(5, 30), open_both), 30: SegmentFlag.OPEN_AT_START}
    quiet = [
        replace(one, payload=b"", start_pos=31_000, end_pos=31_000, kind=SegmentKind.HEARTBEAT)
        for one in chain(range(31, 41))
    ]
    writer = opened(tmp_path)
    for one in chain(range(1, 31)):
        writer.append([replace(one, flags=flags.get(one.seq, SegmentFlag(0)))])
    assert [one.seq for one in opened(tmp_path).last_segments()] == list(range(4, 31))
    for one in quiet:
        writer.append([one])
    assert [one.seq for one in opened(tmp_path).last_segments()] == [40]
    assert [one.seq for one in opened(tmp_path).newest_first()] == list(range(30, 0, -1))


def test_a_writer_holds_no_files_of_the_table(tmp_path: Path) -> None:
    bronze = opened(tmp_path)
    for number in range(1, 6):
        bronze.append(chain(range(number, number + 1)))
    bronze.last_segments()
    assert bronze._log.state().files == ()


def test_a_long_gtid_set_is_packed(tmp_path: Path) -> None:
    gtids = ",".join(f"{number:08x}-0000-0000-0000-000000000001:1-{number * 7919}" for number in range(300))
    opened(tmp_path).append([replace(one, gtid_executed=gtids) for one in chain(range(1, 9))])
    (file,) = tmp_path.rglob("*.parquet")
    assert file.stat().st_size < len(gtids)
    assert {one.gtid_executed for one in bronze_segments(tmp_path)} == {gtids}
