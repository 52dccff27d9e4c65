"""decode.py's slow twin: the same changes, value by value in plain Python.

In:  a Segment of a Pump; versions with TiDB's own description; start_ts -> commit_ts of those that are wanted.
Out: DecodedSegments, in order of arrival, which isn't commit order: whoever takes them sorts.

A segment alone decides nothing, since a commit may be in another segment, of another Pump: without
answers all of it waits. The table id at the commit_ts gives a row's table, column ids give its
cells. A missing cell has the column's origin default.

It reads what compiled code leaves: tables with virtual columns, unknown kinds of values, and broken
bytes, whose fault it reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tidegate import tables
from tidegate.columnar.decoded import SYSTEM_FIELDS
from tidegate.commit_ts import FOREVER
from tidegate.errors import DecodeError, StreamCorrupt, UnsupportedValue
from tidegate.limits import TIDB_DECODE_ROWS
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.model.types import ZeroDates
from tidegate.segments.answers import Answers
from tidegate.segments.result import CommitSpan, DecodedSegment, Known, Ledger, Problem, TableChanges
from tidegate.segments.segment import Segment
from tidegate.tidb.codec.datum import Cells
from tidegate.tidb.jobs import TableInfo
from tidegate.tidb.records.enclosed import LENGTH_BYTES, payloads_of
from tidegate.tidb.records.payload import Binlog, BinlogType, Mutation, binlog_of
from tidegate.tidb.rows.canonical_values import Cell, Converter
from tidegate.tidb.rows.double_writes import changes_of
from tidegate.tidb.rows.mutation import row_change
from tidegate.tidb.tables.definitions import ids_of, info_of
from tidegate.tidb.values.stored import cell, comparable, computed

Name = tuple[str, str]


def decode_by_row(
    segment: Segment,
    versions: Mapping[Name, Sequence[TableVersion]],
    windows: Mapping[Name, CommitSpan],
    *,
    known: Known,
) -> Iterator[DecodedSegment]:
    """Raises StreamCorrupt, UnknownEvent."""
    return Decoding(segment, versions, windows, known.answers or {}).run()


@dataclass(slots=True)
class Reading:
    """A version of a table, and its rows that wait to become a batch."""

    name: Name
    version: TableVersion
    info: TableInfo
    upto_ts: int
    zero_dates: ZeroDates
    converters: list[Converter]
    virtual: bool
    key: list[int]  # places of the key's columns
    system: list[tuple[int, int, int]] = field(default_factory=list)  # op, commit_ts, ordinal
    rows: list[list[Cell]] = field(default_factory=list)

    def holds(self, commit_ts: int) -> bool:
        return self.version.commit_ts <= commit_ts < self.upto_ts

    def cells(self, row: Cells) -> list[Cell]:
        if self.virtual:
            by_id = computed(self.info, row)
            return [by_id[column.id] for column in self.info.shown]
        return [cell(column, row) for column in self.info.shown]

    def add(self, op: int, commit_ts: int, ordinal: int, cells: list[Cell]) -> None:
        self.system.append((op, commit_ts, ordinal))
        self.rows.append(cells)


class Decoding:
    """One segment. ordinal: of the last mutation; its row before it has this one, the one after it the next. waiting:
    rows in the readings.
    """

    def __init__(
        self,
        segment: Segment,
        versions: Mapping[Name, Sequence[TableVersion]],
        windows: Mapping[Name, CommitSpan],
        answers: Mapping[int, int],
    ) -> None:
        self.segment = segment
        self.windows = windows
        self.answers = Answers.of(answers)
        self.readings = _readings(versions, windows)
        self.problems: dict[Name, Problem] = {}
        self.ordinal = 0
        self.waiting = 0

    def run(self) -> Iterator[DecodedSegment]:
        for ledger in self.read():
            yield self._given(ledger)

    def read(self) -> Iterator[Ledger]:
        """In parts: what is accounted for of each, whose rows are then to be taken out of the readings."""
        ledger = Ledger(0)
        at, taken = self.segment.start_pos, set[int]()
        for payload in payloads_of(self.segment):
            size = len(payload) + LENGTH_BYTES
            ledger.payload_bytes += size
            binlog = binlog_of(payload)
            rule = self._rule(binlog, taken)
            if rule:
                ledger.ignore(rule, size)
            elif self.take(binlog, at):
                ledger.decoded_bytes += size
            else:
                ledger.quarantined_bytes += size
            if binlog.tp is BinlogType.PREWRITE:
                taken.add(binlog.start_ts)
            at += size
            if self.waiting >= TIDB_DECODE_ROWS:
                yield ledger
                ledger = Ledger(0)
        yield ledger

    def _rule(self, binlog: Binlog, taken: set[int]) -> str:
        """Why a payload has nothing for this reading; "" when it has."""
        if binlog.tp is not BinlogType.PREWRITE:
            return "transaction frame"
        if binlog.ddl_job_id:
            return "ddl"
        if binlog.start_ts not in self.answers:
            return "prewrite" if not self.answers else "outside the window"
        return "outside the window" if binlog.start_ts in taken else ""

    def take(self, binlog: Binlog, at: int) -> bool:
        """Whether a transaction's rows are changes now; False when they are all of tables with a problem."""
        commit_ts, good, bad = self.answers[binlog.start_ts], False, False
        for table_id, kind, data in changes_of(binlog.prewrite_value):
            self.ordinal += 2
            reading = next(
                (
                    version_reading
                    for version_reading in self.readings.get(table_id, ())
                    if version_reading.holds(commit_ts)
                ),
                None,
            )
            if reading is None or commit_ts not in self.windows[reading.name]:
                continue
            if reading.name in self.problems:
                bad = True
                continue
            if self.add(reading, kind, data, commit_ts, at):
                good = True
            else:
                bad = True
        return good or not bad

    def add(self, reading: Reading, kind: Mutation, data: bytes, commit_ts: int, at: int) -> bool:
        """Whether a row, whose `ordinal` is set, can be had."""
        try:
            self.changes(reading, commit_ts, *row_change(kind, data, reading.info))
        except (DecodeError, UnsupportedValue, StreamCorrupt) as error:
            self.fail(reading.name, error, commit_ts, at)
            return False
        return True

    def changes(self, reading: Reading, commit_ts: int, before: Cells | None, after: Cells | None) -> None:
        old = reading.cells(before) if before is not None else None
        new = reading.cells(after) if after is not None else None
        if old is not None and (new is None or _other_key(old, new, reading)):
            reading.add(tables.OP_DELETE, commit_ts, self.ordinal, old)
            self.waiting += 1
        if new is not None:
            reading.add(tables.OP_UPSERT, commit_ts, self.ordinal + 1, new)
            self.waiting += 1

    def fail(self, name: Name, error: Exception, commit_ts: int, at: int) -> None:
        """Its rows can't be had: the table is left out from here on."""
        self.problems.setdefault(name, self._problem(name, error, commit_ts, at))

    def _problem(self, name: Name, error: Exception, commit_ts: int, at: int) -> Problem:
        return Problem.of(name, error, (self.segment.file, at, commit_ts))

    def filled(self) -> list[Reading]:
        """Those with rows, by name and version."""
        every = {id(reading): reading for same in self.readings.values() for reading in same if reading.rows}
        return sorted(every.values(), key=lambda reading: (reading.name, reading.version.version))

    def _given(self, ledger: Ledger) -> DecodedSegment:
        changes = []
        for reading, batch in self.taken(ledger):
            ledger.rows += batch.num_rows
            changes.append(TableChanges(*reading.name, reading.version.version, batch))
        return DecodedSegment(tuple(changes), tuple(self.problems.values()), ledger)

    def taken(self, ledger: Ledger) -> list[tuple[Reading, pa.RecordBatch]]:
        """The readings' rows as batches, which they then have no more; not those of tables with a problem."""
        batches = []
        for reading in self.filled():
            try:
                batch = self.batch(reading, ledger)
            except (DecodeError, UnsupportedValue) as error:
                latest = max(stamp for _, stamp, _ in reading.system)
                self.fail(reading.name, error, latest, self.segment.start_pos)
            else:
                if reading.name not in self.problems:
                    batches.append((reading, batch))
            reading.rows, reading.system = [], []
        self.waiting = 0
        return batches

    def batch(self, reading: Reading, ledger: Ledger) -> pa.RecordBatch:
        system = np.array(reading.system, np.int64).reshape(-1, 3)
        columns = [
            converter.array([row[at] for row in reading.rows]) for at, converter in enumerate(reading.converters)
        ]
        for used in reading.converters:
            ledger.null_dates += used.nulls
            used.nulls = 0
        fields = [converter.field for converter in reading.converters]
        stamps = [
            pa.array(system[:, 0].astype(np.int8)),
            pa.array(system[:, 1]),
            pa.array(np.full(len(system), self.segment.seq, np.int64)),
            pa.array(system[:, 2]),
        ]
        return pa.RecordBatch.from_arrays([*stamps, *columns], schema=pa.schema([*SYSTEM_FIELDS, *fields]))


def _other_key(old: Sequence[Cell], new: Sequence[Cell], reading: Reading) -> bool:
    """Whether an update's row is another one to silver; without a key any is."""
    return not reading.key or any(
        comparable(old[at]) != comparable(new[at]) and _reads_differently(reading.converters[at], old[at], new[at])
        for at in reading.key
    )


def _reads_differently(converter: Converter, left: Cell, other: Cell) -> bool:
    """Whether silver has two values for two cells; of one that it can't have somebody else will say so."""
    try:
        first, second = (converter.array([cell])[0].as_py() for cell in (left, other))
    except (DecodeError, UnsupportedValue):
        return True
    return bool(first != second)


def _readings(
    versions: Mapping[Name, Sequence[TableVersion]], windows: Mapping[Name, CommitSpan]
) -> dict[int, list[Reading]]:
    """The versions of the tables that are asked for, by table id."""
    by_table: dict[int, list[Reading]] = {}
    for name, window in windows.items():
        own_versions = versions.get(name, ())
        ids = ids_of(own_versions)
        for at, version in enumerate(own_versions):
            upto_ts = own_versions[at + 1].commit_ts if at + 1 < len(own_versions) else FOREVER
            info = info_of(version)
            if info is None or upto_ts <= window.after_ts or version.commit_ts > window.upto_ts:
                continue
            if version.status is VersionStatus.ACTIVE:
                reading = _reading(name, version, info, upto_ts, window.zero_dates)
                for table_id in ids[at]:
                    by_table.setdefault(table_id, []).append(reading)
    return by_table


def _reading(name: Name, version: TableVersion, info: TableInfo, upto_ts: int, zero_dates: ZeroDates) -> Reading:
    pairs = zip(version.columns, info.shown, strict=True)
    converters = [
        Converter(column, described, zero_dates, in_key=column.id in version.key) for column, described in pairs
    ]
    places = {column.id: at for at, column in enumerate(version.columns)}
    virtual = any(column.is_virtual for column in info.shown)
    return Reading(name, version, info, upto_ts, zero_dates, converters, virtual, [places[id_] for id_ in version.key])
