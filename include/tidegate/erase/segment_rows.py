"""bronze/segments without a person's rows.

In:  the live files of the table's source; its versions.
Out: the keys of the person's rows; per file with rows of theirs a commit that puts another in its place, without a
     change of data as upkeep's: the segments, their order and their places are the same.

A file is rewritten only if one of its segments changes. Bytes that can't be decoded, or rewritten, are an error before
the first commit: `look` reads everything, and `affected` tries every changed segment.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.binlog.format.events import EventType
from tidegate.binlog.index.event_index import EventIndex, index_pieces
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.binlog.rows.logged_rows import LoggedRows, Span, logged_rows
from tidegate.binlog.rows.table_rows import HeldError
from tidegate.binlog.rows.without_rows import without_rows
from tidegate.binlog.statements.judged import changed_tables, is_dml, query_at, shown
from tidegate.binlog.transaction_scan import STATEMENT
from tidegate.erase.subject import Subject
from tidegate.errors import LakeRefused
from tidegate.failpoint import failpoint
from tidegate.lake.bronze.file import FILE_SCHEMA, added, as_written, created, opened, reading, statistics_of
from tidegate.lake.bronze.log import BronzeFile, BronzeLog
from tidegate.lake.bronze.upkeep import widen
from tidegate.lake.files import LakeFiles
from tidegate.schema.model.columns import TableVersion
from tidegate.segments.segment import Segment, may_name
from tidegate.table_names import Physical
from tidegate.tables import SEGMENTS, SegmentKind


@dataclass(slots=True)
class SegmentRows:
    """The log of one table, and counts. rows: in row events; an update is one. bytes: of payloads that were decoded.
    known: the tables of its source. upto_seq: later segments weren't looked at, and stay as they are. texts: statements
    in the place of rows of other tables. written: paths of new files, within the table.
    """

    lake: LakeFiles
    table: Physical
    versions: Sequence[TableVersion]
    subject: Subject
    compression: str
    known: Collection[tuple[str, str]] = ()
    files: int = 0
    rows: int = 0
    bytes: int = 0
    upto_seq: int = -1
    texts: int = 0
    written: list[str] = field(default_factory=list)

    def look(self, files: Sequence[BronzeFile]) -> None:
        """Learn the subject's keys. Raises LakeRefused for what can't be read, or can't be erased from."""
        self.upto_seq = max((file.max_seq for file in files), default=-1)
        for file in files:
            for segment in self._segments(file):
                for index in self._indexes(segment):
                    self._check_statements(index)
                    for rows in self._rows(index):
                        self.subject.look(rows)

    def affected(self, files: Sequence[BronzeFile]) -> list[BronzeFile]:
        """Those with a segment that changes; each is tried."""
        return [file for file in files if any(self._without(segment) for segment in self._segments(file))]

    def erase(self, log: BronzeLog, files: Sequence[BronzeFile]) -> None:
        """A commit per file. Raises CommitConflict where another upkeep was quicker."""
        for file in files:
            made = self._rewritten(file)
            failpoint("erase_before_bronze_commit")
            log.commit([file], [made], data_change=False)
            failpoint("erase_after_bronze_commit")
            self.written.append(unquote(made["path"]))
            self.files += 1

    def _rewritten(self, file: BronzeFile) -> dict[str, Any]:
        """A new file with all segments of one; its `add` body."""
        folder = f"source={file.source}/day={file.day.isoformat()}"
        path = f"{folder}/{file.min_seq:012d}-{uuid.uuid4().hex}.parquet"
        bounds: dict[str, tuple[int, int]] = {}
        rows = 0
        with created(self.lake, f"{SEGMENTS.path}/{path}") as sink:
            with opened(sink, self.compression) as writer, reading(self.lake, file.path) as parquet:
                for number in range(parquet.num_row_groups):
                    group = self._group(file, parquet, number)
                    writer.write_table(group, row_group_size=group.num_rows)
                    widen(bounds, group)
                    rows += group.num_rows
            size = sink.tell()
        return added(path, size, file.partition, statistics_of(rows, bounds))

    def _group(self, file: BronzeFile, parquet: pq.ParquetFile, number: int) -> pa.Table:
        group = as_written(parquet.read_row_group(number, use_threads=False))
        made: dict[int, Segment] = {}
        for at, segment in enumerate(_segments_of(group, file)):
            if self._may_have(segment) and (changed := self._without(segment)):
                made[at] = changed
        if not made:
            return group
        cells = group["payload"].to_pylist()
        for at, segment in made.items():
            cells[at] = segment.payload
        where = group.schema.get_field_index("payload")
        payload = FILE_SCHEMA.field("payload")
        return group.set_column(where, payload, pa.array(cells, payload.type))

    def _without(self, segment: Segment) -> Segment | None:
        """The segment without the subject's rows; None when it has none."""
        lost: dict[tuple[int, int], int] = {}  # by its event's number in a piece: a piece may be looked at twice

        def choose(index: EventIndex) -> Mapping[int, Sequence[Span]]:
            gone: dict[int, list[Span]] = {}
            for rows in self._rows(index):
                gone |= rows.spans(self.subject.is_of(rows))
            lost.update(((index.base, event), len(spans)) for event, spans in gone.items())
            return gone

        made = without_rows(segment, choose)
        self.rows += sum(lost.values())
        return None if made is segment else made

    def _may_have(self, segment: Segment) -> bool:
        is_old = segment.seq <= self.upto_seq
        return is_old and len(segment.payload) > 0 and may_name(segment.tables, self.table.pair)

    def _segments(self, file: BronzeFile) -> Iterator[Segment]:
        """Those that may name the table, verified."""
        with reading(self.lake, file.path) as parquet:
            for number in range(parquet.num_row_groups):
                group = parquet.read_row_group(number, use_threads=False)
                for segment in _segments_of(group, file):
                    if self._may_have(segment):
                        segment.verify()
                        self.bytes += len(segment.payload)
                        yield segment

    def _indexes(self, segment: Segment) -> Iterator[EventIndex]:
        if segment.kind is not SegmentKind.BINLOG:
            raise LakeRefused(f"segments of kind {segment.kind} can't be written anew", where=segment.where)
        yield from index_pieces(segment)

    def _rows(self, index: EventIndex) -> Iterator[LoggedRows]:
        try:
            yield from logged_rows(index, self.table.pair, self.versions)
        except HeldError as error:
            raise LakeRefused(
                f"rows can't be read, so nobody can say whose they are: {error}",
                where=f"{self.table.shown} in {index.segment.file}:{index.position(error.event)}",
                remedy="they stay until maintain.keep_bronze_days",
            ) from error

    def _check_statements(self, index: EventIndex) -> None:
        """Raises LakeRefused for a statement that may hold values of rows instead of a rows event."""
        kinds, bits = index.events[:, K.TYPE], index.events[:, K.BITS]
        said = (kinds == EventType.EXECUTE_LOAD_QUERY) | ((kinds == EventType.QUERY) & ((bits & STATEMENT) != 0))
        for number in np.flatnonzero(said).tolist():
            query = query_at(index, number)
            if not is_dml(query.sql):
                continue
            changed = changed_tables(query, {self.table.pair, *self.known})
            self.texts += changed is not None and self.table.pair not in changed
            if changed is None or self.table.pair in changed:
                raise LakeRefused(
                    f"the log has a statement in the place of rows: {shown(query.sql)}",
                    where=f"{index.segment.file}:{index.position(number)}",
                    remedy="it stays until maintain.keep_bronze_days; set binlog_format = ROW in every session",
                )


def _segments_of(group: pa.Table, file: BronzeFile) -> list[Segment]:
    """The segments of a row group, in its order; their bytes are views of Arrow's memory."""
    names = [name for name in group.column_names if name not in ("payload", "context")]
    rows = group.select(names).to_pylist()
    made = []
    for at, row in enumerate(rows):
        views = {name: memoryview(group[name][at].as_buffer() or b"").cast("B") for name in ("payload", "context")}
        made.append(Segment.from_row(row | views | {"source": file.source}))
    return made
