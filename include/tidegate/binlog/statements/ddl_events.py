"""The DDL of a segment, in log order, for schema_history to replay.

In:  a Segment.
Out: DdlStatements: every QUERY event, with three exceptions. These are a transaction's frame
     (BEGIN, COMMIT, SAVEPOINT, XA); DML as a statement, which the decoder judges (judged.py); the
     start of an ALTER TABLE that is logged in two phases.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tidegate.binlog.format.events import EventType
from tidegate.binlog.format.query import Query
from tidegate.binlog.index.event_index import EventIndex, index_pieces
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.binlog.statements.judged import is_dml, query_at
from tidegate.binlog.transaction_scan import STATEMENT
from tidegate.errors import UnknownEvent
from tidegate.schema.ddl.statement import DdlStatement
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentFlag


def ddl_statements(segment: Segment) -> list[DdlStatement]:
    """Raises StreamCorrupt for broken bytes, UnknownEvent for an unknown format or compression."""
    return [statement for index in index_pieces(segment) for statement in _of_piece(index)]


def _of_piece(index: EventIndex) -> Iterator[DdlStatement]:
    events = index.events
    statements = ((events[:, K.BITS] & STATEMENT) != 0) & (events[:, K.TYPE] == EventType.QUERY)
    for number in np.flatnonzero(statements).tolist():
        try:
            query = query_at(index, number)
        except UnknownEvent:
            yield _unreadable(index, number)
            continue
        if query.unfinished or is_dml(query.sql):
            continue
        yield statement_of(index, number, query)


def statement_of(index: EventIndex, number: int, query: Query) -> DdlStatement:
    """An event as a statement. query: from query_at."""
    system_is_utc = query.time_zone == "SYSTEM" and SegmentFlag.SYSTEM_IS_UTC in index.segment.flags
    return DdlStatement(
        sql=query.sql,
        database=query.database,
        sql_mode=query.sql_mode,
        commit_ts=int(index.events[number, K.COMMIT_TS]),
        file=index.segment.file,
        pos=index.end_position(number),
        timestamp_us=query.timestamp_us,
        charset=query.charset,
        server_version=index.format.server_version,
        legible=query.legible,
        said=query.said,
        time_zone="UTC" if system_is_utc else query.time_zone,
    )


def _unreadable(index: EventIndex, number: int) -> DdlStatement:
    """An event whose text isn't even known: its reader learns no table's name."""
    return DdlStatement(
        sql="(an event that can't be read)",
        database="",
        sql_mode=0,
        commit_ts=int(index.events[number, K.COMMIT_TS]),
        file=index.segment.file,
        pos=index.end_position(number),
        timestamp_us=index.header(number).timestamp * 1_000_000,
        charset="",
        server_version=index.format.server_version,
    )
