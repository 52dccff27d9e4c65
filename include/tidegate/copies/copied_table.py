"""One Delta table from a lake into its copy, at one version, while others write to it.

In:  the table's path in both, its version, or none for the newest; the earlier copy's manifest.
Out: Copied. The copy has each file of its version, and the log up to there.

The version is chosen first. Then files are copied, also those of older versions that still exist;
then the log up to the version, and no later entry. Then the copy is read as a reader would, and
each named file must be there. VACUUM, retention and the log's cleanup may remove a listed file:
then a newer version is chosen, which doesn't need it. A file with the same name and size isn't
copied again, since data files and commits never change. There is one exception: if a table was
dropped and made anew, or put back, other commits have the same names. Therefore the newest common commit
is compared. If it differs, the copy's log is removed first, from the newest entry on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from tidegate.copies.manifest import Copied
from tidegate.copies.place import CopyPlace, File, GoneMeanwhileError, copy_file, place_of
from tidegate.delta.log import DeltaLog
from tidegate.delta.object_names import LAST_CHECKPOINT, LOG, commit_name, commit_version, hinted
from tidegate.delta.table.state import TableState
from tidegate.errors import LakeRefused
from tidegate.failpoint import failpoint
from tidegate.lake.files import LakeFiles
from tidegate.limits import COPY_AT_ONCE_FILES_MAX, COPY_ATTEMPTS_MAX, COPY_LISTED_FILES_MAX
from tidegate.text_layout import counted
from tidegate.upsert.deletions.deletion_vector import stored_path

_VERSION_DIGITS: Final = 20
_COMPACTED: Final = ".compacted.json"  # repeats the commits of several versions


@dataclass(frozen=True, slots=True)
class Between:
    """Two lakes, and the copying threads. voids: called before the removal of files needed by an
    earlier copy.
    """

    source: LakeFiles
    target: LakeFiles
    pool: ThreadPoolExecutor
    voids: Callable[[str], None]
    places: tuple[CopyPlace, CopyPlace] = field(init=False)

    def __post_init__(self) -> None:
        made = (place_of(lake.root, lake.storage_options) for lake in (self.source, self.target))
        object.__setattr__(self, "places", tuple(made))

    def copy(self, files: Iterable[tuple[str, int]]) -> Iterator[tuple[str, bool]]:
        """Copy files, (path, size); of each whether it was still there."""
        rest = iter(files)
        while some := list(islice(rest, COPY_LISTED_FILES_MAX)):
            yield from zip((path for path, _ in some), self.pool.map(self._one, some), strict=True)

    def _one(self, file: tuple[str, int]) -> bool:
        failpoint("copy_before_file")
        try:
            copy_file(*self.places, *file)
        except GoneMeanwhileError:
            return False
        return True


def copying(source: LakeFiles, target: LakeFiles, voids: Callable[[str], None]) -> Between:
    """Its pool ends with `Between.pool.shutdown`."""
    return Between(source, target, ThreadPoolExecutor(COPY_AT_ONCE_FILES_MAX, "copy"), voids)


@dataclass(slots=True)
class TableCopy:
    """The copy of one table. files, bytes: brought by this copy."""

    between: Between
    path: str
    files: int = 0
    bytes: int = 0

    def run(self, version: int | None = None, before: Copied | None = None) -> Copied | None:
        """None when there is no such table. version: the one to copy; None: the newest. before: an
        earlier copy of it.

        Raises GoneMeanwhileError when a given version can't be had any more; LakeUnavailable,
        LakeRefused.
        """
        gone = ""
        for _ in range(COPY_ATTEMPTS_MAX):
            try:
                return self._once(version, before)
            except GoneMeanwhileError as error:
                if version is not None:
                    raise
                gone = str(error)
        raise LakeRefused(
            f"its newest version needs {gone}, which isn't there",
            where=self.between.source.uri(self.path),
            remedy="see `tidegate lake check`; a snapshot reads the table anew",
        )

    def fill(self, before: Copied | None = None) -> None:
        """Bring data files alone: less is left to do between the first table's version and the last
        one's.
        """
        newest = self.newest(before)
        # If a table was made anew and has come as far, its version is copied later.
        if newest is not None and (before is None or before.version != newest):
            self._bring_files()

    def newest(self, before: Copied | None = None) -> int | None:
        """Its newest version now, by a listing from an earlier one on; None without a table."""
        store = self.between.source.store(self._log)
        start = commit_name(before.version) if before is not None else ""
        newest = newest_version(entry.name for entry in store.names(start))
        return newest if newest is not None or not start else newest_version(entry.name for entry in store.names())

    def _once(self, version: int | None, before: Copied | None) -> Copied | None:
        if version is not None and self._is_as(before, version):
            return before  # a quiet table costs a look at its newest commit
        entries = _listed(self._source, self._log)
        newest = newest_version(entries)
        if newest is None:
            return None
        version = newest if version is None else version
        if self._is_as(before, version):
            return before
        mark = self._mark(self._source, version)
        if mark is None:
            raise GoneMeanwhileError(f"{self._log}/{commit_name(version)}")
        has = self._continued(entries, version)
        files = self._bring_files()
        failpoint("copy_before_log")
        self._bring_log(entries, has, version)
        state = self._state(version)
        self._check(state, files)
        return Copied(version, state.table_id, mark)

    def _is_as(self, before: Copied | None, version: int) -> bool:
        return before is not None and before.version == version and self._mark(self._source, version) == before.mark

    # --- files --------------------------------------------------------------------------------------

    def _bring_files(self) -> set[str]:
        """Paths within the table of all the copy's files then."""
        has = {file.path: file.size for file in self._target.files(self.path) if is_data(file.path)}
        wanted = (file for file in self._source.files(self.path) if is_data(file.path))
        lacking = (file for file in wanted if has.get(file.path) != file.size)
        return has.keys() | self._bring(self.path, lacking)

    def _bring(self, folder: str, files: Iterable[File]) -> set[str]:
        """Those still there."""
        sizes: dict[str, int] = {}

        def noted() -> Iterator[tuple[str, int]]:
            for file in files:
                sizes[f"{folder}/{file.path}"] = file.size
                yield f"{folder}/{file.path}", file.size

        brought = {path for path, is_there in self.between.copy(noted()) if is_there}
        self.files += len(brought)
        self.bytes += sum(sizes[path] for path in brought)
        return {path[len(folder) + 1 :] for path in brought}

    # --- the log ------------------------------------------------------------------------------------

    def _continued(self, entries: dict[str, int], version: int) -> dict[str, int]:
        """The copy's log, the beginning of the table's: else it is removed first."""
        has = _listed(self._target, self._log)
        newest = newest_version(has)
        if newest is None:
            return has
        both = max((v for v in _versions(has) if v <= version and commit_name(v) in entries), default=None)
        same = both is None or self._mark(self._source, both) == self._mark(self._target, both)
        if same and newest <= version:
            return has
        self.between.voids(self.path)
        self._target.remove(f"{self._log}/{LAST_CHECKPOINT}")
        for name in sorted(has, reverse=True):
            if not same or _beyond(name, version):
                self._target.remove(f"{self._log}/{name}")
        return {} if not same else _listed(self._target, self._log)

    def _bring_log(self, entries: dict[str, int], has: dict[str, int], version: int) -> None:
        names = sorted(name for name in entries if name != LAST_CHECKPOINT and not _beyond(name, version))
        lacking = [File(name, entries[name]) for name in names if has.get(name) != entries[name]]
        brought = self._bring(self._log, lacking)
        if len(brought) != len(lacking):  # the log's cleanup is at it, behind a newer checkpoint
            raise GoneMeanwhileError(next(file.path for file in lacking if file.path not in brought))
        data = self.between.source.store(self._log).get(LAST_CHECKPOINT)
        hint = hinted(data)
        # A `_last_checkpoint` of a checkpoint made since the listing would be wrong in the copy, and delta-rs couldn't
        # open it.
        if data is not None and hint is not None and any(name.startswith(f"{hint:020d}.checkpoint") for name in names):
            self.between.target.store(self._log).replace(LAST_CHECKPOINT, data)

    def _state(self, version: int) -> TableState:
        """The copy as a reader has it."""
        target = self.between.target
        state = DeltaLog(target.uri(self.path), target.storage_options).state_at(version)
        if state is None:
            raise GoneMeanwhileError(f"{self._log}/{commit_name(version)}")
        return state

    def _check(self, state: TableState, files: set[str]) -> None:
        for name in live_names(self.between.target, self.path, state):
            if name not in files:
                raise GoneMeanwhileError(name)

    def _mark(self, place: CopyPlace, version: int) -> str | None:
        """The mark of a version's commit; None when there is none."""
        digest = hashlib.sha256()
        try:
            for part in place.read(f"{self._log}/{commit_name(version)}"):
                digest.update(part)
        except GoneMeanwhileError:
            return None
        return digest.hexdigest()[:32]

    @property
    def brought(self) -> str:
        """The files and bytes of this copy, for people."""
        return f"{self.path}: {counted(self.files, 'file', 'files')}, {self.bytes / 1e6:,.1f} MB"

    @property
    def _log(self) -> str:
        return f"{self.path}/{LOG}"

    @property
    def _source(self) -> CopyPlace:
        return self.between.places[0]

    @property
    def _target(self) -> CopyPlace:
        return self.between.places[1]


def live_names(lake: LakeFiles, path: str, state: TableState) -> Iterator[str]:
    """Paths within the table of all files of a version, deletion vectors' too.

    Raises LakeRefused where one lies elsewhere, as those of a shallow clone do: no copy would be
    whole by itself.
    """
    for file in state.files:
        yield file.local_path
        vector = file.deletion_vector
        if vector is not None and vector.storage_type != "i":
            try:
                yield stored_path(lake, path, vector).removeprefix(f"{path}/")
            except ValueError as error:
                raise LakeRefused(
                    f"a deletion vector of {file.local_path} isn't in the table's folder: {error}",
                    where=lake.uri(path),
                    remedy="a snapshot reads the table anew",
                ) from error


def is_data(path: str) -> bool:
    """Whether a file is data. Logs of folders in the table are left out, too: they are private
    logs, which no reader needs.
    """
    return LOG not in path.split("/")


def _listed(place: CopyPlace, log: str) -> dict[str, int]:
    """Entries of a log: name -> size."""
    return {file.path: file.size for file in place.files(log) if not file.path.endswith(_COMPACTED)}


def _versions(entries: Iterable[str]) -> list[int]:
    return [version for name in entries if (version := commit_version(name)) is not None]


def newest_version(entries: Iterable[str]) -> int | None:
    """The largest version of a log's entries; None without a commit."""
    return max(_versions(entries), default=None)


def _beyond(name: str, version: int) -> bool:
    """Whether an entry is of a later version."""
    digits = name[:_VERSION_DIGITS]
    return len(digits) == _VERSION_DIGITS and digits.isdigit() and int(digits) > version
