"""`tidegate erase`: a person's rows of one table leave the lake, and a line says what was done and what wasn't.

In:  a pipeline, its lake, the source's address, an Order.
Out: Erased; or an error, before anything is changed where it says why rows can't be erased.

In this order, so every step is safe beside capture, and safe to be killed in:
1. The table can be erased from (reach.py), and the source has no row that the condition is true of.
2. Apply has come past that: the newest cut has all that the source had in its log by then.
3. bronze is looked through for the keys; the source has none of them, and silver neither.
4. bronze's segments and chunks lose the rows, a commit for each file. The old files are still there: an apply that
   planned with them reads them.
5. Under apply's lease: silver keeps its live rows alone, and dead files of bronze are deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from tidegate.conditions.condition_text import read_condition
from tidegate.conditions.model import Condition
from tidegate.config import Pipeline
from tidegate.delta.lease import Lease
from tidegate.erase.chunk_rows import ChunkRows
from tidegate.erase.dead_files import delete_dead
from tidegate.erase.kept_keys import KeptKeys
from tidegate.erase.named_keys import named_keys
from tidegate.erase.reach import Reach, reach_of
from tidegate.erase.segment_rows import SegmentRows
from tidegate.erase.silver_past import SilverPast
from tidegate.erase.source_asked import check_condition, check_keys
from tidegate.erase.subject import Subject
from tidegate.errors import LakeRefused, LeaseHeld, UsageError
from tidegate.failpoint import failpoint
from tidegate.lake.bronze.log import BronzeLog
from tidegate.lake.files import LakeFiles
from tidegate.lake.leases import take_lease
from tidegate.lake.rebuild import SCRATCH
from tidegate.lake.silver import STAGING
from tidegate.limits import ERASE_LEASE_POLL_SECONDS
from tidegate.mysql.connection import ConnectionInfo
from tidegate.tables import CHUNKS, SEGMENTS
from tidegate.upsert.file_layout import FileLayout
from tidegate.upsert.rewrite import live_rows
from tidegate.verify.cut import LakeReader
from tidegate.verify.source_side import SourceSide

_JOBS: Final = ("apply", "rebuild")  # that read what is deleted, or write beside it


@dataclass(frozen=True, slots=True)
class Order:
    """table: database.table at the source. where: the condition. wait_seconds: for apply to come so far, and to end."""

    table: str
    where: str
    wait_seconds: float = 600.0

    @property
    def condition(self) -> Condition:
        """Raises UsageError."""
        try:
            return read_condition(self.where)
        except ValueError as error:
            raise UsageError(str(error), remedy="look at --where") from None


@dataclass(frozen=True, slots=True)
class Erased:
    """Counts of what was done; what is left, a phrase each."""

    keys: int
    segment_rows: int
    segment_files: int
    chunk_rows: int
    chunk_files: int
    silver: SilverPast
    deleted: int
    decoded_bytes: int
    left: tuple[str, ...]

    @property
    def line(self) -> str:
        """For control/actions: no value of a row is in it."""
        done = (
            f"{self.keys} keys; bronze: {self.segment_rows} logged rows in {self.segment_files} files,"
            f" {self.chunk_rows} rows of snapshots in {self.chunk_files} files, {self.deleted} dead files deleted;"
            f" silver at version {self.silver.version}: {self.silver.rewritten} files purged, {self.silver.deleted}"
            f" deleted, {self.silver.commits} entries of its log without values, {self.silver.cuts} rows of older cuts"
        )
        return f"{done}; left: {'; '.join(self.left)}" if self.left else done


@dataclass(slots=True)
class Erasure:
    """One run."""

    pipeline: Pipeline
    lake: LakeFiles
    info: Callable[[str], ConnectionInfo]
    order: Order
    report: Callable[[str], None]

    def run(self) -> Erased:
        """Raises UsageError, LakeRefused and others before anything is changed; LeaseHeld, CommitConflict."""
        reach = reach_of(self.pipeline, self.lake, self.order.table)
        subject = Subject(self.order.condition, reach.newest)
        with ExitStack() as held:
            held.enter_context(self._lease(self.pipeline.pipeline, "maintain"))
            # Who reads a snapshot has rows in its memory, and lands them later.
            held.enter_context(self._lease(reach.table.source, "snapshot"))
            side = SourceSide(self.info(reach.table.source), self.pipeline.tables.columns_of)
            held.callback(side.close)
            self._check_past(side, reach, subject)
            segments, chunks = self._bronze(reach, subject)
            log = BronzeLog.load(self.lake)
            assert log is not None, "the table has a cut"
            files = log.files().get(reach.table.source, [])
            chunks.look()
            segments.look(files)
            kept = KeptKeys(self.lake, reach.newest)
            subject.keys |= kept.keys()
            subject.close()
            self.report(f"{len(subject.keys)} keys, of {segments.bytes / 1e6:,.1f} MB of log")
            check_keys(side, reach.newest, subject.keys)
            self._check_silver(reach, subject)
            affected = segments.affected(files)
            segments.rows = 0  # of the trial
            kept.note(subject.keys)
            failpoint("erase_before_chunks")
            chunks.erase()
            segments.erase(log, affected)
            self.report(f"bronze: {segments.rows} rows of {segments.files} files, {chunks.rows} rows of snapshots")
            done = self._past(reach, segments, chunks, held)
            kept.forget()
            return done

    def _past(self, reach: Reach, segments: SegmentRows, chunks: ChunkRows, held: ExitStack) -> Erased:
        """Older versions of everything go, while nobody reads them."""
        leases = [held.enter_context(self._lease(self.pipeline.pipeline, job)) for job in _JOBS]
        for folder in (STAGING, SCRATCH):  # of killed applies and rebuilds
            self.lake.delete_folder(folder)
        silver = SilverPast(self.lake, self.pipeline, reach.logical, reach.path)
        silver.forget(leases)
        dead = [delete_dead(self.lake, table.path) for table in (SEGMENTS, CHUNKS)]
        left = list[str]()
        if young := sum(files.young for files in dead):
            left.append(f"{young} files of bronze without a commit, an hour old at most: run it again later")
        for path, count in named_keys(self.lake, reach.table, segments.subject.keys).items():
            left.append(f"{count} bounds of ranges in {path} name a key")
        return Erased(
            len(segments.subject.keys),
            segments.rows,
            segments.files,
            chunks.rows,
            chunks.files,
            silver,
            sum(files.deleted for files in dead),
            segments.bytes,
            tuple(left),
        )

    def _check_past(self, side: SourceSide, reach: Reach, subject: Subject) -> None:
        """The source has no such row, and the newest cut has everything that its log had then."""
        check_condition(side, reach.newest, subject.condition)
        source = reach.table.source
        reader = LakeReader(self.lake.root, self.lake.storage_options, self.pipeline.pipeline, {source: side.server()})
        cut = reader.wait({source: side.position()}, self.order.wait_seconds)
        if reach.logical not in cut.tables:
            raise UsageError("its silver isn't complete any more", where=reach.logical, remedy="see `tidegate status`")

    def _check_silver(self, reach: Reach, subject: Subject) -> None:
        """Raises LakeRefused while silver has a row with one of the keys."""
        kept = self.pipeline.tables.columns_of(*reach.table.pair)
        key = reach.newest.silver_key
        comments = {column.name: column.comment for column in reach.newest.columns}
        if not all(kept.has_plain(name, comments[name], of_key=True) for name in reach.newest.key_names):
            return  # masked: the cut says that silver equals the source
        state = self.lake.log(reach.path).state()
        layout = FileLayout.of(state, key)
        narrow = replace(layout, schema=layout.key_schema)
        for file in state.files:
            for rows in live_rows(self.lake, reach.path, file, narrow):
                for batch in rows.to_batches():
                    if np.any(subject.has_key(_as_decoded(batch, key), reach.newest)):
                        raise LakeRefused(
                            "silver still has rows of the person, and the source hasn't",
                            where=reach.logical,
                            remedy="see `tidegate verify --repair`; then run this again",
                        )

    def _bronze(self, reach: Reach, subject: Subject) -> tuple[SegmentRows, ChunkRows]:
        packing = self.pipeline.capture.compression
        segments = SegmentRows(self.lake, reach.table, reach.versions, subject, packing)
        return segments, ChunkRows(self.lake, reach.table, reach.versions, subject)

    @contextmanager
    def _lease(self, of: str, job: str) -> Iterator[Lease]:
        """A job's lease, once nobody has it. of: a pipeline or a source. Raises LeaseHeld when somebody has it all
        the time.
        """
        until = time.monotonic() + self.order.wait_seconds
        is_said = False
        while True:
            try:
                lease = take_lease(self.lake, of, job, report=self.report)
                break
            except LeaseHeld as error:
                if time.monotonic() >= until:
                    raise
                if not is_said:
                    self.report(
                        f"waits for {job} of {of}: {error.what}; to go on sooner, pause its DAG until the run ends"
                    )
                is_said = True
                time.sleep(ERASE_LEASE_POLL_SECONDS)
        with lease:
            yield lease


def _as_decoded(batch: pa.RecordBatch, key: tuple[str, ...]) -> pa.RecordBatch:
    return batch.select(list(key))
