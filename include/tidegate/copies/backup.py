"""A copy of a whole lake while capture, apply and maintain work on it.

In:  a lake, a folder for its copy, perhaps with an earlier copy.
Out: a backup: tables at versions of one moment, by name in its paper.

The order makes the versions fit. First the versions of control's tables are noted, all at one moment; directly
afterwards those of silver's tables, then those of the changelogs. These versions are copied, however long it takes.
Bronze comes last, at its newest version. Nothing in the copy then names data that the copy lacks. Silver is as far as
control says, or a little further, as after a killed apply. Bronze has all of silver's data. Before all this, only files
are copied, in any order. If a source is captured for the first time meanwhile, the copied control may have its columns
while the copy lacks them: then all of it is done again. The same happens if VACUUM takes a chosen version.

A kill costs nothing: a file already there with its size isn't copied again. An earlier backup in
the same folder counts until the new one has ended, since its versions stay, unless a table was made
anew meanwhile. Files without a use stay, too, until they are pruned (prune.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath
from typing import Final, TypeVar

from tidegate import tables
from tidegate.copies.copied_table import Between, TableCopy, copying, newest_version
from tidegate.copies.manifest import Copied, CopyManifest
from tidegate.copies.place import GoneMeanwhileError, copy_file, place_of
from tidegate.delta.log import DeltaLog
from tidegate.delta.object_names import LOG
from tidegate.delta.table.state import no_files
from tidegate.errors import LakeRefused, LakeUnavailable, Terminal, UsageError
from tidegate.failpoint import failpoint
from tidegate.lake.files import LakeFiles
from tidegate.lake.format.unfinished import FOLDER, FolderKind, Paper
from tidegate.lake.format.version import BEGUN_ID
from tidegate.lake.jobs.leases import LEASES
from tidegate.lake.standing.followed import check_owner
from tidegate.limits import (
    COPY_AT_ONCE_FILES_MAX,
    COPY_ATTEMPTS_MAX,
    COPY_LOOKS_ATTEMPTS_MAX,
    COPY_TABLES_MAX,
    STORE_AGAIN_SECONDS,
)

T = TypeVar("T")
Report = Callable[[str], None]

SILVER: Final = "silver"
CHANGELOG: Final = "changelog"
VALUE_LOGS: Final = "control/value_logs"  # which value logs owe the lake something (capture/owing.py)
BRONZE: Final = (tables.SEGMENTS.path, tables.CHUNKS.path)  # segments name chunks
_CONTENTS_TOLD: Final = 3
# Control's tables in reverse order of a window's writes: if control never rests, each table names nothing that a later
# one lacks.
_LAST_WRITTEN: Final = (tables.CUTS, tables.SNAPSHOTS, tables.TABLE_STATES, tables.FOLLOWED)


@dataclass(slots=True)
class Backup:
    """pipeline: its name. silver: whether silver and changelogs are copied. kind: BACKUP, or MOVE
    for a lake to be. held: raises Overtaken when another one may copy into the same folder.
    recheck: an earlier backup's paper isn't believed, its files are looked at.
    """

    pipeline: str
    lake: LakeFiles
    target: LakeFiles
    report: Report
    silver: bool = True
    kind: FolderKind = FolderKind.BACKUP
    held: Callable[[], None] = lambda: None
    recheck: bool = False
    brought_files: int = 0
    brought_bytes: int = 0
    _before: Mapping[str, Copied] = field(default_factory=dict)
    _earlier: Mapping[str, Copied] = field(default_factory=dict)
    _later: bool = False  # a table is further than it was after control
    _between: Between = field(init=False)

    def run(self) -> CopyManifest:
        """Raises LakeUnavailable, LakeRefused, UsageError; a silver table's own trouble is in the manifest."""
        self._begin()
        self._between = copying(self.lake, self.target, self._void)
        try:
            self._check_same()
            self._fill()
            made = self._sealed()
        finally:
            self._between.pool.shutdown(cancel_futures=True)
        failpoint("copy_before_paper")
        for path in sorted(self._earlier.keys() - made.tables.keys() - made.lacks.keys()) if self.silver else ():
            self.report(f"tidegate: warning: {path} was in the earlier backup, and isn't in the lake any more")
        self._write(made)
        self._forget_small(made)
        return made

    def check(self) -> Paper | None:
        """The paper of an earlier copy in the folder. Writes nothing, not even a lease into
        somebody's own folder.

        Raises LakeUnavailable, LakeRefused; UsageError where the folder isn't such a copy's.
        """
        self.lake.check_known()
        check_apart(self.lake, self.target)
        paper = Paper.read(self.target.store(FOLDER))
        if paper is None:
            if names := contents(self.target):
                raise UsageError(
                    f"has {', '.join(names)}, and isn't a backup", where=self.target.root, remedy="give another folder"
                )
            return None
        if paper.pipeline != self.pipeline or paper.kind is not self.kind:
            raise UsageError(
                f"is a {paper.kind} of pipeline {paper.pipeline}", where=self.target.root, remedy="give another folder"
            )
        return paper

    def has_control(self, made: CopyManifest) -> bool:
        """After a run: whether control is still as this copy has it. Raises LakeUnavailable, LakeRefused."""
        has = {path: copied.version for path, copied in made.tables.items() if path.startswith(f"{FOLDER}/")}
        return self._versions() == has

    # --- the paper ----------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Take the folder, or go on in it. Raises as check does."""
        paper = self.check()
        if paper is None:
            self._write(None)
        elif paper.whole is not None:
            self._earlier = CopyManifest.of_json(paper.whole, self.target.root).tables
            self._before = {} if self.recheck else self._earlier

    def _check_same(self) -> None:
        """Refuse a lake that lost its vital tables, or was begun anew: it must not replace an
        earlier backup, which is needed just then. Raises LakeRefused.
        """
        unlike = []
        for path, copied in sorted(self._earlier.items()):
            if not path.startswith((f"{SILVER}/", f"{CHANGELOG}/")):
                state = DeltaLog(self.lake.uri(path), self.lake.storage_options, keep=no_files).state()
                if not state.created or state.table_id != copied.table_id:
                    unlike.append(path)
        if unlike:
            names = ", ".join(unlike[:_CONTENTS_TOLD]) + (" ..." if len(unlike) > _CONTENTS_TOLD else "")
            raise LakeRefused(
                f"it isn't the lake of the earlier backup any more: {names} are gone, or were made anew",
                where=self.lake.root,
                remedy=f"restore {self.target.root}, or give another folder",
            )

    def _void(self, path: str) -> None:
        """Mark the earlier backup as unusable: files that it needs are about to go."""
        self.held()
        paper = Paper.read(self.target.store(FOLDER))
        if paper is not None and paper.whole is not None:
            self.report(f"{path} was made anew since the last backup, which can't be restored until this one has ended")
            self._write(None)

    def _write(self, made: CopyManifest | None) -> None:
        self.held()
        whole = None if made is None else made.to_json()
        Paper(self.kind, self.pipeline, self.lake.root, whole).write(self.target.store(FOLDER))

    # --- passes -------------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Data files of all but control, in any order."""

        def fill(path: str) -> None:
            copy = TableCopy(self._between, path)
            copy.fill(self._before.get(path))
            self._count(copy)

        # A table's own error is reported when its version is copied.
        _at_once([*self._large(), *BRONZE], fill, lambda *_: None)

    def _sealed(self) -> CopyManifest:
        for _ in range(COPY_ATTEMPTS_MAX):
            sources = self._sources(self.lake)
            self._later = False
            made = self._seal()
            is_whole = self._sources(self.target) <= sources
            if is_whole and not self._later:
                return made
            self._before = {**self._before, **made.tables}
            why = "VACUUM took files" if is_whole else "a source was captured for the first time"
            self.report(f"{why} meanwhile: all that changed is copied again")
        if is_whole:  # the copy is usable; its first window has more work
            return made
        raise LakeUnavailable("new sources come faster than it is copied", where=self.lake.root)

    def _seal(self) -> CopyManifest:
        made: dict[str, Copied] = {}
        lacks: dict[str, str] = {}
        small, versions = self._control(made)
        failpoint("copy_after_control")
        done = self._each(versions, lambda path: self._behind_control(path, versions[path]), lacks)
        for path in BRONZE:
            done |= self._each([path], self._table, None)
        made.update({path: copied for path, copied in done.items() if copied is not None})
        small |= self._small()  # one that is settled by now landed what the copy's bronze lacks
        lake_format, cut_ts = self._transactions(made)
        return CopyManifest(made, small, lacks, self.silver, cut_ts, lake_format)

    def _control(self, made: dict[str, Copied]) -> tuple[dict[str, int], dict[str, int | None]]:
        """All of control, at one moment; files of no table, and the versions of silver and
        changelogs just behind the moment. Again where it is over already.
        """
        for _ in range(COPY_ATTEMPTS_MAX):
            try:
                small = self._small()
                still = self._still()
                versions = self._newest(self._large())
                copies = {path: self._table(path, version) for path, version in still.items()}
            except GoneMeanwhileError:
                continue
            made.update({path: copied for path, copied in copies.items() if copied is not None})
            return small, versions
        raise LakeUnavailable("control tables change faster than they are copied", where=self.lake.root)

    def _still(self) -> dict[str, int]:
        """Versions of control's tables at a moment without changes: two looks gave the same."""
        before = self._versions()
        for look in range(COPY_LOOKS_ATTEMPTS_MAX):
            now = self._versions()
            if now == before:
                break
            before = now
            time.sleep(STORE_AGAIN_SECONDS * min(look, 5))
        return before

    def _versions(self) -> dict[str, int]:
        last = [table.path for table in _LAST_WRITTEN]
        names = [f"{FOLDER}/{name}" for name in self._between.places[0].folders(FOLDER)]
        paths = [path for path in last if path in names] + [path for path in names if path not in last]
        versions = {}
        for path in paths:
            if path in (LEASES, VALUE_LOGS):
                continue
            entries = self.lake.store(f"{path}/{LOG}").names()
            newest = newest_version(entry.name for entry in entries)
            if newest is not None:
                versions[path] = newest
        return versions

    def _small(self) -> dict[str, int]:
        source, target = self._between.places
        sizes = {f"{VALUE_LOGS}/{file.path}": file.size for file in source.files(VALUE_LOGS)}
        for path, size in list(sizes.items()):
            try:
                copy_file(source, target, path, size)
            except GoneMeanwhileError:  # settled
                del sizes[path]
        return sizes

    def _forget_small(self, made: CopyManifest) -> None:
        """After the paper is written: remove small files that only earlier backups have."""
        target = self._between.places[1]
        for path in [f"{VALUE_LOGS}/{file.path}" for file in target.files(VALUE_LOGS)]:
            if path not in made.small:
                target.remove(path)

    def _large(self) -> list[str]:
        """Paths of silver's tables and changelogs, as far as they are wanted; silver first."""
        place = self._between.places[0]
        tops = (SILVER, CHANGELOG) if self.silver else ()
        databases = [f"{top}/{name}" for top in tops for name in place.folders(top)]
        return [f"{database}/{name}" for database in databases for name in place.folders(database)]

    def _newest(self, paths: Iterable[str]) -> dict[str, int | None]:
        """Newest versions, many tables at a time, a listing of a page for each; None: without a log, or not listed."""

        def look(path: str) -> int | None:
            before = self._before.get(path)
            return TableCopy(self._between, path).newest(before)

        versions: dict[str, int | None] = {}
        for some in _by_top(paths):
            versions |= dict.fromkeys(some) | _at_once(some, look, lambda *_: None, COPY_AT_ONCE_FILES_MAX)
        return versions

    def _behind_control(self, path: str, version: int | None) -> Copied | None:
        """The chosen version; the newest one where it is gone."""
        try:
            return self._table(path, version)
        except GoneMeanwhileError:
            copied = self._table(path)
            self._later = copied is not None
            return copied

    def _table(self, path: str, version: int | None = None) -> Copied | None:
        copy = TableCopy(self._between, path)
        copied = copy.run(version, self._before.get(path))
        self._count(copy)
        failpoint("copy_after_table")
        return copied

    def _count(self, copy: TableCopy) -> None:
        if copy.files:
            self.report(copy.brought)
            self.brought_files += copy.files
            self.brought_bytes += copy.bytes

    def _each(self, paths: Iterable[str], do: Callable[[str], T], lacks: dict[str, str] | None) -> dict[str, T]:
        """Some at a time. lacks: tables whose own trouble keeps them out; None: it ends all."""
        done: dict[str, T] = {}
        for some in _by_top(paths):
            done |= _at_once(some, do, partial(self._lacks, lacks))
        return done

    def _lacks(self, lacks: dict[str, str] | None, path: str, error: Terminal) -> None:
        if lacks is None:
            raise error
        if path not in lacks:
            lacks[path] = error.line
            self.report(f"tidegate: warning: {path} isn't in the copy: {error}")

    def _sources(self, lake: LakeFiles) -> set[str]:
        """Names of captured sources."""
        log = DeltaLog(lake.uri(tables.SEGMENTS.path), lake.storage_options, keep=no_files)
        head = tables.capture_app_id("")
        return {name.removeprefix(head) for name in log.state().transactions if name.startswith(head)}

    def _transactions(self, made: Mapping[str, Copied]) -> tuple[int, int]:
        """The copy's format and its newest cut."""
        recorded = []
        for path, app_id in ((tables.FORMAT.path, BEGUN_ID), (tables.CUTS.path, f"tidegate/{self.pipeline}/cuts")):
            state = None
            if path in made:
                log = DeltaLog(self.target.uri(path), self.target.storage_options, keep=no_files)
                state = log.state_at(made[path].version)
            recorded.append(0 if state is None else state.transaction(app_id))
        return recorded[0], recorded[1]


def _by_top(paths: Iterable[str]) -> list[list[str]]:
    """Changelogs after silver: an apply appends to a table's changelog before silver has it."""
    every = list(paths)
    return [[path for path in every if path.startswith(f"{top}/")] for top in (SILVER, CHANGELOG, "bronze")]


def _at_once(
    paths: Iterable[str],
    do: Callable[[str], T],
    failed: Callable[[str, Terminal], None],
    tables_max: int = COPY_TABLES_MAX,
) -> dict[str, T]:
    """The result for each path. No path is begun after an error other than those `failed` takes."""
    done_for: dict[str, T] = {}
    pool = ThreadPoolExecutor(tables_max, "tables")
    try:
        asked = {pool.submit(do, path): path for path in paths}
        for done in as_completed(asked):
            try:
                done_for[asked[done]] = done.result()
            except Terminal as error:
                failed(asked[done], error)
    finally:
        pool.shutdown(cancel_futures=True)
    return done_for


def check_source(lake: LakeFiles, pipeline: str) -> None:
    """Raises LakeRefused for a missing lake, as on an unmounted disk, and for another pipeline's: its
    jobs hold leases of another name.
    """
    if not contents(lake):
        remedy = "check lake.path, and whether its disk is mounted"
        raise LakeRefused("has no table, so nothing can be copied", where=lake.root, remedy=remedy)
    check_owner(lake, pipeline)


def check_apart(lake: LakeFiles, other: LakeFiles) -> None:
    """Raises UsageError when one lies in the other."""
    ours, theirs = f"{lake.root}/", f"{other.root}/"
    if ours.startswith(theirs) or theirs.startswith(ours):
        raise UsageError(
            "one of the lake and its copy is inside the other", where=other.root, remedy="give another folder"
        )


def contents(lake: LakeFiles) -> list[str]:
    """Some of a folder's contents; it is no empty lake with any. Leases taken in it don't count."""
    names = dict[str, None]()
    for file in place_of(lake.root, lake.storage_options).files(""):
        if not file.path.startswith(f"{LEASES}/"):
            names["/".join(PurePosixPath(file.path).parts[:2])] = None
        if len(names) == _CONTENTS_TOLD:
            break
    return list(names)
