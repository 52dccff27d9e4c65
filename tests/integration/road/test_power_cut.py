"""After a power cut a commit has all its files: what it names is on disk before it, with its name.

The disk is watched, from the lake's first file on: which files were synced, and which names a folder had when it was.
"""

from __future__ import annotations

import json
import os
import stat
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate.delta.table.live_file import VectorDescriptor
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.upsert.deletions.deletion_vector import stored_path

pytestmark = pytest.mark.server


@dataclass
class Disk:
    """synced: inodes of files. named: inode of a folder -> names in it when it was synced. syncs: of each folder since
    the last commit below it. commits: of each folder, its syncs before each commit, and what that names.
    """

    synced: set[int] = field(default_factory=set)
    named: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    syncs: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    commits: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    lacking: list[str] = field(default_factory=list)

    def sync(self, handle: int) -> None:
        status = os.fstat(handle)
        if stat.S_ISDIR(status.st_mode):
            self.named[status.st_ino].update(os.listdir(handle))
            self.syncs[str(Path(f"/proc/self/fd/{handle}").readlink())] += 1
        else:
            self.synced.add(status.st_ino)

    def commit(self, written: Path, name: Path) -> None:
        """written: the commit's bytes under another name."""
        folder, named = name.parent.parent, 0
        if written.stat().st_ino not in self.synced:
            self.lacking.append(f"{name}: the commit itself")
        for line in written.read_text().splitlines():
            for file in _files(folder, json.loads(line).get("add")):
                named += 1
                if file.stat().st_ino not in self.synced:
                    self.lacking.append(f"{name}: {file} isn't on disk")
                if file.name not in self.named[file.parent.stat().st_ino]:
                    self.lacking.append(f"{name}: {file} has no name on disk")
        self.commits[str(folder)].append((self.syncs.pop(str(folder), 0), named))


def _files(folder: Path, add: Mapping[str, Any] | None) -> Iterator[Path]:
    """The data file of an action, and that of its deletion vector."""
    if add is None:
        return
    yield folder / unquote(add["path"])
    if vector := add.get("deletionVector"):
        lake = LakeFiles(str(folder.parent))
        yield folder.parent / stored_path(lake, folder.name, VectorDescriptor.of(vector))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    watched, sync, link = Disk(), os.fsync, os.link

    def fsync(handle: int) -> None:
        sync(handle)
        watched.sync(handle)

    def linked(source: str, target: str, **options: Any) -> None:
        if Path(target).parent.name == "_delta_log" and target.endswith(".json"):
            watched.commit(Path(source), Path(target))
        link(source, target, **options)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "link", linked)
    return watched


def test_what_a_commit_names_is_on_disk_before_it_and_silvers_folder_is_synced_once(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path, disk: Disk
) -> None:
    database = fresh_database(mariadb)
    road = Road.begun(mariadb, tmp_path, database, "CREATE TABLE k (id INT PRIMARY KEY, a VARCHAR(20))")
    for first in range(0, 100, 10):  # each window adds, replaces and deletes rows; some are packed meanwhile
        mariadb.query(f"INSERT INTO {database}.k SELECT {first} + seq, 'new' FROM {database}.seq_1_to_10")
        mariadb.query(f"UPDATE {database}.k SET a = 'changed' WHERE id > {first - 10} AND id % 4 = 0")
        mariadb.query(f"DELETE FROM {database}.k WHERE id < {first} AND id % 7 = 0")
        road.capture()
        road.apply()
    assert road.assert_equal()["k"] > 80
    assert not disk.lacking, "\n".join(disk.lacking)
    (silver,) = (commits for folder, commits in disk.commits.items() if folder.endswith(f"/silver/{database}/k"))
    assert len(silver) > 10
    upserts = [syncs for syncs, named in silver if named]
    assert sorted(upserts)[len(upserts) // 2] == 1, "a file and a vector, and one sync for the names of both"
    assert set(upserts) <= {1, 2}, "packing syncs for itself"
