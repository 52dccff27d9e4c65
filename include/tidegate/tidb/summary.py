"""What a Pump's segment says: which transactions are written in it, and which answers, jobs and lists of tables.

In:  a Segment of kind tidb.
Out: a Summary without the rows' bytes: what pairing needs, over segments in any order. StreamCorrupt, UnknownEvent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tidegate.segments.segment import Segment
from tidegate.tidb.enclosed import LENGTH_BYTES, payloads_of
from tidegate.tidb.pairing import ROLLED_BACK
from tidegate.tidb.payload import BinlogType, binlog_of, table_ids_of

# These are DDL binlogs with an id that no history has: they move a sequence.
_MOVES_SEQUENCE: Final = re.compile(r"\s*select\s+(?:setval|nextval)\s*\(", re.IGNORECASE)


# As CPython has them: an empty summary, and a number with what it leads to.
_EMPTY_BYTES: Final = 1000
_ENTRY_BYTES: Final = 150


@dataclass(frozen=True, slots=True)
class DdlBinlog:
    """The prewrite of a DDL job's binlog. pos: where it begins in the Pump's stream."""

    job_id: int
    schema_state: int
    query: str
    file: str
    pos: int


@dataclass(frozen=True, slots=True)
class Summary:
    """rows: start_ts -> ids of the tables that a prewrite has rows of. ddl: start_ts -> ... answers: start_ts ->
    commit_ts, or ROLLED_BACK. jobs: id -> JSON. tables: timestamp -> the text of LiveTables.
    """

    rows: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    ddl: Mapping[int, DdlBinlog] = field(default_factory=dict)
    answers: Mapping[int, int] = field(default_factory=dict)
    jobs: Mapping[int, bytes] = field(default_factory=dict)
    tables: Mapping[int, bytes] = field(default_factory=dict)

    @property
    def held_bytes(self) -> int:
        """A rough measure of what it takes in memory."""
        texts = sum(map(len, self.jobs.values())) + sum(map(len, self.tables.values()))
        return _EMPTY_BYTES + texts + _ENTRY_BYTES * (len(self.rows) + len(self.answers) + len(self.ddl))


def summary_of(segment: Segment) -> Summary:
    """Raises StreamCorrupt, UnknownEvent."""
    rows: dict[int, tuple[int, ...]] = {}
    ddl: dict[int, DdlBinlog] = {}
    answers: dict[int, int] = {}
    jobs: dict[int, bytes] = {}
    tables: dict[int, bytes] = {}
    at = segment.start_pos
    for payload in payloads_of(segment):
        binlog = binlog_of(payload)
        start_ts = binlog.start_ts
        match binlog.tp:
            case BinlogType.JOB:
                jobs[binlog.ddl_job_id] = binlog.prewrite_value
            case BinlogType.TABLES:
                tables[start_ts] = binlog.prewrite_value
            case BinlogType.COMMIT:
                answers[start_ts] = binlog.commit_ts
            case BinlogType.ROLLBACK:
                if not binlog.is_fake:
                    answers[start_ts] = ROLLED_BACK
            case BinlogType.PREWRITE if binlog.ddl_job_id:
                query = binlog.ddl_query.decode(errors="replace")
                ddl[start_ts] = DdlBinlog(binlog.ddl_job_id, binlog.ddl_schema_state, query, segment.file, at)
            case BinlogType.PREWRITE:
                rows[start_ts] = table_ids_of(binlog.prewrite_value)
        at += len(payload) + LENGTH_BYTES
    return Summary(rows, ddl, answers, jobs, tables)


def moves_sequence(query: str) -> bool:
    """Whether a DDL binlog is of a sequence's next value, which no job stands for."""
    return _MOVES_SEQUENCE.match(query) is not None
