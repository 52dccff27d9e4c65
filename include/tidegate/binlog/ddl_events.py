"""The DDL of a segment, in log order, for schema_history to replay.

In:  a Segment.
Out: DdlStatements: every QUERY event but a transaction's frame (BEGIN, COMMIT, SAVEPOINT, XA) and statement DML, which
     decoding a segment judges (statements.py).
"""

from __future__ import annotations

import numpy as np

from tidegate.binlog.event_index import index_segment
from tidegate.binlog.events import EventType
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.binlog.segment import Segment
from tidegate.binlog.statements import is_dml, query_at
from tidegate.binlog.transaction_scan import STATEMENT
from tidegate.errors import DecodeError, UnknownEvent
from tidegate.schema.ddl_statement import DdlStatement


def ddl_statements(segment: Segment) -> list[DdlStatement]:
    """Raises StreamCorrupt for broken bytes, and UnknownEvent for a statement that is compressed or can't be read."""
    index = index_segment(segment)
    events = index.events
    found = []
    for number in np.flatnonzero(events[:, K.BITS] & STATEMENT).tolist():
        where = f"{segment.source} at {segment.file}:{index.position(number)}"
        if events[number, K.TYPE] != EventType.QUERY:
            raise UnknownEvent(
                "compressed statement (QUERY_COMPRESSED) can't be read",
                where=where,
                remedy="set log_bin_compress=OFF at the source",
            )
        try:
            query = query_at(index, number)
        except DecodeError as error:
            raise UnknownEvent(f"QUERY event: {error.what}", where=where, remedy=error.remedy) from None
        if is_dml(query.sql):
            continue
        found.append(
            DdlStatement(
                sql=query.sql,
                database=query.database,
                sql_mode=query.sql_mode,
                commit_ts=int(events[number, K.COMMIT_TS]),
                file=segment.file,
                pos=index.end_position(number),
                timestamp_us=query.timestamp_us,
                charset=query.charset,
                server_version=index.format.server_version,
            )
        )
    return found
