"""bronze/segments as upkeep sees it: its files with their bounds, and commits that take files out.

In:  a lake.
Out: BronzeFiles in order of seq; commits by delta-rs beside a capture that appends.

Commits that take files out are those of replace_files: every file that one removes is still there when it is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction

from tidegate.errors import CommitConflict, LakeRefused, LakeUnavailable
from tidegate.lake.delta_log import delta_log
from tidegate.lake.files import LakeFiles
from tidegate.lake.replace_files import removed, replace_files
from tidegate.limits import BRONZE_COMMIT_ATTEMPTS_MAX, BRONZE_REMOVED_SECONDS_MIN
from tidegate.tables import SEGMENTS

APPEND_ONLY: Final = "delta.appendOnly"


@dataclass(frozen=True, slots=True)
class BronzeFile:
    """A live file of bronze/segments. path: as the log has it. min_*, max_*: over its segments.

    begin_ts: prev_commit_ts of its first segment: every commit_ts above it that isn't in an earlier file is in this
    one or after it. modified_ms: Unix milliseconds.
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

    @property
    def partition(self) -> dict[str, str]:
        return {"source": self.source, "day": self.day.isoformat()}


class BronzeLog:
    """The newest version of bronze/segments, as loaded."""

    def __init__(self, lake: LakeFiles, table: DeltaTable) -> None:
        self.lake = lake
        self._table = table
        self._log = delta_log(lake.uri(SEGMENTS.path), lake.storage_options)

    @classmethod
    def load(cls, lake: LakeFiles) -> BronzeLog | None:
        """None before bronze exists. Raises LakeUnavailable."""
        try:
            return cls(lake, DeltaTable(lake.uri(SEGMENTS.path), storage_options=dict(lake.storage_options)))
        except TableNotFoundError:
            return None
        except (DeltaError, OSError) as error:
            raise LakeUnavailable(f"can't be read: {error}", where=_where(lake), remedy="check the store") from error

    @property
    def version(self) -> int:
        return int(self._table.version())

    def files(self) -> dict[str, list[BronzeFile]]:
        """Per source, in order of seq. Raises LakeRefused when a segment is missing or there twice."""
        return checked(files_of(self._table), _where(self.lake))

    def commit(self, removes: Sequence[BronzeFile], adds: Sequence[AddAction], *, data_change: bool) -> int:
        """Replace files in one commit; the new version. Raises CommitConflict, LakeUnavailable."""
        gone = [removed(file.path, file.bytes, file.partition, data_change=data_change) for file in removes]
        replace_files(self._table, self._log, gone, adds, list(SEGMENTS.partition_by))
        return self.version

    def properties(self) -> dict[str, str]:
        found: dict[str, str] = self._table.metadata().configuration
        return found

    def set_properties(self, wanted: Mapping[str, str]) -> None:
        """Change what differs. A capture that appends meanwhile tries again. Raises CommitConflict."""
        there = self.properties()
        changed = {name: value for name, value in wanted.items() if there.get(name) != value}
        if not changed:
            return
        for _ in range(BRONZE_COMMIT_ATTEMPTS_MAX):
            try:
                self._table.alter.set_table_properties(changed)
            except CommitFailedError:
                self._table.update_incremental()
            except (DeltaError, OSError) as error:
                raise LakeUnavailable(f"properties can't be set: {error}", where=_where(self.lake)) from error
            else:
                self._table.update_incremental()
                return
        raise CommitConflict("other commits came first every time", where=_where(self.lake))

    def vacuum(self, *, dry_run: bool) -> list[str]:
        """Remove files that are out of the table, or never were in it, for delta.deletedFileRetentionDuration."""
        try:
            gone: list[str] = self._table.vacuum(dry_run=dry_run, full=True)
            if not dry_run:
                self._table.update_incremental()
        except (CommitFailedError, DeltaError, OSError) as error:
            raise LakeUnavailable(f"VACUUM failed: {error}", where=_where(self.lake)) from error
        return gone

    def checkpoint(self) -> None:
        """A checkpoint of this version; log entries that are older than delta.logRetentionDuration go."""
        try:
            self._table.create_checkpoint()
            self._table.cleanup_metadata()
        except (DeltaError, OSError) as error:
            raise LakeUnavailable(f"can't be checkpointed: {error}", where=_where(self.lake)) from error


def properties(run_for_seconds: int) -> dict[str, str]:
    """Table properties that bronze is to have. run_for_seconds: how long an apply may go on with what it planned."""
    hours = -(-max(BRONZE_REMOVED_SECONDS_MIN, 2 * run_for_seconds) // 3600)
    kept = f"interval {hours} hours"
    return {
        APPEND_ONLY: "true",
        "delta.deletedFileRetentionDuration": kept,
        "delta.logRetentionDuration": kept,
    }


def files_of(table: DeltaTable) -> list[BronzeFile]:
    """Live files of a loaded version, from its log alone. Raises LakeRefused for one without statistics."""
    actions = pa.table(table.get_add_actions(flatten=True))
    names = {
        "path": "path",
        "source": "partition.source",
        "day": "partition.day",
        "bytes": "size_bytes",
        "rows": "num_records",
        "min_seq": "min.seq",
        "max_seq": "max.seq",
        "begin_ts": "min.prev_commit_ts",
        "max_commit_ts": "max.max_commit_ts",
        "resolved_ts": "max.resolved_ts",
        "modified_ms": "modification_time",
    }
    absent = [name for name in names.values() if name not in actions.column_names]
    columns = [] if absent else [actions.column(name).to_pylist() for name in names.values()]
    found = [BronzeFile(*cells) for cells in zip(*columns, strict=True)]
    odd = next((file for file in found if None in (file.rows, file.min_seq, file.max_seq, file.begin_ts)), None)
    if (absent and actions.num_rows) or odd:
        raise LakeRefused(
            f"{odd.path if odd else 'a file'} has no statistics of its segments in the log",
            where=str(table.table_uri),
            remedy="bronze/segments is written by capture and maintain alone; restore it",
        )
    return found


def checked(files: Sequence[BronzeFile], where: str) -> dict[str, list[BronzeFile]]:
    """Per source in order of seq, dense. Raises LakeRefused."""
    by_source: dict[str, list[BronzeFile]] = {}
    for file in sorted(files, key=lambda file: (file.source, file.min_seq)):
        by_source.setdefault(file.source, []).append(file)
    for source, mine in by_source.items():
        for file in mine:
            if file.rows != file.max_seq - file.min_seq + 1:
                raise _not_dense(where, source, f"{file.path} has {file.rows} segments", file.min_seq, file.max_seq)
        for before, after in pairwise(mine):
            if after.min_seq != before.max_seq + 1:
                raise _not_dense(where, source, f"{after.path} follows {before.path}", before.max_seq, after.min_seq)
    return by_source


def _not_dense(where: str, source: str, what: str, low: int, high: int) -> LakeRefused:
    return LakeRefused(
        f"bronze of {source} isn't dense: {what} (seq {low} and {high})",
        where=where,
        remedy="restore bronze/segments from a copy, or start a new lake path",
    )


def _where(lake: LakeFiles) -> str:
    return lake.uri(SEGMENTS.path)
