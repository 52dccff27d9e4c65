"""Remove files from a backup's folder that neither the newest backup nor the present lake needs.

In:  the lake, its backup, and the backup's manifest.
Out: files of tables in the backup are gone if neither the backup's version names them nor the lake
     has them; so are entries of logs from before the point both reach back to. dry: only counted.

If the lake has lost a table, the backup has the last copy. Therefore only tables that this backup took
from the lake are pruned; others are named, and stay. The backup's folder is listed before the lake.
A file that the lake lacks was gone before, and no later backup needs it, because file names are
never used again. The backup's version is read before anything is removed. A kill leaves some
needless files; the next call removes them.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import filterfalse
from typing import Final

from tidegate.copies.copied_table import is_data, live_names
from tidegate.copies.manifest import Copied, CopyManifest
from tidegate.copies.place import CopyPlace, place_of
from tidegate.delta.log import DeltaLog
from tidegate.delta.object_names import LAST_CHECKPOINT, LOG, checkpoints, commit_version, expires_at, hinted
from tidegate.errors import LakeRefused, LakeUnavailable
from tidegate.failpoint import failpoint
from tidegate.lake.files import LakeFiles
from tidegate.lake.format.unfinished import FOLDER, Paper
from tidegate.limits import COPY_AT_ONCE_FILES_MAX, COPY_TABLES_MAX
from tidegate.text_layout import counted

_TOPS: Final = ("silver", "changelog")


@dataclass(slots=True)
class Prune:
    """held: raises Overtaken when another backup may write to the folder. files, bytes: removed, or
    about to be. strange: staying tables, as the lake doesn't have them, or the backup couldn't take
    them.
    """

    lake: LakeFiles
    target: LakeFiles
    report: Callable[[str], None]
    held: Callable[[], None] = lambda: None
    dry: bool = False
    files: int = 0
    bytes: int = 0
    strange: list[str] = field(default_factory=list)
    _places: tuple[CopyPlace, CopyPlace] = field(init=False)
    _made: CopyManifest = field(init=False)

    def run(self, made: CopyManifest) -> None:
        """made: of the folder's backup. Raises LakeUnavailable, LakeRefused, Overtaken."""
        self._made = made
        self._places = (
            place_of(self.lake.root, self.lake.storage_options),
            place_of(self.target.root, self.target.storage_options),
        )
        self.strange = sorted(self._tables() - made.tables.keys())
        with (
            ThreadPoolExecutor(COPY_TABLES_MAX, "tables") as tables,
            ThreadPoolExecutor(COPY_AT_ONCE_FILES_MAX, "prune") as files,
        ):
            try:
                for path, gone, size in tables.map(lambda named: self._table(files, *named), made.tables.items()):
                    if gone:
                        self.files += gone
                        self.bytes += size
                        self.report(f"{path}: {counted(gone, 'file', 'files')}, {size / 1e6:,.1f} MB")
            except BaseException:
                for pool in (tables, files):
                    pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _table(self, pool: ThreadPoolExecutor, path: str, copied: Copied) -> tuple[str, int, int]:
        """(its path, needless files, their bytes)."""
        source, target = self._places
        lost = {file.path: file.size for file in target.files(path)}
        commits = set[int]()
        for file in source.files(path):
            lost.pop(file.path, None)
            version = commit_version(file.path.removeprefix(f"{LOG}/"))
            if version is not None:
                commits.add(version)
        if not commits:
            self.strange.append(path)  # the lake has lost it since
            return path, 0, 0
        needless = self._needless(path, copied, lost, min(commits))
        if not self.dry and needless:
            self._check_ours()
            entries = list(filterfalse(is_data, needless))
            for name in sorted(entries):  # the oldest version first: the rest of a killed run has no gap
                self._remove(f"{path}/{name}")
            list(pool.map(lambda name: self._remove(f"{path}/{name}"), filter(is_data, needless)))
        return path, len(needless), sum(map(lost.__getitem__, needless))

    def _tables(self) -> set[str]:
        """The paths of silver's tables and changelogs in the backup."""
        target, paths = self._places[1], set[str]()
        for top in _TOPS:
            for database in target.folders(top):
                for name in target.folders(f"{top}/{database}"):
                    paths.add(f"{top}/{database}/{name}")
        return paths

    def _remove(self, path: str) -> None:
        self.held()
        self._places[1].remove(path)
        failpoint("prune_after_file")

    def _needed(self, path: str, copied: Copied) -> set[str]:
        """The live files of the backup's version."""
        state = DeltaLog(self.target.uri(path), self.target.storage_options).state_at(copied.version)
        if state is None or state.table_id != copied.table_id:
            raise LakeRefused(
                f"{path} isn't as it was when the backup ended", where=self.target.root, remedy="back up again"
            )
        return set(live_names(self.target, path, state))

    def _needless(self, path: str, copied: Copied, lost: dict[str, int], oldest: int) -> list[str]:
        """The needless part of the lake's lost files: data outside the backup's version, and log
        entries before one of the copy's checkpoints. From this checkpoint on the copy has all
        versions of the lake. oldest: the lake's oldest commit.
        """
        if not lost:
            return []
        needed, cut = self._needed(path, copied), self._cut(path, min(copied.version, oldest))
        needless = []
        for name in lost:
            at = expires_at(name.removeprefix(f"{LOG}/"))
            if name not in needed if is_data(name) else name.startswith(f"{LOG}/") and at is not None and at <= cut:
                needless.append(name)
        return needless

    def _cut(self, path: str, reach: int) -> int:
        """The version of the newest whole checkpoint at or below reach; -1 without one."""
        store = self.target.store(f"{path}/{LOG}")
        hint = hinted(store.get(LAST_CHECKPOINT))
        reach = min(reach, -1 if hint is None else hint)
        return next((each.version for each in checkpoints(store.names()) if each.version <= reach), -1)

    def _check_ours(self) -> None:
        """Another backup may have ended here meanwhile, and need other files."""
        self.held()
        paper = Paper.read(self.target.store(FOLDER))
        if paper is None or paper.whole is None or paper.whole.get("id") != self._made.id:
            raise LakeUnavailable(
                "another backup ended in this folder meanwhile", where=self.target.root, remedy="prune again"
            )
