"""The places of bronze's segments, without their payloads.

In:  the Delta log of bronze/segments; the Parquet footers and small columns of new files.
Out: SegmentRefs in order per source. Only those above a low-water mark stay in memory.

A refresh reads only new commits, so many looks per second cost no more in a large bronze. Delta's
statistics judge a file first: if its resolved_ts and its commit_ts all lie at or below the mark,
the file is never opened. Row groups of larger files are judged likewise. Both values count, because
a segment that ends inside a transaction resolves only the part before it: its rows wait for a later
window.

Upkeep packs files and removes the oldest. A packed file replaces its originals. A window planned
earlier still reads those: they stay on disk until VACUUM. It is an error to ask for removed
segments, or to ask when a segment is missing.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.delta.tail import LogTail
from tidegate.errors import LakeRefused, StreamCorrupt
from tidegate.lake.bronze.above import FilesAbove
from tidegate.lake.bronze.beginning import begins
from tidegate.lake.bronze.file import reading
from tidegate.lake.bronze.log import BronzeFile, bronze_log, files_of
from tidegate.lake.files import LakeFiles
from tidegate.limits import BRONZE_TAIL_COMMITS_MAX
from tidegate.remedy import BRONZE_BACK
from tidegate.segments.segment import WHOLE_KINDS, Segment
from tidegate.segments.window import SegmentRef, reaching_back, without_given_up
from tidegate.tables import SEGMENTS, SegmentFlag

_SMALL_COLUMNS = [
    "kind", "seq", "file", "start_pos", "end_pos", "prev_commit_ts", "min_commit_ts", "max_commit_ts", "resolved_ts",
    "tables", "flags", "server_uuid",
]  # fmt: skip


# A segment has nothing above a low-water mark once both of these are at or below it.
_TOPS: Final = ("resolved_ts", "max_commit_ts")
# The fields of a segment that its ref has.
_REF_FIELDS: Final = tuple(field.name for field in fields(Segment) if field.name in SegmentRef.__dataclass_fields__)
_READ_COLUMNS: Final = [field.name for field in fields(Segment) if field.name not in _REF_FIELDS]
_READ_SMALL: Final = [name for name in _READ_COLUMNS if name not in ("payload", "context")]


class BronzeIndex:
    """SegmentRefs of a lake, refreshed in place. Not thread-safe."""

    def __init__(self, lake: LakeFiles) -> None:
        self._lake = lake
        self._log = bronze_log(lake)
        self._tail = LogTail(self._log)
        self.below = FilesAbove(lake)  # for windows below the cut
        self._version = -1
        self._refs: dict[str, dict[int, SegmentRef]] = {}
        self._low_ts = 0  # segments resolved at or below it may have been forgotten
        # source -> where its remaining segments begin, if its first ones were removed; then source -> its last seq.
        self._begins: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._resolved: dict[str, int] = {}

    @property
    def refs(self) -> dict[str, list[SegmentRef]]:
        """Per source, in order of seq."""
        return {
            source: without_given_up([by_seq[seq] for seq in sorted(by_seq)]) for source, by_seq in self._refs.items()
        }

    @property
    def version(self) -> int:
        """Delta version last seen; -1 before bronze exists."""
        return self._version

    def refresh(self, low_ts: int) -> bool:
        """Look for new segments with resolved_ts or commit_ts above low_ts. True if bronze has a
        new version.

        A low_ts below the last one (a table was released) reads the forgotten refs again.
        """
        newest = self._tail.version()
        if low_ts < self._low_ts or newest < self._version or newest - self._version > BRONZE_TAIL_COMMITS_MAX:
            self._version, self._refs = -1, {}
        self._low_ts = low_ts
        if newest == self._version:
            return False
        known = self._version >= 0 and all(self._take(number) for number in range(self._version + 1, newest + 1))
        if not known:
            self._load()
        return True

    def resolved(self, source: str) -> int:
        """The newest resolved_ts of a source, independent of the low-water mark; 0 if it has sent
        nothing.
        """
        return self._resolved.get(source, 0)

    def has(self, source: str) -> bool:
        """Whether bronze has a segment of a source, resolved or not."""
        return source in self._ends

    def begin(self, source: str) -> int:
        """A source's segments begin after this commit_ts; 0 when none was ever removed."""
        return self._begins.get(source, 0)

    def check_reaches(self, low_ts: int, sources: Collection[str]) -> None:
        """Raises LakeRefused when changes above low_ts of one of these sources may have been removed from bronze."""
        for source in sources:
            begin = self._begins.get(source, 0)
            if begin > low_ts:
                raise LakeRefused(
                    f"bronze begins after commit_ts {begin}, and changes from {low_ts} on are needed:"
                    " what lies between was removed by maintain.keep_bronze_days",
                    where=f"{source} in {self._lake.uri(SEGMENTS.path)}",
                    remedy="start a new lake path",
                )

    def _check_follows(self, source: str, first: int) -> None:
        """A missing segment must never pass for one without changes. Raises LakeRefused."""
        wanted = self._ends.get(source, first - 1) + 1
        if first != wanted:
            raise LakeRefused(
                f"bronze {'lacks' if first > wanted else 'holds twice'} segment {min(first, wanted)}",
                where=f"{source} in {self._lake.uri(SEGMENTS.path)}",
                remedy=BRONZE_BACK,
            )

    def _take(self, version: int) -> bool:
        """Take in one commit. False if it is no longer in the log, or if it removed segments."""
        actions = self._log.actions(version)
        if actions is None or any(action["remove"].get("dataChange", True) for action in actions if "remove" in action):
            return False
        adds = [(BronzeFile.of(action["add"]), action["add"]) for action in actions if "add" in action]
        for file, add in sorted(adds, key=lambda pair: pair[0].min_seq):
            if add["dataChange"]:
                self._check_follows(file.source, file.min_seq)
                self._ends[file.source] = file.max_seq
            self._add(file)
        self._version = version
        return True

    def _load(self) -> None:
        """Read the whole log of the table: at the start, and when the known part can't be
        continued.
        """
        state = self._log.state()
        self._log.forget()  # only its newest commits are looked at from now on
        self._refs = {}  # what was removed may have been rewritten elsewhere
        self._ends = {}
        files = files_of(state)
        self._begins = begins(self._lake, files)
        for file in files:
            self._check_follows(file.source, file.min_seq)
            self._ends[file.source] = file.max_seq
        for file in files:
            self._add(file)
        self._version = state.version

    def _add(self, file: BronzeFile) -> None:
        self._resolved[file.source] = max(self.resolved(file.source), file.resolved_ts)
        if file.top_ts > self._low_ts:
            self._read(file.path, file.source)

    def forget(self, low_ts: int) -> None:
        """Drop the refs no window above low_ts needs. The newest ref of each source stays: it says
        how far the source is.

        The segments a window looks back to stay, and one more: it proves that no earlier one is
        needed.
        """
        for by_seq in self._refs.values():
            last = max(by_seq, default=0)
            since = _looked_back_at(by_seq, low_ts)
            for seq, ref in list(by_seq.items()):
                if max(ref.resolved_ts, ref.max_commit_ts) <= low_ts and seq < since and seq != last:
                    del by_seq[seq]

    def read(self, ref: SegmentRef) -> Segment:
        """The whole segment, bytes included. Raises StreamCorrupt when they have changed since
        capture.
        """
        return read_segment(self._lake, ref)

    def _read(self, path: str, source: str) -> None:
        for ref in refs_in(self._lake, path, source, self._low_ts):
            self._refs.setdefault(ref.source, {})[ref.seq] = ref
            self._resolved[source] = max(self.resolved(source), ref.resolved_ts)


def _looked_back_at(by_seq: Mapping[int, SegmentRef], low_ts: int) -> int:
    """The first seq that windows above low_ts need, since rows may wait from there on."""
    refs = [by_seq[seq] for seq in sorted(by_seq)]
    if not refs or refs[-1].whole:
        return sys.maxsize
    from_ts, before_seq = reaching_back(refs, low_ts)
    return max((ref.seq for ref in refs if ref.seq < before_seq and ref.max_commit_ts < from_ts), default=0)


def refs_in(lake: LakeFiles, path: str, source: str, low_ts: int) -> Iterator[SegmentRef]:
    """A file's segments in order, without those of row groups with nothing above low_ts."""
    with reading(lake, path) as parquet:
        for group in range(parquet.num_row_groups):
            if parquet.num_row_groups > 1 and not _is_needed(parquet.metadata.row_group(group), low_ts):
                continue
            rows = parquet.read_row_group(group, columns=_SMALL_COLUMNS, use_threads=False).to_pylist()
            for index, row in enumerate(rows):
                yield _ref(row, source, (path, group, index))


def _is_needed(group: pq.RowGroupMetaData, low_ts: int) -> bool:
    """Whether a row group may hold a segment with anything above the low-water mark."""
    columns = [group.column(number) for number in range(group.num_columns)]
    bounds = [column.statistics for column in columns if column.path_in_schema in _TOPS]
    return any(bound is None or not bound.has_min_max or bound.max > low_ts for bound in bounds)


def segments_or_damage(
    lake: LakeFiles, refs: Iterable[SegmentRef]
) -> Iterator[tuple[SegmentRef, Segment | StreamCorrupt]]:
    """Segments in the order asked for. A file is opened once, and a row group is read once for all
    its neighbouring segments.

    If a segment's bytes have changed since capture, its error takes its place: only its own tables
    are affected. Every segment of an unreadable row group comes as an error, too. Payload and
    context are views of Arrow's memory; it stays alive as long as they do. One row group at most is
    kept here.
    """
    for path, of_file in groupby(refs, key=attrgetter("path")):
        yield from _of_file(lake, path, list(of_file))


def _of_file(
    lake: LakeFiles, path: str, refs: Sequence[SegmentRef]
) -> Iterator[tuple[SegmentRef, Segment | StreamCorrupt]]:
    at = 0
    while at < len(refs):
        number = refs[at].row_group
        try:
            with reading(lake, path) as parquet:
                while at < len(refs):
                    number = refs[at].row_group
                    group = parquet.read_row_group(number, columns=_READ_COLUMNS, use_threads=False)
                    small = group.select(_READ_SMALL).to_pylist()
                    payload, context = group.column("payload"), group.column("context")
                    while at < len(refs) and refs[at].row_group == number:
                        ref, at = refs[at], at + 1
                        bytes_ = _view(payload[ref.row]), _view(context[ref.row])
                        yield ref, verified(_segment(ref, small[ref.row], *bytes_))
        except StreamCorrupt as error:
            while at < len(refs) and refs[at].row_group == number:
                ref, at = refs[at], at + 1
                yield ref, error


def read_segments(lake: LakeFiles, refs: Iterable[SegmentRef]) -> Iterator[tuple[SegmentRef, Segment]]:
    """As segments_or_damage, but raises StreamCorrupt for the first damaged segment."""
    for ref, segment in segments_or_damage(lake, refs):
        if isinstance(segment, StreamCorrupt):
            raise segment
        yield ref, segment


def read_segment(lake: LakeFiles, ref: SegmentRef) -> Segment:
    """One segment alone; several are cheaper by read_segments. Raises StreamCorrupt."""
    return next(read_segments(lake, [ref]))[1]


def verified(segment: Segment) -> Segment | StreamCorrupt:
    """The segment, or an error if its payload has changed since it was cut."""
    try:
        segment.verify()
    except StreamCorrupt as error:
        return error
    return segment


def _segment(ref: SegmentRef, row: dict[str, Any], payload: memoryview, context: memoryview) -> Segment:
    """The index's facts about a segment, and the rest of its row."""
    return Segment.from_row(
        {name: getattr(ref, name) for name in _REF_FIELDS} | row | {"payload": payload, "context": context}
    )


def _view(cell: pa.Scalar) -> memoryview:
    buffer = cell.as_buffer()
    return memoryview(buffer) if buffer is not None else memoryview(b"")


def _ref(row: dict[str, Any], source: str, place: tuple[str, int, int]) -> SegmentRef:
    path, group, index = place
    return SegmentRef(
        source=source,
        seq=row["seq"],
        file=row["file"],
        start_pos=row["start_pos"],
        end_pos=row["end_pos"],
        min_commit_ts=row["min_commit_ts"],
        max_commit_ts=row["max_commit_ts"],
        resolved_ts=row["resolved_ts"],
        tables=tuple(row["tables"]),
        flags=SegmentFlag(row["flags"]),
        path=path,
        row_group=group,
        row=index,
        whole=row["kind"] in WHOLE_KINDS,
        prev_commit_ts=row["prev_commit_ts"],
        server_uuid=sys.intern(row["server_uuid"]),
    )
