"""The content of a Pump's segment: its written transactions, answers, jobs and lists of tables.

In:  a Segment of kind tidb.
Out: a Summary without the rows' bytes: what pairing needs, over segments in any order. StreamCorrupt, UnknownEvent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate.segments.segment import Segment
from tidegate.tidb.kernel import layout as T  # noqa: N812 - a page of constants
from tidegate.tidb.records.enclosed import placed_payloads
from tidegate.tidb.records.pairing import ROLLED_BACK
from tidegate.tidb.records.payload import BinlogType, binlog_of, table_ids_of
from tidegate.tidb.rows.walk import Walk, walk_of

Words = npt.NDArray[np.int64]

# These are DDL binlogs with an id that no history has: they move a sequence.
_MOVES_SEQUENCE: Final = re.compile(r"\s*select\s+(?:setval|nextval)\s*\(", re.IGNORECASE)


# As CPython has them: an empty summary, and an entry with what it leads to.
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


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """started: start_ts of prewrites with rows; of_table, table_ids: the same once more for each table that one has
    rows of. answered, stamps: start_ts of answers, and their commit_ts or ROLLED_BACK. All in order, each once; a
    million transactions take 40 MB. ddl: start_ts -> ... jobs: id -> JSON. tables: timestamp -> the text of LiveTables.
    """

    started: Words
    of_table: Words
    table_ids: Words
    answered: Words
    stamps: Words
    ddl: Mapping[int, DdlBinlog] = field(default_factory=dict)
    jobs: Mapping[int, bytes] = field(default_factory=dict)
    tables: Mapping[int, bytes] = field(default_factory=dict)

    @property
    def held_bytes(self) -> int:
        """A rough measure of what it takes in memory."""
        texts = sum(map(len, self.jobs.values())) + sum(map(len, self.tables.values()))
        arrays = self.started, self.of_table, self.table_ids, self.answered, self.stamps
        return _EMPTY_BYTES + texts + _ENTRY_BYTES * len(self.ddl) + sum(array.nbytes for array in arrays)


def summary_of(segment: Segment) -> Summary:
    """Raises StreamCorrupt, UnknownEvent."""
    walk = walk_of(segment.payload)
    summary = _of_walk(segment, walk) if walk is not None else None
    return summary or summary_by_payload(segment)


def _of_walk(segment: Segment, walk: Walk) -> Summary | None:
    """The summary by compiled code, but for the few DDL and notes."""
    payloads = walk.payloads
    tp, started = payloads[:, T.TP], payloads[:, T.START_TS]
    of_rows = (tp == BinlogType.PREWRITE) & (payloads[:, T.JOB_ID] == 0)
    tables = walk.tables(np.flatnonzero(of_rows))
    if tables is None:
        return None
    ids = each_once(started[tables[:, T.TABLE_PAYLOAD]], tables[:, T.TABLE_ID])
    is_answer = (tp == BinlogType.COMMIT) | ((tp == BinlogType.ROLLBACK) & (started != payloads[:, T.COMMIT_TS]))
    fates = np.where(tp == BinlogType.COMMIT, payloads[:, T.COMMIT_TS], ROLLED_BACK)
    answers = each_once(started[is_answer], fates[is_answer])
    others = np.flatnonzero(~of_rows & (tp != BinlogType.COMMIT) & (tp != BinlogType.ROLLBACK))
    few = summary_by_payload(segment, [walk.payload(number) for number in others.tolist()])
    return Summary(np.unique(started[of_rows]), *ids, *answers, few.ddl, few.jobs, few.tables)


def summary_by_payload(segment: Segment, payloads: Iterable[tuple[int, bytes]] | None = None) -> Summary:
    """The slow twin. payloads: some of the segment's, with where each stands in it. Raises StreamCorrupt,
    UnknownEvent.
    """
    rows: dict[int, tuple[int, ...]] = {}
    ddl: dict[int, DdlBinlog] = {}
    answers: list[tuple[int, int]] = []
    jobs: dict[int, bytes] = {}
    tables: dict[int, bytes] = {}
    for at, payload in placed_payloads(segment) if payloads is None else payloads:
        binlog = binlog_of(payload)
        start_ts = binlog.start_ts
        match binlog.tp:
            case BinlogType.JOB:
                jobs[binlog.ddl_job_id] = binlog.prewrite_value
            case BinlogType.TABLES:
                tables[start_ts] = binlog.prewrite_value
            case BinlogType.COMMIT:
                answers.append((start_ts, binlog.commit_ts))
            case BinlogType.ROLLBACK:
                if not binlog.is_fake:
                    answers.append((start_ts, ROLLED_BACK))
            case BinlogType.PREWRITE if binlog.ddl_job_id:
                query = binlog.ddl_query.decode(errors="replace")
                ddl[start_ts] = DdlBinlog(
                    binlog.ddl_job_id, binlog.ddl_schema_state, query, segment.file, segment.start_pos + at
                )
            case BinlogType.PREWRITE:
                rows[start_ts] = table_ids_of(binlog.prewrite_value)
    ids = _pairs((start_ts, table_id) for start_ts, table_ids in rows.items() for table_id in table_ids)
    return Summary(np.array(sorted(rows), np.int64), *ids, *_pairs(answers), ddl, jobs, tables)


def _pairs(entries: Iterable[tuple[int, int]]) -> tuple[Words, Words]:
    first, second = np.array([*entries], np.int64).reshape(-1, 2).T
    return each_once(first, second)


def each_once(first: Words, second: Words) -> tuple[Words, Words]:
    """Pairs, in order, each once."""
    order = np.lexsort((second, first))
    first, second = first[order], second[order]
    new = np.ones(len(first), np.bool_)
    new[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    return first[new], second[new]


def moves_sequence(query: str) -> bool:
    """Whether a DDL binlog is of a sequence's next value, which no job stands for."""
    return _MOVES_SEQUENCE.match(query) is not None
