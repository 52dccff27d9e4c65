"""Commits of several processes at the same version: one winner each, nothing lost or torn; killed at any point."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.kit.s3 import S3
from tests.support.forks import exit_code
from tests.support.seeds import many
from tests.support.ties import check_ties, eight_commits, run_ties
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.table.actions import add, metadata, protocol

LOCAL_TIES = many(200, 34_000)
S3_TIES = many(20, 5_000)
SCHEMA = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
POINTS = ("delta_before_commit", "store_before_link", "store_after_link", "delta_after_commit")


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("processes", [2, 4, 8])
def test_one_of_several_processes_wins_each_version_on_a_disk(tmp_path: Path, processes: int) -> None:
    place = str(tmp_path / "t")
    ties = run_ties(place, {}, processes=processes, versions=LOCAL_TIES)
    check_ties(place, {}, ties, LOCAL_TIES)
    assert ties.forced == LOCAL_TIES


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("processes", [2, 4])
def test_one_of_several_processes_wins_each_version_on_s3(s3: S3, processes: int) -> None:
    place = s3.folder()
    ties = run_ties(place, s3.options, processes=processes, versions=S3_TIES)
    check_ties(place, s3.options, ties, S3_TIES)
    assert ties.forced == S3_TIES


@pytest.mark.parametrize("point", POINTS)
def test_a_writer_that_is_killed_anywhere_in_a_commit_loses_and_doubles_nothing(tmp_path: Path, point: str) -> None:
    place = str(tmp_path / "t")
    log = DeltaLog(place)
    log.commit(log.state(), Change([protocol(()), metadata(SCHEMA, {})], "CREATE TABLE"))
    killed = 0
    for _ in range(12):
        code = exit_code(eight_commits, place, f"{point}:2")
        if code == 0:
            break
        assert code == -signal.SIGKILL
        killed += 1
        assert DeltaLog(place).state().version <= killed * 2
    assert killed > 2
    assert exit_code(eight_commits, place, None) == 0
    state = DeltaLog(place).state()
    assert sorted(file.path for file in state.files) == [f"f{number}" for number in range(1, 9)]
    assert state.version == 8


def test_a_foreign_commit_in_between_is_not_overwritten(tmp_path: Path) -> None:
    """Delta's own store on a disk looks, then renames, and may overwrite; ours never does."""
    place = str(tmp_path / "t")
    log = DeltaLog(place)
    state = log.commit(log.state(), Change([protocol(()), metadata(SCHEMA, {})], "CREATE TABLE"))
    other = DeltaLog(place)
    other.update(
        lambda _: Change(
            [add({"path": "a", "size": 1, "partitionValues": {}, "modificationTime": 1}, data_change=True)], "WRITE"
        )
    )
    written = (tmp_path / "t" / "_delta_log" / f"{1:020d}.json").read_bytes()
    again = log.update(lambda read: None if read.files else Change([], "TIE"))
    assert again.version == state.version + 1
    assert (tmp_path / "t" / "_delta_log" / f"{1:020d}.json").read_bytes() == written
