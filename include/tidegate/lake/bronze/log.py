"""bronze/segments as its Delta log tells it: files with their bounds, and upkeep's commits.

In:  a lake.
Out: BronzeFiles in order of seq; commits taking files out, beside an appending capture.

Such a commit is decided on the version directly before it, so each file it takes out is still
there when it is made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Any, Final

from tidegate.delta.checkpoints import write as checkpoint_write
from tidegate.delta.cleaning.log_cleanup import clean_up
from tidegate.delta.cleaning.vacuum import unneeded
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.properties import set_properties
from tidegate.delta.table.actions import moved, now_ms
from tidegate.delta.table.log_retention import tombstones_ms
from tidegate.delta.table.state import NO_TABLE, Action, Keep, TableState
from tidegate.errors import CommitConflict, LakeRefused, LakeUnavailable
from tidegate.lake.files import LakeFiles
from tidegate.limits import BRONZE_COMMIT_ATTEMPTS_MAX, BRONZE_REMOVED_SECONDS_MIN
from tidegate.remedy import BRONZE_BACK
from tidegate.tables import SEGMENTS

APPEND_ONLY: Final = "delta.appendOnly"


@dataclass(frozen=True, slots=True)
class BronzeFile:
    """A live file of bronze/segments. path: as in the log. min_*, max_*: over its segments.

    begin_ts: prev_commit_ts of its first segment. Every later commit_ts no earlier file has is in
    this file or a later one. modified_ms: Unix milliseconds. has_bytes: False if all its segments
    are heartbeats at one place. first_max_ts: the smallest max_commit_ts of its segments; of a Pump
    it never falls, so it is the first segment's. min_commit_ts: 0 if a segment has no transaction.
    """

    path: str
    source: str
    day: date
    bytes: int
    rows: int
    min_seq: int
    max_seq: int
    begin_ts: int
    max_commit_ts: int
    resolved_ts: int
    modified_ms: int
    has_bytes: bool = True
    first_max_ts: int = 0
    min_commit_ts: int = 0

    @property
    def partition(self) -> dict[str, str]:
        return {"source": self.source, "day": self.day.isoformat()}

    @property
    def top_ts(self) -> int:
        """The largest commit_ts in it, also of a transaction still open at its end."""
        return max(self.resolved_ts, self.max_commit_ts)

    @classmethod
    def of(cls, add: Mapping[str, Any]) -> BronzeFile:
        """From an `add` action's body. Raises LakeRefused for one without statistics, or with segments taken out."""
        try:
            stats = json.loads(add["stats"])
            low, high = stats["minValues"], stats["maxValues"]
            file = cls(
                path=add["path"],
                source=add["partitionValues"]["source"],
                day=date.fromisoformat(add["partitionValues"]["day"]),
                bytes=add["size"],
                rows=stats["numRecords"],
                min_seq=low["seq"],
                max_seq=high["seq"],
                begin_ts=low["prev_commit_ts"],
                max_commit_ts=high["max_commit_ts"],
                resolved_ts=high["resolved_ts"],
                modified_ms=add["modificationTime"],
                has_bytes=high["end_pos"] > low["start_pos"],
                first_max_ts=low["max_commit_ts"],
                min_commit_ts=low.get("min_commit_ts", 0),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise _foreign(f"{add.get('path')} has no statistics of its segments in the log") from error
        if add.get("deletionVector"):
            raise _foreign(f"segments of {file.path} were deleted by a deletion vector")
        # Seqs are dense, so the statistics alone show whether one is missing or there twice.
        if file.rows != file.max_seq - file.min_seq + 1:
            span = f"{file.min_seq} to {file.max_seq}"
            raise _foreign(f"{file.path} has {file.rows} segments instead of all from {span}")
        return file


def _foreign(what: str) -> LakeRefused:
    remedy = (
        "bronze/segments is written by capture and maintain alone; restore it from a copy, or start a new lake path"
    )
    return LakeRefused(what, where=SEGMENTS.path, remedy=remedy)


def bronze_log(lake: LakeFiles, keep: Keep | None = None) -> DeltaLog:
    """A new log of bronze/segments. keep: which files its states hold; None: all, 250 MB for
    100,000 files.
    """
    lake.check_known()
    return DeltaLog(lake.uri(SEGMENTS.path), lake.storage_options, keep=keep)


def files_of(state: TableState) -> list[BronzeFile]:
    """The live files in order of source and seq. Raises LakeRefused for one without statistics."""
    return sorted((BronzeFile.of(file.action) for file in state.files), key=lambda file: (file.source, file.min_seq))


class BronzeFiles:
    """The live files, for repeated looks: each file's statistics are read once."""

    def __init__(self, log: DeltaLog) -> None:
        self._log = log
        self._version = NO_TABLE
        self._known: dict[str, BronzeFile] = {}
        self._by_source: dict[str, list[BronzeFile]] = {}

    def by_source(self) -> Mapping[str, list[BronzeFile]]:
        """In order of seq. Raises LakeUnavailable, LakeRefused."""
        state = self._log.state()
        if state.version != self._version:
            paths = (file.action["path"] for file in state.files)
            known = [self._known.get(path) for path in paths]
            read = [cached or BronzeFile.of(file.action) for cached, file in zip(known, state.files, strict=True)]
            self._known = {file.path: file for file in read}
            self._by_source = {}
            for bronze_file in sorted(read, key=lambda file: (file.source, file.min_seq)):
                self._by_source.setdefault(bronze_file.source, []).append(bronze_file)
            self._version = state.version
        return self._by_source


class BronzeLog:
    """The newest version of bronze/segments, as upkeep has read it."""

    def __init__(self, lake: LakeFiles, log: DeltaLog, state: TableState) -> None:
        self.lake = lake
        self._log = log
        self._state = state

    @classmethod
    def load(cls, lake: LakeFiles) -> BronzeLog | None:
        """None before bronze exists. Raises LakeUnavailable."""
        log = bronze_log(lake)
        state = log.state()
        return cls(lake, log, state) if state.created else None

    @property
    def version(self) -> int:
        return self._state.version

    def files(self) -> dict[str, list[BronzeFile]]:
        """Per source, in order of seq. Raises LakeRefused when a segment is missing or there twice."""
        return checked(files_of(self._state), self._log.place)

    def commit(self, removes: Sequence[BronzeFile], adds: Sequence[Mapping[str, Any]], *, data_change: bool) -> int:
        """Replace files by `add` bodies in one commit; the new version.

        data_change: segments go; delta.appendOnly is lifted for it. Raises CommitConflict when one
        of the files went meanwhile or others came first every time, LakeUnavailable.
        """

        def decide(read: TableState) -> Change:
            # Asked of the version that this commit follows. Capture's appends leave these files in place. If another
            # upkeep took one of them, it has packed or removed its segments already.
            gone = [read.live[file.path, ""] for file in removes if (file.path, "") in read.live]
            if len(gone) < len(removes):
                raise CommitConflict("another commit took files of it out", where=self._log.place)
            lifted = [_configured(read, {APPEND_ONLY: "false"})] if data_change else []
            made = [*lifted, *moved(gone, adds, data_change=data_change)]
            return Change(made, "DELETE" if data_change else "OPTIMIZE")

        self._state = self._log.update(decide, attempts=BRONZE_COMMIT_ATTEMPTS_MAX)
        return self.version

    def properties(self) -> dict[str, str]:
        return self._state.configuration

    def set_properties(self, wanted: Mapping[str, str]) -> None:
        """Change the differing ones. A capture appending meanwhile tries again. Raises
        CommitConflict, LakeUnavailable.
        """
        self._state = set_properties(self._log, wanted)

    def vacuum(self, *, dry_run: bool) -> list[str]:
        """Remove the files that have not been in the table for delta.deletedFileRetentionDuration.

        Returns their paths relative to the table; dry_run: only lists them. Raises LakeUnavailable.
        """
        try:
            written_ms = self.lake.written_ms(SEGMENTS.path)
        except OSError as error:
            raise LakeUnavailable(f"can't be listed: {error}", where=self._log.place) from error
        gone = unneeded(self._log, written_ms, keep_seconds=tombstones_ms(self.properties()) / 1000)
        return gone if dry_run else _deleted(self.lake, gone)

    def checkpoint(self) -> None:
        """A checkpoint of the newest version; entries older than delta.logRetentionDuration leave
        the log.
        """
        state, store = self._log.state(), self._log.store
        checkpoint_write.write(store, state.version, now_ms=now_ms(), files=len(state.files))
        while clean_up(store, state.configuration, state.features, now_ms=now_ms()):
            continue


def properties(run_for_seconds: int) -> dict[str, str]:
    """The wanted table properties of bronze. run_for_seconds: how long a run of apply may use its
    plan.
    """
    # Twice an apply's run: a job whose plan has a removed file can still read it to its end.
    hours = -(-max(BRONZE_REMOVED_SECONDS_MIN, 2 * run_for_seconds) // 3600)
    kept = f"interval {hours} hours"
    return {
        APPEND_ONLY: "true",
        "delta.deletedFileRetentionDuration": kept,
        "delta.logRetentionDuration": kept,
    }


def _configured(read: TableState, changed: Mapping[str, str]) -> Action:
    return {"metaData": {**read.metadata, "configuration": read.configuration | dict(changed)}}


def _deleted(lake: LakeFiles, paths: Sequence[str]) -> list[str]:
    """Remove files of the table, folder by folder: an object store takes many names in a request."""
    folders: dict[str, list[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder, []).append(name)
    for folder, names in folders.items():
        lake.store(f"{SEGMENTS.path}/{folder}".rstrip("/")).delete(names)
    return list(paths)


def checked(files: Sequence[BronzeFile], where: str) -> dict[str, list[BronzeFile]]:
    """Per source, in order of seq, without gaps or overlaps. Raises LakeRefused."""
    by_source: dict[str, list[BronzeFile]] = {}
    for file in sorted(files, key=lambda file: (file.source, file.min_seq)):
        by_source.setdefault(file.source, []).append(file)
    for source, own_files in by_source.items():
        for file in own_files:
            if file.rows != file.max_seq - file.min_seq + 1:
                raise _not_dense(where, source, f"{file.path} has {file.rows} segments", file.min_seq, file.max_seq)
        # An overlap would apply rows twice, and a gap would lose some. Both stop every reader of bronze.
        for before, after in pairwise(own_files):
            if after.min_seq != before.max_seq + 1:
                raise _not_dense(where, source, f"{after.path} follows {before.path}", before.max_seq, after.min_seq)
    return by_source


def _not_dense(where: str, source: str, what: str, low: int, high: int) -> LakeRefused:
    return LakeRefused(
        f"bronze of {source} has a gap: {what} (seq {low} and {high})",
        where=where,
        remedy=BRONZE_BACK,
    )
