"""A backup put into an empty lake: each table at its version in the backup's paper, not beyond.

In:  a backup, the pipeline's lake, empty; nobody works on it (leases).
Out: the lake, as it was when the backup ended. Until all of it is there, a paper marks it as unfinished
     (lake/format/unfinished.py), and every job refuses it. A killed restore is run again.
"""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from tidegate.capture.owing import Owing
from tidegate.copies.backup import Report, check_apart, contents
from tidegate.copies.copied_table import Between, TableCopy, copying
from tidegate.copies.manifest import Copied, CopyManifest
from tidegate.copies.place import GoneMeanwhileError, copy_file
from tidegate.errors import LakeRefused, UsageError
from tidegate.failpoint import failpoint
from tidegate.lake.files import LakeFiles
from tidegate.lake.format.migrations import newest_format
from tidegate.lake.format.unfinished import FOLDER, NAME, FolderKind, Paper
from tidegate.limits import COPY_TABLES_MAX


def manifest_of(backup: LakeFiles, pipeline: str) -> CopyManifest:
    """The manifest of a backup. Raises UsageError for one of another pipeline, LakeRefused where it
    can't be used.
    """
    paper = Paper.read(backup.store(FOLDER))
    if paper is None or paper.kind is not FolderKind.BACKUP:
        raise UsageError(
            f"is {'a ' + paper.kind if paper else 'no backup'}", where=backup.root, remedy="give a backup's folder"
        )
    if paper.pipeline != pipeline:
        raise UsageError(
            f"is a backup of pipeline {paper.pipeline}", where=backup.root, remedy="use that pipeline's file"
        )
    if paper.whole is None:
        raise LakeRefused(
            "this backup hasn't ended, so its tables don't belong together",
            where=backup.root,
            remedy=f"run `tidegate lake backup` again, or use another one; its lake was {paper.other}",
        )
    made = CopyManifest.of_json(paper.whole, backup.root)
    if made.lake_format > newest_format():
        raise LakeRefused(
            f"it has format {made.lake_format}, which this release doesn't know",
            where=backup.root,
            remedy=f"install tidegate {made.release} or a newer one",
        )
    return made


@dataclass(slots=True)
class Restore:
    """pipeline: its name. The caller holds the leases of all work on the lake."""

    pipeline: str
    backup: LakeFiles
    lake: LakeFiles
    report: Report
    unasked: Collection[str] = ()  # sources that can't send again what they were acknowledged
    brought_files: int = 0
    _made: CopyManifest = field(init=False)

    def check(self) -> CopyManifest:
        """Before anything is written. Raises UsageError, LakeRefused."""
        self._made = manifest_of(self.backup, self.pipeline)
        check_apart(self.lake, self.backup)
        paper = Paper.read(self.lake.store(FOLDER))
        if paper is not None:
            if paper.kind is FolderKind.RESTORE and paper.whole == {"id": self._made.id}:
                return self._made  # a killed restore of it
            raise UsageError(
                f"has a {paper.kind} of {paper.other} in it", where=self.lake.root, remedy="give an empty lake.path"
            )
        if names := contents(self.lake):
            raise UsageError(
                f"isn't empty: it has {', '.join(names)}",
                where=self.lake.root,
                remedy="move it away, or give the pipeline another lake.path",
            )
        return self._made

    def run(self) -> CopyManifest:
        """After check(). Raises LakeUnavailable, LakeRefused: the backup lacks files of its
        paper.
        """
        store = self.lake.store(FOLDER)
        Paper(FolderKind.RESTORE, self.pipeline, self.backup.root, {"id": self._made.id}).write(store)
        between = copying(self.backup, self.lake, lambda _: None)
        tables = ThreadPoolExecutor(COPY_TABLES_MAX, "tables")
        try:
            for path, size in self._made.small.items():
                copy_file(*between.places, path, size)
            for _ in tables.map(partial(self._table, between), self._made.tables.items()):
                pass
        except GoneMeanwhileError as error:
            raise LakeRefused(f"it lacks {error}", where=self.backup.root, remedy="use another backup") from error
        finally:
            tables.shutdown(cancel_futures=True)
            between.pool.shutdown(cancel_futures=True)
        for source in self.unasked:
            Owing(self.lake, source).note_put_back(self.backup.root)
        failpoint("restore_before_end")
        store.delete([NAME])
        return self._made

    def _table(self, between: Between, named: tuple[str, Copied]) -> None:
        path, wanted = named
        copy = TableCopy(between, path)
        copied = copy.run(wanted.version)
        if copied != wanted:
            raise LakeRefused(
                f"{path} isn't as it was when the backup ended", where=self.backup.root, remedy="use another backup"
            )
        self.report(copy.brought)
        self.brought_files += copy.files
        failpoint("restore_after_table")
