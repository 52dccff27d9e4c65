"""Upkeep of a control table beside a writer that never stops."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.kit.s3 import S3
from tests.support.control_writers import PARTS, appends_and_compacts, races
from tests.support.forks import forks
from tidegate import tables
from tidegate.errors import CommitConflict
from tidegate.lake import control
from tidegate.lake.control.upkeep import commit_times, compact, drop_files, rewrite
from tidegate.lake.files import LakeFiles


def row(number: int) -> dict[str, Any]:
    now = datetime.now(UTC)
    return {"cut_ts": number, "table": "", "delta_version": -1, "applied_ts": 0, "state": "active", "published_at": now}


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.server)])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> LakeFiles:
    """An empty lake, on the disk and in an object store."""
    if request.param == "local":
        return LakeFiles(str(tmp_path))
    store: S3 = request.getfixturevalue("s3")
    return LakeFiles(store.folder(), store.options)


def test_upkeep_keeps_every_row_that_is_to_stay_and_the_transaction_version(lake: LakeFiles) -> None:
    assert compact(lake, tables.CUTS, files_min=2) is None
    for number in range(20):
        control.append(lake, tables.CUTS, [row(number)], app_transaction=("cuts", number))
    assert drop_files(lake, tables.CUTS, "cut_ts", 5) == (20, 15)
    assert drop_files(lake, tables.CUTS, "cut_ts", 5) is None
    found = compact(lake, tables.CUTS, files_min=8)
    assert found is not None
    assert (found[0].files, found[1].files) == (15, 1)
    assert rewrite(lake, tables.CUTS, lambda rows: rows.filter(pc.greater_equal(rows["cut_ts"], 7))) == (15, 13)
    assert rewrite(lake, tables.CUTS, lambda rows: rows) is None
    assert any("checkpoint.parquet" in entry.name for entry in lake.log(tables.CUTS.path).store.names())
    again = LakeFiles(lake.root, lake.storage_options)
    assert sorted(control.read(again, tables.CUTS)["cut_ts"].to_pylist()) == list(range(7, 20))
    assert control.application_version(again, tables.CUTS, "cuts") == 19
    times = commit_times(again, tables.CUTS.path, [0, 22, 23])
    assert set(times) == {0, 22}
    assert abs(times[22] - datetime.now(UTC).timestamp()) < 60


def test_what_was_compacted_long_ago_is_deleted(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    for number in range(3):
        control.append(lake, tables.CUTS, [row(number)])
    old = set(tmp_path.glob("control/cuts/*.parquet"))
    compact(lake, tables.CUTS, files_min=2)
    assert old < set(tmp_path.glob("control/cuts/*.parquet"))
    for path in tmp_path.glob("control/cuts/**/*"):
        if path.is_file():
            os.utime(path, (0, 0))
    compact(lake, tables.CUTS, files_min=2)
    assert old.isdisjoint(tmp_path.glob("control/cuts/*.parquet"))
    assert control.read(lake, tables.CUTS).num_rows == 3


def test_an_append_between_a_rewrites_read_and_its_commit_is_kept(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    for number in range(5):
        control.append(lake, tables.CUTS, [row(number)])

    def stays(rows: pa.Table) -> pa.Table:
        if 99 not in rows["cut_ts"].to_pylist():
            control.append(lake, tables.CUTS, [row(99)])  # apply publishes right now
        return rows.filter(pc.greater_equal(rows["cut_ts"], 3))

    assert rewrite(lake, tables.CUTS, stays) is not None
    assert sorted(control.read(lake, tables.CUTS)["cut_ts"].to_pylist()) == [3, 4, 99]


def test_processes_that_append_compact_and_rewrite_double_no_row_and_bring_none_back(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    control.append(lake, tables.CUTS, [row(0)])
    running = [forks.Process(target=appends_and_compacts, args=(lake, start)) for start in (100, 200, 300)]
    for process in running:
        process.start()
    for process in running:
        process.join()
    assert [process.exitcode for process in running] == [0, 0, 0]
    rewrite(lake, tables.CUTS, lambda rows: rows.filter([cut % 100 != 5 for cut in rows["cut_ts"].to_pylist()]))
    wanted = [0, *(start + number for start in (100, 200, 300) for number in range(1, 13) if number != 5)]
    assert sorted(control.read(lake, tables.CUTS)["cut_ts"].to_pylist()) == wanted


def race(lake: LakeFiles, times: int) -> int:
    """Two processes that compact and one that appends, side by side; how often one of the two gave way."""
    control.append(lake, tables.CUTS, [row(0)])
    pipes = [forks.Pipe() for _ in PARTS]
    running = [
        forks.Process(target=races, args=(theirs, lake, part, times))
        for part, (_, theirs) in zip(PARTS, pipes, strict=True)
    ]
    for process, (_, theirs) in zip(running, pipes, strict=True):
        process.start()
        theirs.close()
    for ours, _ in pipes:
        assert ours.recv() == "ready"
    for ours, _ in pipes:
        ours.send("go")
    lost = sum(ours.recv() for ours, _ in pipes)
    assert sorted(control.read(lake, tables.CUTS)["cut_ts"].to_pylist()) == list(range(times + 1))
    return lost


def test_beside_two_that_compact_each_appended_row_is_there_once(tmp_path: Path) -> None:
    """delta-rs made both of two compactions of the same files, and their rows were there twice."""
    assert race(LakeFiles(str(tmp_path)), 100) > 0, "they never met: nothing was shown"


def test_in_an_object_store_each_appended_row_is_there_once_too(s3: S3) -> None:
    race(LakeFiles(s3.folder(), s3.options), 20)


def test_of_two_that_hold_one_snapshot_only_one_compacts_it(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    for number in range(5):
        control.append(lake, tables.CUTS, [row(number)])
    one, two = (control.load(lake, tables.CUTS) for _ in range(2))
    assert one is not None
    assert two is not None
    control.append(lake, tables.CUTS, [row(5)])
    control.pack(lake, tables.CUTS, one, smaller_bytes=1 << 20)  # behind an append it goes on
    with pytest.raises(CommitConflict):
        control.pack(lake, tables.CUTS, two, smaller_bytes=1 << 20)
    assert sorted(control.read(lake, tables.CUTS)["cut_ts"].to_pylist()) == list(range(6))
    found = control.load(lake, tables.CUTS)
    assert found is not None
    assert len(found.files) == 2


def test_a_writer_that_holds_an_older_snapshot_appends_all_the_same(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    control.append(lake, tables.CUTS, [row(1)])
    stale = control.load(lake, tables.CUTS)
    assert stale is not None
    rewrite(lake, tables.CUTS, lambda rows: rows.slice(0, 0))
    control.append(lake, tables.CUTS, [row(2)])
    assert control.read(lake, tables.CUTS)["cut_ts"].to_pylist() == [2]
