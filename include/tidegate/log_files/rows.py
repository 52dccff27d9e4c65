"""Rows events of binlog files into lines, one table version after the other.

In:  an EventIndex; how a TABLE_MAP becomes a plan.
Out: Lines in log order; the fate of each rows event; faults, one line each.

A table that can't be decoded is reported once and held: its rows are left out from there on. Other
tables go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from tidegate import tables
from tidegate.binlog.format.events import type_name
from tidegate.binlog.format.table_map import read_name
from tidegate.binlog.index.event_index import EventIndex
from tidegate.binlog.index.outcome import UNDONE
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.binlog.rows.batch import decode_images
from tidegate.binlog.rows.decode_plan import Plan
from tidegate.binlog.transaction_scan import ROWS
from tidegate.columnar.decoded import IMAGE_BEFORE, IMAGE_DELETE, IMAGE_INSERT, Images, RowsError
from tidegate.columnar.kernel import layout as L  # noqa: N812
from tidegate.errors import StreamCorrupt, Terminal, UnsupportedValue
from tidegate.limits import LINES_BYTES
from tidegate.log_files.as_json.column import ShownJson
from tidegate.log_files.events import JudgedEvents
from tidegate.log_files.ndjson import JsonLines, LineHead, in_order, lines_of
from tidegate.log_files.stats import DECODED, IGNORED, PENDING, QUARANTINED, FileStats
from tidegate.remedy import REPORT

Name = tuple[str, str]
_UNREAD: Final = -1


@dataclass(frozen=True, slots=True)
class Chosen:
    """plan: for some rows events of one TABLE_MAP. shown: its columns as lines show them."""

    plan: Plan
    shown: tuple[ShownJson, ...]


class Plans(Protocol):
    """How rows events become columns."""

    def follow(self, index: EventIndex, statements: list[int]) -> None:
        """Take notice of the DDL in an index, before its rows are asked for."""

    def choose(
        self, body: bytes, commit_ts: npt.NDArray[np.int64]
    ) -> list[tuple[npt.NDArray[np.int64], Chosen | Terminal]]:
        """The plans of the rows events under a TABLE_MAP, by their commit_ts, or why there is none."""


@dataclass(frozen=True, slots=True)
class RowOptions:
    """wanted: whether a table is asked for. lines: whether lines are made at all. report: takes each fault; note:
    remarks about files without a fault.
    """

    wanted: Callable[[str, str], bool]
    lines: bool
    report: Callable[[Terminal], None]
    note: Callable[[str], None] = lambda _line: None


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows events under one TABLE_MAP; commit_ts: of the answer that commits them, when they are an XA branch's."""

    index: EventIndex
    name: Name
    content: int
    numbers: npt.NDArray[np.int64]
    commit_ts: int | None


class RowDecoder:
    """From one index to the next only the held tables are remembered."""

    def __init__(self, plans: Plans, options: RowOptions) -> None:
        self._plans = plans
        self._options = options
        self._held: set[Name] = set()

    def decode(
        self, index: EventIndex, judged: JudgedEvents, stats: FileStats, commit_ts: int | None
    ) -> JsonLines | None:
        """Decode an index's rows; their fates go into judged. None when there are none, or no lines are asked for.

        commit_ts: of the answer, when this is a committed XA branch; otherwise rows of XA branches are left PENDING.
        """
        events = index.events
        rows = (events[:, K.BITS] & ROWS) != 0
        undone = (events[:, K.BITS] & UNDONE) != 0
        judged.fates[undone] = IGNORED["rolled back"]
        rows &= ~undone
        if commit_ts is None:
            deferred = rows & ((events[:, K.BITS] & K.XA_BIT) != 0)
            judged.fates[deferred] = PENDING
            rows &= ~deferred
        numbers = np.flatnonzero(rows)
        contents = events[numbers, K.CONTENT]
        stops = self._stops(judged)
        parts: list[JsonLines] = []
        for content in np.unique(contents).tolist():
            of_content = numbers[contents == content]
            try:
                name = self._name(index, content)
            except Terminal as error:
                judged.fates[of_content] = QUARANTINED
                self._options.report(placed(error, index, int(of_content[0])))
                continue
            if self._options.wanted(*name):
                parts += self._table(_Rows(index, name, content, of_content, commit_ts), judged, stops, stats)
            else:
                judged.fates[of_content] = IGNORED["table not asked for"]
        self._held |= set(stops)
        return in_order(parts) if parts else None

    def _name(self, index: EventIndex, content: int) -> Name:
        if content < 0:
            raise StreamCorrupt("rows event follows no TABLE_MAP of its table", remedy="copy the file again")
        return read_name(index.bodies[content])

    def _stops(self, judged: JudgedEvents) -> dict[Name, int]:
        """Table -> number of the event from which its rows are left out."""
        stops = dict.fromkeys(self._held, 0)
        for event, names in judged.holds:
            for name in names:
                stops.setdefault(name, event)
        return stops

    def _table(
        self, rows: _Rows, judged: JudgedEvents, stops: dict[Name, int], stats: FileStats
    ) -> Iterator[JsonLines]:
        """Decode the rows events under one TABLE_MAP; those that can't be are quarantined."""
        index = rows.index
        judged.fates[rows.numbers] = QUARANTINED
        numbers = rows.numbers[rows.numbers < stops.get(rows.name, len(index.events))]
        if not len(numbers):
            return
        for which, chosen in self._plans.choose(index.bodies[rows.content], index.events[numbers, K.COMMIT_TS]):
            for part in _portions(index, numbers[which]):
                good = part[part < stops.get(rows.name, len(index.events))]
                if not len(good):
                    break
                images, error = None, None
                if isinstance(chosen, Terminal):
                    error = (int(good[0]), chosen)
                else:
                    good, images, error = self._images(rows, good, chosen.plan)
                if error is not None:
                    stops[rows.name] = error[0]
                    self._options.report(placed(error[1], index, error[0], rows.name))
                if images is not None and not isinstance(chosen, Terminal):
                    judged.fates[good] = DECODED
                    _count(images, rows.name, stats)
                    if self._options.lines and images.rows.num_rows:
                        yield _lines(rows, good, images, chosen)

    def _images(
        self, rows: _Rows, numbers: npt.NDArray[np.int64], plan: Plan
    ) -> tuple[npt.NDArray[np.int64], Images | None, tuple[int, Terminal] | None]:
        """(events decoded, their images, the event at which it stopped and why)."""
        unread = np.flatnonzero(rows.index.rows_records(numbers)[:, L.EVENT_OP] == _UNREAD)
        error: tuple[int, Terminal] | None = None
        if len(unread):
            first = int(unread[0])
            kind = type_name(int(rows.index.events[numbers[first], K.TYPE]))
            what = f"rows events of type {kind} can't be decoded"
            error = (int(numbers[first]), UnsupportedValue(what, remedy=f"{REPORT}, and the server's version"))
            numbers = numbers[:first]
        while len(numbers):
            images, stopped = _decode(rows, numbers, plan)
            if stopped is None:
                return numbers, images, error
            error = (int(numbers[stopped[0]]), stopped[1])
            numbers = numbers[: stopped[0]]
        return numbers, None, error


def _portions(index: EventIndex, numbers: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """Rows events in runs of a few MB of lines, so that intermediate values stay in the CPU's cache."""
    ends = np.cumsum(index.events[numbers, K.SIZE])
    return np.split(numbers, np.flatnonzero(np.diff(ends // LINES_BYTES)) + 1)


_DATES: Final = "show such dates as null or text (--zero-dates)"


def _decode(
    rows: _Rows, numbers: npt.NDArray[np.int64], plan: Plan
) -> tuple[Images | None, tuple[int, Terminal] | None]:
    """Images of rows events; or which of them can't be decoded, and why."""
    index = rows.index
    events = index.rows_records(numbers)
    if rows.commit_ts is not None:
        events[:, L.EVENT_COMMIT_TS] = rows.commit_ts
    try:
        return decode_images(index.data, events, plan, index.segment.seq), None
    except RowsError as failed:
        error = failed.error
        if "zero_dates: error" in error.what:
            error = type(error)(error.what.replace(" (zero_dates: error)", ""), remedy=_DATES)
        return None, (failed.event, error)


def _count(images: Images, name: Name, stats: FileStats) -> None:
    stats.null_dates += images.null_dates
    codes = np.bincount(images.rows.column(tables.OP).to_numpy(), minlength=4)
    for op, code in (("insert", IMAGE_INSERT), ("update", IMAGE_BEFORE), ("delete", IMAGE_DELETE)):
        stats.add_rows(f"{name[0]}.{name[1]}", op, int(codes[code]))


def _lines(rows: _Rows, numbers: npt.NDArray[np.int64], images: Images, chosen: Chosen) -> JsonLines:
    index = rows.index
    ordinals = images.rows.column(tables.ORDINAL).to_numpy()
    events = numbers[np.searchsorted(index.events[numbers, K.OFFSET], ordinals, side="right") - 1]
    positions = index.segment.start_pos + index.events[events, K.ORIGIN]
    head = LineHead(*rows.name, index.segment.file)
    return lines_of(images, chosen.shown, head, positions)


def placed(error: Terminal, index: EventIndex, event: int, name: Name | None = None) -> Terminal:
    """The error with its place: file, position, and the table."""
    place = f"{index.segment.file}:{index.position(event)}"
    where = f"{name[0]}.{name[1]} at {place}" if name else place
    return type(error)(error.what, where=where, remedy=error.remedy)
