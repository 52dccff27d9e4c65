"""All places of a lake with a person's rows: bronze's segments and chunks, silver, the changelog.

In:  a table's reach, its subject.
Out: the subject's keys, of all places together; each place without the rows; a line of counts, without a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tidegate.commit_ts import time_text
from tidegate.config import Pipeline
from tidegate.delta.leases.lease import Lease
from tidegate.erase.changelog_rows import ChangelogRows
from tidegate.erase.chunk_rows import ChunkRows
from tidegate.erase.dead_files import delete_dead
from tidegate.erase.in_silver import SubjectInSilver
from tidegate.erase.kept_keys import KeptKeys
from tidegate.erase.named_keys import named_keys
from tidegate.erase.older_versions import OlderVersions
from tidegate.erase.reach import Reach
from tidegate.erase.segment_rows import SegmentRows
from tidegate.erase.silver_past import SilverPast
from tidegate.erase.subject import Subject
from tidegate.errors import UsageError
from tidegate.lake.bronze.log import BronzeFile
from tidegate.lake.files import LakeFiles
from tidegate.lake.silver.silver_tables import renamed_in
from tidegate.tables import CHUNKS, SEGMENTS
from tidegate.tables.form import Table
from tidegate.text_layout import counted


@dataclass(slots=True)
class SubjectPlaces:
    """past: of silver. changelog: None where the lake has none. deleted: files of bronze. left: a phrase each."""

    lake: LakeFiles
    reach: Reach
    subject: Subject
    segments: SegmentRows
    chunks: ChunkRows
    silver: SubjectInSilver
    past: SilverPast
    changelog: ChangelogRows | None
    deleted: int = 0
    left: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, pipeline: Pipeline, lake: LakeFiles, reach: Reach, subject: Subject) -> SubjectPlaces:
        compression = pipeline.capture.compression
        segments = SegmentRows(lake, reach.table, reach.versions, subject, compression, reach.known)
        chunks = ChunkRows(lake, reach.table, reach.versions, subject)
        names = renamed_in(lake.log(reach.path).state())
        silver = SubjectInSilver(lake, reach.path, reach.logical, subject, reach.plain, names)
        past = SilverPast(lake, pipeline, reach.logical, silver, OlderVersions(lake, reach.path))
        changes = None
        if reach.changelog is not None:
            older = OlderVersions(lake, reach.changelog.path)
            changes = ChangelogRows(lake, reach.changelog, reach.table, reach.versions, subject, older)
        return cls(lake, reach, subject, segments, chunks, silver, past, changes)

    def look(self, files: Sequence[BronzeFile], kept: KeptKeys) -> None:
        """Learn all keys. files: bronze's. kept: of an erasure that was killed. Raises UsageError, LakeRefused,
        SilverUnlike.
        """
        self.past.check_published()
        self._check_begin(min((file.begin_ts for file in files), default=0))
        self.subject.upto_ts = max((file.top_ts for file in files), default=0)
        self.chunks.look()
        self.segments.look(files)
        self.silver.look()
        self.subject.keys |= kept.keys()
        self.subject.close()
        if count := self.segments.texts:
            self.left.append(f"{counted(count, 'statement', 'statements')} in the place of rows of other tables")
        if count := len(self.subject.unsure):
            keys = counted(count, "key", "keys")
            what = "without a column of the condition: name the person's rows by their key"
            self.left.append(f"{keys} in partial images {what}")

    def forget(self, leases: Sequence[Lease]) -> None:
        """After bronze: remove rows of the past, and older versions of everything, while no job reads them."""
        self.past.forget(leases)
        if self.changelog is not None:
            self.changelog.erase()
            self.changelog.older.begin()
            self.changelog.older.forget(leases)
        dead = delete_dead(self.lake, SEGMENTS.path), delete_dead(self.lake, CHUNKS.path)
        self.deleted = dead[0].deleted + dead[1].deleted
        if young := dead[0].young + dead[1].young:
            self.left.append(f"{young} files of bronze without a commit, an hour old at most: run it again later")
        for path, count in named_keys(self.lake, self.reach.table, self.subject.keys).items():
            self.left.append(f"{count} bounds of ranges in {path} name a key")

    @property
    def bronze_line(self) -> str:
        return (
            f"{self.segments.rows} logged rows in {self.segments.files} files,"
            f" {self.chunks.rows} rows of snapshots in {self.chunks.files} files"
        )

    @property
    def line(self) -> str:
        """Counts of what was done, and what is left."""
        parts = [f"bronze: {self.bronze_line}, {self.deleted} dead files deleted", f"silver {self.past.line}"]
        if self.changelog is not None:
            parts.append(f"changelog {self.changelog.line}")
        if self.left:
            parts.append(f"left: {'; '.join(self.left)}")
        return "; ".join(parts)

    @property
    def certified(self) -> dict[str, Any]:
        """For a certificate: new files, the first version of each table without rows of the subject; no value."""
        bronze: list[tuple[Table, SegmentRows | ChunkRows]] = [(SEGMENTS, self.segments), (CHUNKS, self.chunks)]
        # As forget() has read them: the certificate needs neither later versions nor a lake that answers.
        versions = {table.path: self.lake.log(table.path).known.version for table, _ in bronze}
        versions[self.past.older.path] = self.past.older.version
        if self.changelog is not None:
            versions[self.changelog.older.path] = self.changelog.older.version
        return {
            "table": self.reach.newest.name,
            "keys": len(self.subject.keys),
            "rows_of_the_log": self.segments.rows,
            "rows_of_snapshots": self.chunks.rows,
            "rows_of_the_past": self.past.ended,
            "first_versions_without_them": versions,
            "files_written": [f"{table.path}/{path}" for table, rows in bronze for path in rows.written],
            "files_deleted": self.deleted + self.past.older.deleted,
            "not_reached": list(self.left),
        }

    def _check_begin(self, begin_ts: int) -> None:
        """Silver's past and a changelog may be older than bronze. Raises UsageError."""
        has_older = self.reach.versions[0].commit_ts < begin_ts and self.silver.has_past
        if self.changelog is not None and self.changelog.first_ts < begin_ts:
            has_older = True
            named = self.subject.named
            if named is None:
                names = " AND ".join(f"{name} = ..." for name in self.reach.newest.key_names)
                raise UsageError(
                    f"its changelog has changes from before {time_text(begin_ts)}, where bronze begins",
                    where=self.reach.logical,
                    remedy=f"name the rows by their key alone: {names}",
                )
            self.subject.keys |= named
        if has_older:
            since = f"before {time_text(begin_ts)}, where bronze begins"
            self.left.append(f"rows under other keys, if an update gave them these keys {since}")
