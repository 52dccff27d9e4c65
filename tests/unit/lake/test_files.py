"""What a commit will name is on disk before the commit is."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow.fs as pafs
import pytest

from tidegate.errors import LakeUnavailable
from tidegate.lake import files as module
from tidegate.lake.files import LakeFiles
from tidegate.lake.format.version import control_tables
from tidegate.upsert.deletions.deletion_vector import VectorWriter


def test_a_vector_is_on_disk_with_its_name_when_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = watched(monkeypatch)
    (tmp_path / "t").mkdir()
    with VectorWriter(LakeFiles(str(tmp_path)), "t") as vectors:
        vectors.add(np.array([1, 5], np.int64))
    [written] = (tmp_path / "t").iterdir()
    assert synced == [written, tmp_path / "t"]


def test_files_are_settled_one_by_one_and_their_names_once_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, lake = watched(monkeypatch), LakeFiles(str(tmp_path))
    lake.make_folder("t/copy/p=1")
    assert tmp_path in synced, "new folders have their names"
    names = ["p=1/a", "p=1/b", "c"]
    synced.clear()
    for name in names:
        (tmp_path / "t/copy" / name).write_bytes(b"a")
        lake.settle_file(f"t/copy/{name}")
    folder = tmp_path / "t/copy"
    assert synced == [folder / name for name in names]
    synced.clear()
    lake.settle_names("t/copy", names)
    assert sorted(synced) == [folder, folder / "p=1"]


def watched(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What is brought to disk, in order."""
    synced: list[Path] = []
    fsync = os.fsync

    def seen(handle: int) -> None:
        synced.append(Path(f"/proc/self/fd/{handle}").resolve())
        fsync(handle)

    monkeypatch.setattr(module.os, "fsync", seen)
    return synced


def test_a_lake_that_is_moved_away_is_out_of_reach_and_a_missing_file_is_missing(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    (tmp_path / "bronze").write_text("a file is where the folder was")
    with pytest.raises(LakeUnavailable, match=r"bronze/a\.parquet: can't be opened: Not a directory; check the disk"):
        lake.open("bronze/a.parquet")
    with pytest.raises(FileNotFoundError):
        lake.open("silver.parquet")


def test_a_folder_that_is_made_while_it_is_listed_is_no_missing_file(tmp_path: Path) -> None:
    """Arrow finds none, looks whether there is none, and there is one."""
    lake = LakeFiles(str(tmp_path))
    asked: list[str] = []

    class Meanwhile:
        """The folder comes behind the first look."""

        def get_file_info(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
            asked.append(selector.base_dir)
            if len(asked) == 1:
                Path(selector.base_dir, "cuts").mkdir(parents=True)
                raise FileNotFoundError(selector.base_dir)
            return list(pafs.LocalFileSystem().get_file_info(selector))

    lake._fs = Meanwhile()
    assert control_tables(lake) == {"cuts"}
    assert len(asked) == 2
    assert control_tables(LakeFiles(str(tmp_path / "none"))) == set()
