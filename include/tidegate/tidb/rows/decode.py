"""The rows of a segment's prewrites that are committed, as changes of tables.

In:  a Segment of a Pump; versions with TiDB's own description; start_ts -> commit_ts of those that are wanted.
Out: DecodedSegments, in order of arrival, which isn't commit order: whoever takes them sorts.

Compiled code finds payloads and rows (walk.py) and makes columns of them, table by table
(batch.py). If it gives back the rows of a table in a piece, by_row.py reads them. If a segment's
bytes aren't in TiDB's form, by_row.py reads all of it. Both then give the same, and each fault is
reported in one place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.commit_ts import FOREVER
from tidegate.errors import DecodeError, StreamCorrupt, UnsupportedValue
from tidegate.limits import TIDB_PIECE_BYTES, TIDB_PIECE_CELLS_BYTES
from tidegate.remedy import REPORT
from tidegate.schema.model.columns import TableVersion
from tidegate.segments.answers import Answers
from tidegate.segments.result import CommitSpan, DecodedSegment, Known, Ledger, TableChanges
from tidegate.segments.segment import Segment
from tidegate.tidb.kernel import layout as T  # noqa: N812 - a page of constants
from tidegate.tidb.records.payload import BinlogType, Mutation, mutations_of
from tidegate.tidb.rows.batch import decode_records
from tidegate.tidb.rows.by_row import Decoding, Name, Reading
from tidegate.tidb.rows.row_plan import plan_of
from tidegate.tidb.rows.walk import Walk, walk_of

Words = npt.NDArray[np.int64]
_CELL_BYTES: Final = 8


def decode_in_pieces(
    segment: Segment,
    versions: Mapping[Name, Sequence[TableVersion]],
    windows: Mapping[Name, CommitSpan],
    *,
    known: Known,
) -> Iterator[DecodedSegment]:
    """Raises StreamCorrupt, UnknownEvent."""
    slow = Decoding(segment, versions, windows, known.answers or {})
    walk = walk_of(segment.payload)
    pieces = Pieces(slow, walk) if walk is not None else None
    if pieces is None or not pieces.whole:
        yield from slow.run()
        return
    for piece in pieces.read():
        changes = []
        for reading, batch in piece.batches:
            piece.ledger.rows += batch.num_rows
            changes.append(TableChanges(*reading.name, reading.version.version, batch))
        yield DecodedSegment(tuple(changes), tuple(slow.problems.values()), piece.ledger)


@dataclass(frozen=True, slots=True)
class DecodedPiece:
    """Some transactions, or some rows of a large one.

    batches: the rows of each version that has any, by name. rows: where each row of the piece lies; first: so many were
    in earlier pieces.
    """

    ledger: Ledger
    batches: list[tuple[Reading, pa.RecordBatch]]
    rows: Words
    first: int


class Pieces:
    """One segment. slow: knows the wanted tables, and reads the rest after compiled code. whole: whether all rows are
    where their payloads say. wanted: numbers of the payloads to read. logged: each side of an update by itself.
    """

    def __init__(self, slow: Decoding, walk: Walk, *, logged: bool = False) -> None:
        self._slow = slow
        self._walk = walk
        self._logged = logged
        self._rules = _rules(walk.payloads, slow.answers)
        self.wanted = self._rules.pop("")
        counts = walk.row_counts(self.wanted)
        self.whole = counts is not None
        self._widest = widest = max(
            (len(reading.converters) for same in slow.readings.values() for reading in same), default=0
        )
        self._bounds = [
            (np.cumsum(walk.payloads[self.wanted, T.VALUE_BYTES]), TIDB_PIECE_BYTES),
            (
                np.cumsum(_CELL_BYTES * widest * counts) if counts is not None else np.empty(0, np.int64),
                TIDB_PIECE_CELLS_BYTES,
            ),
        ]
        self._first = 0

    def read(self) -> Iterator[DecodedPiece]:
        """Raises StreamCorrupt."""
        ledger = Ledger(0)
        for rule, numbers in self._rules.items():
            size = int(self._walk.payloads[numbers, T.BYTES].sum())
            ledger.payload_bytes += size
            ledger.ignore(rule, size)
        at = 0
        while at < len(self.wanted):
            upto = max(self._end(at), at + 1)
            yield from self._pieces(self.wanted[at:upto], ledger)
            at, ledger = upto, Ledger(0)
        if not len(self.wanted):
            yield DecodedPiece(ledger, [], np.empty((0, T.ROW_WORDS), np.int64), 0)

    def _end(self, at: int) -> int:
        """Behind the last transaction of a piece that begins with this one: it passes no bound."""
        return min(
            int(np.searchsorted(ends, (ends[at - 1] if at else 0) + most, side="right")) for ends, most in self._bounds
        )

    def _pieces(self, numbers: Words, ledger: Ledger) -> Iterator[DecodedPiece]:
        """More than one of a transaction that passes a bound alone."""
        rows = self._walk.rows(numbers)
        if rows is None:
            raise self._corrupt(numbers)
        payloads = self._walk.payloads
        stamps = self._slow.answers.stamps_of(payloads[numbers, T.START_TS])
        rows[:, T.ROW_COMMIT_TS] = stamps[np.searchsorted(numbers, rows[:, T.ROW_PAYLOAD])]
        rows[:, T.ROW_ORDINAL] = 2 * (self._first + 1 + np.arange(len(rows)))
        good, bad = (np.zeros(len(payloads), np.bool_) for _ in range(2))
        edges = self._edges(rows) if len(numbers) == 1 else [0, len(rows)]
        for start, end in pairwise(edges):
            part, made = rows[start:end], []
            for name, own_rows in sorted(self._by_name(part).items()):
                batches, failed = self._table(name, own_rows, ledger)
                for _, records in own_rows:
                    lost = records[:, T.ROW_ORDINAL] >= failed
                    bad[records[lost, T.ROW_PAYLOAD]] = True
                    good[records[~lost, T.ROW_PAYLOAD]] = True
                made += batches
            if end == len(rows):
                size = payloads[numbers, T.BYTES]
                lost = bad[numbers] & ~good[numbers]
                ledger.payload_bytes += int(size.sum())
                ledger.quarantined_bytes += int(size[lost].sum())
                ledger.decoded_bytes += int(size[~lost].sum())
            self._first += len(part)
            yield DecodedPiece(ledger, made, part, self._first - len(part))
            ledger = Ledger(0)

    def _edges(self, rows: Words) -> list[int]:
        """Where the pieces of a transaction's rows begin, and where the last one ends."""
        sizes = np.cumsum(rows[:, T.ROW_END] - rows[:, T.ROW_START])
        most = max(TIDB_PIECE_CELLS_BYTES // (_CELL_BYTES * max(self._widest, 1)), 1)
        edges = [0]
        while edges[-1] < len(rows):
            at = edges[-1]
            upto = int(np.searchsorted(sizes, (sizes[at - 1] if at else 0) + TIDB_PIECE_BYTES, side="right"))
            edges.append(min(max(upto, at + 1), at + most, len(rows)))
        return edges if len(rows) else [0, 0]

    def _by_name(self, rows: Words) -> dict[Name, list[tuple[Reading, Words]]]:
        """The rows that are asked for, by table and version."""
        by_name: dict[Name, list[tuple[Reading, Words]]] = {}
        for table_id in np.unique(rows[:, T.ROW_TABLE_ID]).tolist():
            left = rows[rows[:, T.ROW_TABLE_ID] == table_id]
            for reading in self._slow.readings.get(table_id, ()):
                stamps, window = left[:, T.ROW_COMMIT_TS], self._slow.windows[reading.name]
                held = (stamps >= reading.version.commit_ts) & (stamps < reading.upto_ts)
                own_rows = left[held & (stamps > window.after_ts) & (stamps <= window.upto_ts)]
                if len(own_rows):
                    by_name.setdefault(reading.name, []).append((reading, own_rows))
                left = left[~held]
        return {name: _joined(by_reading) for name, by_reading in by_name.items()}

    def _table(
        self, name: Name, rows: list[tuple[Reading, Words]], ledger: Ledger
    ) -> tuple[list[tuple[Reading, pa.RecordBatch]], int]:
        """A table's rows; and from which ordinal on they can't be had."""
        if name in self._slow.problems:
            return [], 0
        read, null_dates = [], 0
        for reading, records in sorted(rows, key=lambda pair: pair[0].version.version):
            plan = plan_of(reading.version, reading.zero_dates)
            made = None
            with suppress(DecodeError, UnsupportedValue):  # the slow decoder says at which row
                if plan is not None:
                    made = decode_records(self._walk.data, records, plan, self._slow.segment.seq, logged=self._logged)
            if made is None:
                return self._by_row(rows, ledger)
            read.append((reading, made.rows))
            null_dates += made.null_dates
        ledger.null_dates += null_dates
        return read, FOREVER

    def _by_row(
        self, rows: list[tuple[Reading, Words]], ledger: Ledger
    ) -> tuple[list[tuple[Reading, pa.RecordBatch]], int]:
        """The same, value by value, in order of arrival."""
        payloads, start_pos, data = self._walk.payloads, self._slow.segment.start_pos, self._walk.data
        of = np.concatenate([np.full(len(records), at) for at, (_, records) in enumerate(rows)])
        every = np.concatenate([records for _, records in rows])
        for number in np.argsort(every[:, T.ROW_ORDINAL], kind="stable").tolist():
            record, reading = every[number].tolist(), rows[of[number]][0]
            self._slow.ordinal = record[T.ROW_ORDINAL]
            row = data[record[T.ROW_START] : record[T.ROW_END]].tobytes()
            at = start_pos + int(payloads[record[T.ROW_PAYLOAD], T.AT])
            if not self._slow.add(reading, Mutation(record[T.ROW_KIND]), row, record[T.ROW_COMMIT_TS], at):
                self._slow.taken(ledger)
                return [], record[T.ROW_ORDINAL]
        return self._slow.taken(ledger), FOREVER

    def _corrupt(self, numbers: Words) -> StreamCorrupt:
        """The error for rows that contradict their sequence."""
        for at, size in self._walk.payloads[numbers][:, [T.VALUE_AT, T.VALUE_BYTES]].tolist():
            try:
                for _ in mutations_of(self._walk.data[at : at + size].tobytes()):
                    pass
            except StreamCorrupt as error:
                return error
        return StreamCorrupt("rows aren't where their payload says", where=self._slow.segment.where, remedy=REPORT)


def _joined(rows: list[tuple[Reading, Words]]) -> list[tuple[Reading, Words]]:
    """Each reading once: a table that was divided anew is told of under two ids."""
    by_reading: dict[int, tuple[Reading, list[Words]]] = {}
    for reading, records in rows:
        by_reading.setdefault(id(reading), (reading, []))[1].append(records)
    joined = [(reading, np.concatenate(parts)) for reading, parts in by_reading.values()]
    return [(reading, records[np.argsort(records[:, T.ROW_ORDINAL], kind="stable")]) for reading, records in joined]


def _rules(payloads: Words, answers: Answers) -> dict[str, Words]:
    """The numbers of payloads to skip by a rule; the wanted ones under ""."""
    prewrites = payloads[:, T.TP] == BinlogType.PREWRITE
    ddl = prewrites & (payloads[:, T.JOB_ID] != 0)
    rows = np.flatnonzero(prewrites & ~ddl)
    started = payloads[rows, T.START_TS]
    first = np.zeros(len(rows), np.bool_)
    first[np.unique(started, return_index=True)[1]] = True
    asked = answers.among(started)
    return {
        "": np.ascontiguousarray(rows[asked & first]),
        "transaction frame": np.flatnonzero(~prewrites),
        "ddl": np.flatnonzero(ddl),
        "outside the window" if answers else "prewrite": rows[~(asked & first)],
    }
