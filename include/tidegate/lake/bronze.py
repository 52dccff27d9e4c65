"""Append segments to bronze exactly once.

In:  segments of one source in order of seq.
Out: commits of bronze/segments; where bronze ends, for the next start.

Why exactly once: delta-rs records an application transaction but doesn't enforce it. So the table is loaded, its
version for this source read, rows at or below it are left out, and the commit is made through that same
snapshot: if another writer committed the same application id since, delta-rs refuses. After any error we load
again and look: either our rows are there (the commit had worked), or they aren't, or somebody else's are: Fenced.

What must hold: seq is dense, and each segment begins where the one before ended (see `continues`). A gap or an
overlap is an error, never a guess.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction

from tidegate.binlog.segment import Segment
from tidegate.errors import Fenced, LakeRefused, LakeUnavailable, StreamCorrupt
from tidegate.failpoint import failpoint
from tidegate.lake.bronze_file import by_day, created, reading, statistics, write_file
from tidegate.lake.bronze_log import properties
from tidegate.lake.files import LakeFiles
from tidegate.limits import COMMIT_ATTEMPTS_MAX
from tidegate.position import Position
from tidegate.tables import SEGMENTS, SegmentFlag, SegmentKind, capture_app_id

_BACKOFF_SECONDS: Final = 0.05
_COUNT_SEQS: Final = 256  # the files are counted anew so often: others pack and remove them
_NARROW: Final = [name for name in SEGMENTS.schema.names if name not in ("context", "payload", "day", "source")]


def check_writable(lake: LakeFiles) -> None:
    """Refuse a lake that can't be written, without writing anything. Raises LakeRefused, LakeUnavailable."""
    remedy = "set lake.path to a folder or bucket that this user may write"
    if lake.is_local:
        path = Path(lake.root)
        while not path.exists() and path != path.parent:
            path = path.parent
        if not path.is_dir():
            raise LakeRefused("is a file, not a folder", where=str(path), remedy=remedy)
        if not os.access(path, os.W_OK | os.X_OK):
            raise LakeRefused("isn't writable", where=str(path), remedy=remedy)
        return
    try:
        DeltaTable.is_deltatable(lake.uri(SEGMENTS.path), dict(lake.storage_options))
    except (DeltaError, OSError, ValueError) as error:
        raise LakeUnavailable(f"can't be reached: {error}", where=lake.root, remedy=remedy) from error


class Bronze:
    """bronze/segments as one source's writer sees it."""

    def __init__(self, lake: LakeFiles, source: str, *, compression: str = "zstd") -> None:
        self.source = source
        self.url = lake.uri(SEGMENTS.path)
        self._lake = lake
        self._options = dict(lake.storage_options)
        self._compression = compression
        self._app_id = capture_app_id(source)
        self._table: DeltaTable | None = None
        self._last: Segment | None = None
        self._unsure = False  # a commit was reported as failed, and may have been made
        self._live_files = self._count_at_seq = 0

    @property
    def last_seq(self) -> int:
        """Newest seq of this source in the table as loaded; 0 when there is none. Raises LakeUnavailable."""
        if self._table is None and not self._load():
            return 0
        assert self._table is not None
        with self._reached():  # delta-rs reads the log for it only now
            return int(self._table.transaction_version(self._app_id) or 0)

    @property
    def live_files(self) -> int:
        """Of all sources, in the table as it was seen last: each costs every commit some microseconds."""
        return self._live_files

    def last_segments(self) -> list[Segment]:
        """The newest segment, preceded by all that its open transaction began in; payload and context left empty.

        [] when this source has none. Raises Fenced when table and application transaction disagree, LakeUnavailable.
        """
        wanted = self.last_seq
        if wanted == 0:
            return []
        assert self._table is not None
        with self._reached():
            files = _files(self._table, self.source)
        found: list[Segment] = []
        for path, largest in files:
            for row in self._rows_backwards(path):
                if not found and (largest != wanted or row.seq != wanted):
                    raise Fenced(
                        f"bronze ends at seq {largest}, its application transaction says {wanted}",
                        where=f"{self.source} in {self.url}",
                        remedy="restore the table, or start a new lake path",
                    )
                found.insert(0, row)
                if not row.flags & SegmentFlag.OPEN_AT_START:
                    self._last = found[-1]
                    return found
        raise Fenced("bronze begins inside a transaction", where=self.source, remedy="restore the table")

    def newest_first(self) -> Iterator[Segment]:
        """Segments that hold bytes, the newest first; payload and context left empty. Raises LakeUnavailable."""
        if self.last_seq == 0:
            return
        assert self._table is not None
        with self._reached():
            files = _files(self._table, self.source, with_bytes=True)
        for path, _ in files:
            yield from (row for row in self._rows_backwards(path) if row.has_bytes)

    def append(self, segments: Sequence[Segment]) -> int:
        """Commit segments that aren't in the table yet, in one commit; the table's version.

        Raises Fenced, LakeUnavailable, LakeRefused, StreamCorrupt (a gap or overlap).
        """
        ours = self._last.seq if self._last else self.last_seq
        for attempt in range(COMMIT_ATTEMPTS_MAX):
            try:
                if self._table is None and not self._load():
                    if ours:  # never begin anew where a table was: an unmounted disk looks like this, too
                        raise LakeUnavailable("isn't there any more", where=self.url, remedy="bring the lake back")
                    self._create()
                there = self.last_seq
                if there != ours:
                    self._settle(there, ours, segments)
                    break
                self._commit([segment for segment in segments if segment.seq > there])
                break
            except (CommitFailedError, DeltaError, OSError, pa.ArrowException) as error:
                self._table, self._unsure = None, True
                if attempt + 1 == COMMIT_ATTEMPTS_MAX:
                    raise LakeUnavailable(
                        f"commit failed {attempt + 1} times: {error}", where=self.url, remedy="check the lake's store"
                    ) from error
                time.sleep(_BACKOFF_SECONDS * 2**attempt)
        self._last, self._unsure = segments[-1], False
        assert self._table is not None
        return int(self._table.version())

    def _settle(self, there: int, ours: int, segments: Sequence[Segment]) -> None:
        """The table moved without a commit that we know of: it was our own, reported as failed, or we are fenced."""
        if self._unsure and there == segments[-1].seq:
            newest = self.last_segments()[-1]
            if newest.captured_at == segments[-1].captured_at and newest.payload_crc32c == segments[-1].payload_crc32c:
                return
        raise Fenced(
            f"another writer moved bronze from seq {ours} to {there}",
            where=f"{self.source} in {self.url}",
            remedy="run capture of a source only once; this run stops",
        )

    def _commit(self, segments: Sequence[Segment]) -> None:
        if not segments:
            return
        assert self._table is not None
        before = self._last
        for segment in segments:
            if before is not None:
                check_continues(before, segment)
            before = segment
        actions = [self._write(day, rows) for day, rows in by_day(segments).items()]
        failpoint("capture_after_bronze_file")
        self._table.create_write_transaction(
            actions,
            mode="append",
            schema=Schema.from_arrow(SEGMENTS.schema),
            partition_by=list(SEGMENTS.partition_by),
            commit_properties=CommitProperties(app_transactions=[Transaction(self._app_id, segments[-1].seq)]),
        )
        self._table.update_incremental()
        self._live_files += len(actions)
        if segments[-1].seq >= self._count_at_seq:
            self._live_files, self._count_at_seq = len(self._table.file_uris()), segments[-1].seq + _COUNT_SEQS

    def _write(self, day: date, segments: Sequence[Segment]) -> AddAction:
        folder = f"source={self.source}/day={day.isoformat()}"
        path = f"{folder}/{segments[0].seq:012d}-{uuid.uuid4().hex}.parquet"
        with created(self._lake, f"{SEGMENTS.path}/{path}") as file:
            write_file(file, segments, self._compression)
            size = file.tell()
        return AddAction(
            path=path,
            size=size,
            partition_values={"source": self.source, "day": day.isoformat()},
            modification_time=int(time.time() * 1000),
            data_change=True,
            stats=statistics(segments),
        )

    def _rows_backwards(self, path: str) -> Iterator[Segment]:
        """Segments of one file without context and payload, the newest first. Upkeep may have made it a large one."""
        empty: dict[str, Any] = {"source": self.source, "context": b"", "payload": b""}
        with self._reached(), reading(self._lake, path) as parquet:
            for group in reversed(range(parquet.num_row_groups)):
                rows = parquet.read_row_group(group, columns=_NARROW, use_threads=False).to_pylist()
                for row in sorted(rows, key=itemgetter("seq"), reverse=True):
                    yield Segment.from_row(row | empty)

    def _load(self) -> bool:
        """Load the newest version; False when there is no table yet."""
        with self._reached():
            try:
                self._table = DeltaTable(self.url, storage_options=self._options)
            except TableNotFoundError:
                return False
        return True

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """What the store says when it can't be read, as LakeUnavailable."""
        try:
            yield
        except (DeltaError, OSError) as error:
            raise LakeUnavailable(f"can't be read: {error}", where=self.url, remedy="check the lake's store") from error

    def _create(self) -> None:
        try:
            self._table = DeltaTable.create(
                self.url,
                schema=Schema.from_arrow(SEGMENTS.schema),
                mode="ignore",
                partition_by=list(SEGMENTS.partition_by),
                description=SEGMENTS.doc,
                configuration=properties(0),
                storage_options=self._options,
            )
        except OSError as error:
            raise LakeRefused(f"can't be created: {error}", where=self.url, remedy="check lake.path") from error


def check_continues(before: Segment, after: Segment) -> None:
    """Refuse a gap or an overlap. Raises StreamCorrupt.

    In one file of one server the bytes touch, or (only between transactions, where GTIDs prove that nothing is
    missing) leap forward. The next file begins at its beginning, or by GTID. Another server: only by GTID. Always
    commit_ts goes on where it stood: what another capture cut may leap as well, and then over transactions. Around
    what a person accepted as lost there is no order of positions.
    """
    if after.seq != before.seq + 1:
        raise StreamCorrupt(f"segment {after.seq} after {before.seq}", where=after.where, remedy="restart capture")
    if after.prev_commit_ts != before.resolved_ts:
        raise StreamCorrupt(
            f"goes on behind commit_ts {after.prev_commit_ts}, bronze ends at {before.resolved_ts} ({before.where})",
            where=after.where,
            remedy="another capture went on in bronze: move this one's value log away and restart it",
        )
    if SegmentKind.GAP in (before.kind, after.kind):
        return
    end, start = Position.of(before.file, before.end_pos), Position.of(after.file, after.start_pos)
    same = (before.server_id, before.server_uuid, end.base) == (after.server_id, after.server_uuid, start.base)
    open_there = bool(before.flags & SegmentFlag.OPEN_AT_END)
    if same and start == end:
        return
    by_gtid = before.gtid_executed != "" and not open_there
    touches_next = same and start.number > end.number and (start.offset == 4 or by_gtid)
    if touches_next or (by_gtid and (not same or start > end)):
        return
    # Another server sends a transaction from its beginning that this one died in.
    if not same and open_there and before.gtid_executed and not after.flags & SegmentFlag.OPEN_AT_START:
        return
    raise StreamCorrupt(f"begins at {start}, expected {end}", where=after.source, remedy="restart capture")


def _files(table: DeltaTable, source: str, *, with_bytes: bool = False) -> list[tuple[str, int]]:
    """(path, largest seq) of a source's files, newest first. with_bytes: without those that hold only heartbeats."""
    actions = pa.table(table.get_add_actions(flatten=True))
    columns = ("path", "partition.source", "max.seq", "min.start_pos", "max.end_pos")
    found = [
        (str(path), int(largest))
        for path, name, largest, start, end in zip(*(actions[name].to_pylist() for name in columns), strict=True)
        if name == source and (end > start or not with_bytes)
    ]
    return sorted(found, key=lambda file: file[1], reverse=True)
