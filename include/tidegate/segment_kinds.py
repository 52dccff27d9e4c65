"""The decoder of a segment's bytes, by the kind of the segment.

In:  a Segment of any kind.
Out: its changes, its statements, its prewrites; UnknownEvent for a kind that this version can't read.

A new kind of segment is one entry in each of the tables. Those of a kind without bytes, heartbeats and gaps, are
read by nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar

from tidegate.binlog.rows import decode
from tidegate.binlog.statements.branches import prewrites
from tidegate.binlog.statements.ddl_events import ddl_statements
from tidegate.capture.source import Decoder, PrewriteFeed, SchemaFeed, TableName
from tidegate.errors import UnknownEvent
from tidegate.schema.ddl.statement import DdlStatement
from tidegate.schema.model.columns import TableVersion
from tidegate.segments.prewrites import Pending, PrewriteAnswer
from tidegate.segments.result import CommitSpan, DecodedSegment, Known
from tidegate.segments.segment import WHOLE_KINDS, Segment
from tidegate.tables import SegmentKind
from tidegate.ticdc import decode as ticdc
from tidegate.ticdc import statements
from tidegate.tidb.rows import decode as tidb

T = TypeVar("T")

DECODERS: Final[Mapping[SegmentKind, Decoder]] = {
    SegmentKind.BINLOG: decode.decode_in_pieces,
    SegmentKind.TICDC: ticdc.decode_in_pieces,
    SegmentKind.TIDB: tidb.decode_in_pieces,
}
# If a kind's prewrites and answers may be in different segments, a segment alone tells nothing: its rows and its DDL
# are paired over the segments of a window (spark_jobs/window/pairing/pairs.py), and decoded by these answers.
APART: Final = frozenset(SegmentKind) - WHOLE_KINDS
FEEDS: Final[Mapping[SegmentKind, SchemaFeed]] = {
    SegmentKind.BINLOG: ddl_statements,
    SegmentKind.TICDC: statements.ddl_statements,
}
PREWRITES: Final[Mapping[SegmentKind, PrewriteFeed]] = {SegmentKind.BINLOG: prewrites}


def changes_of(
    segment: Segment,
    versions: Mapping[TableName, Sequence[TableVersion]],
    windows: Mapping[TableName, CommitSpan],
    known: Known,
) -> Iterator[DecodedSegment]:
    """In parts, in log order. Raises StreamCorrupt, UnknownEvent."""
    return _of(DECODERS, segment)(segment, versions, windows, known=known)


def statements_of(segment: Segment) -> Sequence[DdlStatement]:
    """In log order. Raises StreamCorrupt, UnknownEvent."""
    return _of(FEEDS, segment)(segment)


def prewrites_of(segment: Segment) -> Sequence[Pending | PrewriteAnswer]:
    """In log order; of a kind without an entry none. Raises StreamCorrupt, UnknownEvent."""
    feed = PREWRITES.get(segment.kind)
    return feed(segment) if feed is not None else ()


def _of(table: Mapping[SegmentKind, T], segment: Segment) -> T:
    try:
        return table[segment.kind]
    except KeyError:
        raise UnknownEvent(
            f"segments of kind {segment.kind} can't be read by this version",
            where=segment.where,
            remedy="install a version that can, then `tidegate release`",
        ) from None
