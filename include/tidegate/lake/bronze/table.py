"""Append segments to bronze exactly once.

In:  segments of one source in order of seq.
Out: commits of bronze/segments; where bronze ends, for the next start.

Why exactly once: a commit records its last seq as the transaction version of the source. It is made
at exactly the version after the state it was decided on (tidegate/delta/log.py), and leaves out the
rows at or below the seq in that state. If others come first (another source, upkeep), the state is
read and decided on again. If the source's transaction version has moved meanwhile, our own commit
may have done it while its answer was lost: the id of the attempt proves it. Otherwise another
writer moved it: Fenced.

It must hold: seq is dense, and each segment begins where the one before it ended (see `continues`).
A gap or an overlap is an error, never a guess.

This writer holds no files of the table: a landing costs the same whatever bronze holds.
"""

from __future__ import annotations

import errno
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.stores.store import REFUSED, disk_remedy
from tidegate.delta.table import actions
from tidegate.delta.table.arrow_types import delta_schema
from tidegate.delta.table.state import Action, Keep, TableState, no_files
from tidegate.errors import CommitConflict, Fenced, LakeRefused, LakeUnavailable, StreamCorrupt, may_pass
from tidegate.failpoint import failpoint
from tidegate.lake.bronze.checkpoints import BronzeCheckpoints
from tidegate.lake.bronze.file import added, by_day, reading, statistics, store_file
from tidegate.lake.bronze.log import BronzeFile, bronze_log, files_of, properties
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.followed import check_not_anothers, check_own
from tidegate.limits import BRONZE_BACKOFF_SECONDS, BRONZE_COMMIT_ATTEMPTS_MAX, COMMIT_ATTEMPTS_MAX
from tidegate.remedy import BRONZE_BACK
from tidegate.segments.segment import Segment
from tidegate.tables import SEGMENTS, SegmentFlag, capture_app_id
from tidegate.tables.owner import owner_app_id, owner_of

_LOOKED_BACK_SEQS: Final = 4096  # files with the newest so many segments are tried first: there may be 100,000 files
_NARROW: Final = [name for name in SEGMENTS.schema.names if name not in ("context", "payload", "day", "source")]
_WHOLE: Final = [*_NARROW, "context", "payload"]


def check_writable(lake: LakeFiles) -> None:
    """Refuse an unwritable lake. On a disk a file is made and removed, since access rights say
    nothing about root, or about free space. Raises LakeRefused, LakeUnavailable.
    """
    remedy = "set lake.path to a folder or bucket that this user may write"
    if lake.is_local:
        lake.check_known()  # not one that was moved, or a backup
        path = Path(lake.root)
        while not path.exists() and path != path.parent:
            path = path.parent
        if not path.is_dir():
            raise LakeRefused("is a file, not a folder", where=str(path), remedy=remedy)
        try:
            # Unbuffered: with a buffer, closing after a failed write fails again, and leaves the file.
            with tempfile.NamedTemporaryFile(prefix=".tidegate-", dir=path, buffering=0) as file:
                file.write(b"a full disk takes a file, and no byte of it")
        except OSError as error:
            what = f"nothing can be written in it: {error.strerror}"
            if error.errno in {*REFUSED, errno.ENOENT}:
                raise LakeRefused(what, where=str(path), remedy=remedy) from error
            raise LakeUnavailable(what, where=str(path), remedy=disk_remedy(error)) from error
        return
    bronze_log(lake).actions(0)


def _no_place(_before: Segment, _after: Segment) -> None:
    """For a source whose segments' places have no order."""


class Bronze:
    """bronze/segments as one source's writer sees it. owner: the writer's pipeline. The lake is its own from the first
    commit on.

    continues: raises StreamCorrupt if a segment's place at the source doesn't follow the place of
    the one before. Each kind of source has its own (Source.check_continues). This class checks seq
    and commit_ts itself.
    """

    def __init__(
        self,
        lake: LakeFiles,
        source: str,
        *,
        owner: str = "",
        compression: str = "zstd",
        continues: Callable[[Segment, Segment], None] = _no_place,
    ) -> None:
        self.source = source
        self.url = lake.uri(SEGMENTS.path)
        self._lake = lake
        self._owner = owner
        self._compression = compression
        self._continues = continues
        self._app_id = capture_app_id(source)
        # Capture also starts while the lake is away, so its format is asked for later (last_segments).
        self._log = DeltaLog(self.url, lake.storage_options, keep=no_files)
        self._checkpoints = BronzeCheckpoints(self._log)
        self._is_ownerless: bool | None = None  # or our own; None: not asked yet
        self._created = False  # the table existed at some time
        self._ours: int | None = None  # the seq at which bronze ended when this writer last read or moved it
        self._base = -1  # the table's version then
        self._last: Segment | None = None
        self._tries: set[str] = set()  # ids of attempts since _base

    @property
    def live_files(self) -> int:
        """The live files of all sources, at the newest checkpoint. Opening bronze reads a line for
        each.
        """
        return self._checkpoints.live_files

    @property
    def last_seq(self) -> int:
        """Newest seq of this source; 0 when there is none. Raises LakeUnavailable."""
        return self._log_state().transaction(self._app_id)

    def last_segments(self) -> list[Segment]:
        """The newest segment, after all earlier segments of its open transaction. Payload and
        context stay empty.

        [] if this source has none. Raises Fenced if the table contradicts its transaction version;
        LakeUnavailable, LakeRefused (a lake of a newer format).
        """
        self._lake.check_known()
        segments: list[Segment] = []
        for wanted, file in self._files():
            if not segments and file.max_seq != wanted:
                raise self._disagrees(file.max_seq, wanted)
            for row in self._rows_backwards(file.path):
                if not segments and row.seq != wanted:
                    raise self._disagrees(row.seq, wanted)
                segments.insert(0, row)
                if not row.flags & SegmentFlag.OPEN_AT_START:
                    self._last = segments[-1]
                    return segments
        if not segments and not self.last_seq:
            return []
        raise Fenced("bronze begins inside a transaction", where=self.source, remedy=BRONZE_BACK)

    def newest_first(self) -> Iterator[Segment]:
        """Segments with bytes, the newest first. Payload and context stay empty. Raises
        LakeUnavailable.
        """
        for _, file in self._files():
            if file.has_bytes:
                yield from (row for row in self._rows_backwards(file.path) if row.has_bytes)

    def segment(self, seq: int, *, whole: bool = False) -> Segment | None:
        """One of the newest segments; whole: with context and payload. Raises LakeUnavailable."""
        for _, file in self._files():
            if file.max_seq < seq:
                return None
            if file.min_seq > seq:
                continue
            for row in self._rows_backwards(file.path, _WHOLE if whole else _NARROW):
                if row.seq <= seq:
                    return row if row.seq == seq else None
        return None

    def append(self, segments: Sequence[Segment]) -> int:
        """Commit the segments the table lacks, in one commit. Returns the table's version.

        Raises Fenced, LakeUnavailable, LakeRefused, StreamCorrupt (a gap or overlap).
        """
        for attempt in range(COMMIT_ATTEMPTS_MAX):
            try:
                state = self._append(segments)
                break
            except LakeRefused as error:
                if not self._created:
                    raise
                raise may_pass(error, self.url) from error
            except CommitConflict as error:
                raise LakeUnavailable(error.what, where=self.url, remedy="it is tried again") from error
            except (OSError, pa.ArrowException) as error:  # of a data file
                if attempt + 1 == COMMIT_ATTEMPTS_MAX:
                    on_disk = self._lake.is_local and isinstance(error, OSError)
                    remedy = disk_remedy(error) if on_disk else "check the lake's store"
                    raise LakeUnavailable(f"a file can't be written: {error}", where=self.url, remedy=remedy) from error
                time.sleep(BRONZE_BACKOFF_SECONDS * 2**attempt)
        # Without its bytes: their memory is used again.
        self._last, self._ours = replace(segments[-1], payload=b"", context=b""), segments[-1].seq
        self._created, self._base = True, state.version
        self._tries.clear()
        self._checkpoints.note(state)
        return state.version

    def _append(self, segments: Sequence[Segment]) -> TableState:
        attempt = uuid.uuid4().hex
        self._tries.add(attempt)
        written: dict[int, list[Action]] = {}  # by the seq that they begin after

        def decide(read: TableState) -> Change | None:
            its = owner_of(read.transactions)
            if self._owner and its:
                check_own(self._lake, self._owner, its)
            claim = {owner_app_id(self._owner): 1} if not its and self._claims() else {}
            end_seq = self._checked(read)
            left = [segment for segment in segments if segment.seq > end_seq]
            if not left:
                return None
            if end_seq not in written:
                self._check_continues(end_seq, segments, left)
                written[end_seq] = [self._write(day, rows) for day, rows in by_day(left)]
                failpoint("capture_after_bronze_file")
            table = [] if read.created else _new_table()
            return Change([*table, *written[end_seq]], "WRITE", {self._app_id: left[-1].seq} | claim)

        return self._log.update(decide, attempts=BRONZE_COMMIT_ATTEMPTS_MAX, attempt=attempt)

    def _claims(self) -> bool:
        """Whether the first commit may name us as the lake's owner: in a lake of an older release only control/followed
        has the owner, and who can't read that claims nothing. Raises LakeRefused in another's.
        """
        if self._is_ownerless is None:
            self._is_ownerless = bool(self._owner) and check_not_anothers(self._lake, self._owner)
        return self._is_ownerless

    def _checked(self, read: TableState) -> int:
        """The seq at which bronze ends for this source. Raises Fenced if another writer moved it,
        LakeUnavailable.
        """
        if not read.created and (self._created or self._ours):
            raise self._gone()
        end_seq = read.transaction(self._app_id)
        if self._ours is None:
            self._ours = self._last.seq if self._last else end_seq
            self._base = read.version
        if end_seq != self._ours and not self._is_ours(read, end_seq):
            raise Fenced(
                f"another writer moved bronze from seq {self._ours} to {end_seq}",
                where=f"{self.source} in {self.url}",
                remedy="run capture of a source only once; this run stops",
            )
        return end_seq

    def _is_ours(self, read: TableState, end_seq: int) -> bool:
        """Whether only our own attempts moved the source's transaction version."""
        ends = self._ours
        for version in range(self._base + 1, read.version + 1):
            made = self._log.actions(version)
            if made is None:
                return False
            for action in made:
                if action.get("txn", {}).get("appId") == self._app_id:
                    ends = action["txn"]["version"]
                    if actions.info_of(made).get("txnId") not in self._tries:
                        return False
        return ends == end_seq

    def _check_continues(self, end_seq: int, segments: Sequence[Segment], left: Sequence[Segment]) -> None:
        before = next((segment for segment in segments if segment.seq == end_seq), self._last)
        for segment in left:
            if before is not None:
                check_continues(before, segment)
                self._continues(before, segment)
            before = segment

    def _write(self, day: date, segments: Sequence[Segment]) -> Action:
        partition = {"source": self.source, "day": day.isoformat()}
        folder = "/".join(f"{name}={value}" for name, value in partition.items())
        path = f"{folder}/{segments[0].seq:012d}-{uuid.uuid4().hex}.parquet"
        size = store_file(self._lake, f"{SEGMENTS.path}/{path}", segments, self._compression)
        return actions.add(added(path, size, partition, statistics(segments)), data_change=True)

    def _files(self) -> Iterator[tuple[int, BronzeFile]]:
        """(the source's transaction version, file), the newest file first. Files are read in
        batches.
        """
        upto, span = None, _LOOKED_BACK_SEQS
        bottom = self.last_seq
        while bottom > 0:
            bottom = max(0, bottom - span)
            with self._reached():
                some = bronze_log(self._lake, self._between(bottom, upto)).state()
            state = self._log_state(some)
            for file in reversed(files_of(state)):
                yield state.transaction(self._app_id), file
            upto, span = bottom, 8 * span

    def _between(self, bottom: int, upto: int | None) -> Keep:
        """A filter: this source's files that end in (bottom, upto]."""

        def keep(add: Mapping[str, Any]) -> bool:
            if add["partitionValues"]["source"] != self.source:
                return False
            ends = BronzeFile.of(add).max_seq
            return ends > bottom and (upto is None or ends <= upto)

        return keep

    def _rows_backwards(self, path: str, columns: Sequence[str] = _NARROW) -> Iterator[Segment]:
        """Segments of one file, the newest first, in batches: upkeep may have made the file large."""
        empty: dict[str, Any] = {"source": self.source, "context": b"", "payload": b""}
        with self._reached(), reading(self._lake, path) as parquet:
            for group in reversed(range(parquet.num_row_groups)):
                rows = parquet.read_row_group(group, columns=columns, use_threads=False).to_pylist()
                for row in sorted(rows, key=itemgetter("seq"), reverse=True):
                    yield Segment.from_row(empty | row)

    def _log_state(self, state: TableState | None = None) -> TableState:
        """The newest state. A table that existed can't be gone: raises LakeUnavailable."""
        with self._reached():
            state = state or self._log.state()
        if not state.created and self._created:
            raise self._gone()
        self._created = state.created
        return state

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Turns the store's errors into LakeUnavailable."""
        try:
            yield
        except LakeRefused as error:
            raise may_pass(error, self.url) from error
        except OSError as error:
            raise LakeUnavailable(f"can't be read: {error}", where=self.url, remedy="check the lake's store") from error

    def _gone(self) -> LakeUnavailable:
        """Never begin anew where a table was: an unmounted disk looks just like a missing table."""
        return LakeUnavailable("isn't there any more", where=self.url, remedy="bring the lake back")

    def _disagrees(self, ends: int, wanted: int) -> Fenced:
        return Fenced(
            f"bronze ends at seq {ends}, its application transaction says {wanted}",
            where=f"{self.source} in {self.url}",
            remedy=BRONZE_BACK,
        )


def _new_table() -> list[Action]:
    """The first actions of the table's log. Its first segments come in the same commit."""
    about = actions.metadata(
        delta_schema(SEGMENTS.schema),
        properties(0),
        partition_columns=SEGMENTS.partition_by,
        description=SEGMENTS.doc,
    )
    return [actions.protocol(()), about]


def check_continues(before: Segment, after: Segment) -> None:
    """Refuse a gap or an overlap in seq and in commit_ts. Raises StreamCorrupt.

    A segment's commit_ts goes on where the last one's stood, for every kind of source. Segments of
    another capture may skip transactions.
    """
    if after.seq != before.seq + 1:
        raise StreamCorrupt(f"segment {after.seq} after {before.seq}", where=after.where, remedy="restart capture")
    if after.prev_commit_ts != before.resolved_ts:
        raise StreamCorrupt(
            f"goes on after commit_ts {after.prev_commit_ts}, bronze ends at {before.resolved_ts} ({before.where})",
            where=after.where,
            remedy="another capture went on in bronze: move this one's value log away and restart it",
        )
