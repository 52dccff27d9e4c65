"""Segments and table versions for tests of the decoder: from files, from real servers.

In:  bytes of binlog files, a server.
Out: Segments, TableVersions, and a comparison of the two decoders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.reference.decode import decode_segment_reference
from tidegate.binlog.index.event_index import EventIndex, index_pieces
from tidegate.binlog.rows.decode import decode_segment
from tidegate.local.server import Server
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.types import type_as_known
from tidegate.segments.crc32c import crc32c
from tidegate.segments.result import CommitSpan, DecodedSegment
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentFlag, SegmentKind

ALL_TIME = CommitSpan(0, 1 << 62)
DECODERS = (decode_segment, decode_segment_reference)


def segment(context: bytes, payload: bytes, *, start_pos: int = 4, prev_commit_ts: int = 0) -> Segment:
    return Segment(
        source="test",
        seq=7,
        kind=SegmentKind.BINLOG,
        server_id=1,
        server_uuid="",
        file="binlog.000042",
        start_pos=start_pos,
        end_pos=start_pos + len(payload),
        gtid_executed="",
        prev_commit_ts=prev_commit_ts,
        min_commit_ts=0,
        max_commit_ts=0,
        resolved_ts=0,
        tables=(),
        flags=SegmentFlag(0),
        event_count=0,
        txn_count=0,
        context=context,
        payload=payload,
        payload_crc32c=crc32c(payload),
        captured_at=datetime(2026, 11, 21, tzinfo=UTC),
    )


def segment_of_file(content: bytes) -> Segment:
    """All events of a binlog file as one segment."""
    assert content[:4] == b"\xfebin"
    first = int.from_bytes(content[13:17], "little")
    return segment(content[4 : 4 + first], content[4:])


def current_binlog(server: Server) -> Path:
    """The newest binlog file of a server on this machine."""
    base = Path(server.query("SELECT @@log_bin_basename")[0][0])
    files = [path for path in base.parent.glob(base.name + ".*") if path.suffix[1:].isdigit()]
    return max(files, key=lambda path: path.suffix)


def version_on(server: Server, database: str, table: str) -> TableVersion:
    """The table as information_schema describes it now."""
    rows = server.query(
        "SELECT column_name, column_type, is_nullable, COALESCE(character_set_name, ''), COALESCE(collation_name, ''),"
        " COALESCE(generation_expression, '')"
        f" FROM information_schema.columns WHERE table_schema = '{database}' AND table_name = '{table}'"
        " ORDER BY ordinal_position"
    )
    columns = [
        Column(i, row[0], type_as_known(row[1], row[3]), row[2] == "YES", row[3], row[4], generation_expression=row[5])
        for i, row in enumerate(rows, 1)
    ]
    keys = server.query(
        "SELECT column_name FROM information_schema.key_column_usage WHERE constraint_name = 'PRIMARY'"
        f" AND table_schema = '{database}' AND table_name = '{table}' ORDER BY ordinal_position"
    )
    # MariaDB names a hidden row_end among the columns of a system-versioned table's key.
    shown = {column.name for column in columns}
    return version(database, table, columns, [row[0] for row in keys if row[0] in shown])


def version(
    database: str,
    table: str,
    columns: Sequence[Column],
    key: Sequence[str] = (),
    *,
    number: int = 1,
    commit_ts: int = 0,
) -> TableVersion:
    ids = {column.name: column.id for column in columns}
    return TableVersion(
        source="test",
        database=database,
        table=table,
        version=number,
        commit_ts=commit_ts,
        file="binlog.000042",
        pos=4,
        kind="baseline",
        ddl="",
        columns=tuple(columns),
        key=tuple(ids[name] for name in key),
        charset="utf8mb4",
    )


def decode_both(
    made: Segment,
    versions: Mapping[tuple[str, str], Sequence[TableVersion]],
    windows: Mapping[tuple[str, str], CommitSpan],
) -> DecodedSegment:
    """Decode with the kernel and with the reference; both must say the same."""
    fast, slow = (decode(made, versions, windows) for decode in DECODERS)
    assert fast.ledger == slow.ledger
    # A table may have two troubles: the kernel meets those of its images' shape first, the twin the earlier one.
    assert [(p.database, p.table, p.error) for p in fast.problems] == [
        (p.database, p.table, p.error) for p in slow.problems
    ]
    assert len(fast.changes) == len(slow.changes)
    for one, other in zip(fast.changes, slow.changes, strict=True):
        assert (one.database, one.table, one.version) == (other.database, other.table, other.version)
        one.batch.validate(full=True)
        assert one.batch.schema == other.batch.schema
        if not one.batch.equals(other.batch):
            assert one.batch.to_pylist() == other.batch.to_pylist()  # shows the difference; NaN never equals itself
    return fast


def changed_rows(decoded: DecodedSegment) -> list[dict[str, Any]]:
    return [row for change in decoded.changes for row in change.batch.to_pylist()]


def index_segment(segment: Segment) -> EventIndex:
    """All of a segment in one index, however large that is when it is expanded."""
    return next(index_pieces(segment, piece_bytes=1 << 60))
