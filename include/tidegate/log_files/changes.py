"""The row changes of binlog files, table by table, without schema_history: what `tidegate decode` prints.

In:  LogFiles in order; how a TABLE_MAP becomes a plan.
Out: blocks of NDJSON lines in log order; FileStats; faults, one line each, as they are met.

A table that can't be decoded, or that a statement changed without rows in the log, is reported once
and left out from there on. The others go on. Rows of an XA branch come out at its XA COMMIT, with
the commit_ts of that transaction; until then only the branch's place is remembered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate.binlog.format.events import EventType
from tidegate.binlog.format.xa import Branch, read_answer, read_prepare
from tidegate.binlog.index.event_index import EventIndex, index_pieces
from tidegate.binlog.index.outcome import AT_ONCE, UNDOES_EARLIER, UNDONE
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.binlog.statements.judged import query_at
from tidegate.binlog.transaction_scan import BEGINS, ENDS, PREWRITE, ROWS, XA_ANSWER
from tidegate.errors import DecodeError, Terminal, UnknownEvent
from tidegate.log_files.events import JudgedEvents, judge
from tidegate.log_files.gtid_set import gtids_before
from tidegate.log_files.log_file import BinlogFile, FilePiece
from tidegate.log_files.ndjson import JsonLines, as_bytes
from tidegate.log_files.rows import Plans, RowDecoder, RowOptions, placed
from tidegate.log_files.stats import MAGIC, SKIPPED, XA_ROLLED_BACK, XA_UNANSWERED, FileStats, PieceFates
from tidegate.remedy import REPORT

Block = memoryview
_GTID_LISTS: Final = (int(EventType.PREVIOUS_GTIDS), int(EventType.MARIADB_GTID_LIST))


@dataclass(frozen=True, slots=True)
class _Run:
    """The walked bytes: a file, or with commit_ts one XA branch of it that was committed then; settled collects the
    fates of such a branch's rows as (fate, bytes).
    """

    log: BinlogFile
    stats: FileStats
    commit_ts: int | None = None
    settled: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Pending:
    """A prepared branch; began: commit_ts of its own transaction, by which stats know its bytes."""

    branch: Branch
    stats: FileStats
    began: int


class LogChanges:
    """Decodes files one after the other; held tables and pending XA branches live across files."""

    def __init__(self, plans: Plans, options: RowOptions) -> None:
        self._plans = plans
        self._options = options
        self._rows = RowDecoder(plans, options)
        self._pending: dict[str, _Pending] = {}
        self._began = (0, 0)  # (commit_ts, position) of the transaction that began last

    def decode(self, log: BinlogFile, stats: FileStats) -> Iterator[Block]:
        """Lines of all whole transactions of a file. Faults are reported, not raised."""
        stats.ignored[MAGIC] = settled = log.read_to
        try:
            for piece in log.pieces():
                yield from self._piece(piece, _Run(log, stats))
                settled = piece.segment.end_pos
        except Terminal as fault:
            self._options.report(fault)
        stats.quarantined += log.size - settled
        stats.server_version = log.format.server_version if log.format else ""

    def finish(self) -> list[str]:
        """Give branches without an answer their fates; returns their names."""
        for pending in self._pending.values():
            pending.stats.unanswered += 1
            pending.stats.answer(pending.began, [], XA_UNANSWERED)
        return list(self._pending)

    def _piece(self, piece: FilePiece, run: _Run) -> Iterator[Block]:
        fates = PieceFates()
        for index in index_pieces(piece.segment):
            _take_back(index, piece)
            judged = judge(index)
            if run.commit_ts is None:
                self._note(index, judged, run)
            branch = run.commit_ts is not None
            lines = self._rows.decode(index, judged, run.stats, run.commit_ts)
            if branch:
                judged.fates[(index.events[:, K.BITS] & ROWS) == 0] = SKIPPED
                fates.add(index, judged.fates)
                yield from _block(lines, 0, None)
            else:
                run.stats.add_events(index, fates.add(index, judged.fates))
                yield from self._with_branches(index, lines, run, piece)
        settled = fates.settle(piece.segment.payload)
        if run.commit_ts is None:
            run.stats.settle(settled)
        else:
            run.settled.extend((fate, count) for fate, count, _ in settled if fate != SKIPPED)

    def _note(self, index: EventIndex, judged: JudgedEvents, run: _Run) -> None:
        """Report faults, follow DDL, read what the file says of itself."""
        for event, error in judged.faults:
            self._report(index, event, error)
        self._plans.follow(index, judged.statements)
        for event in np.flatnonzero(np.isin(index.events[:, K.TYPE], _GTID_LISTS)).tolist():
            try:
                run.stats.gtids_before = gtids_before(index.event(event), index.checksum_bytes(event))
            except DecodeError as error:
                self._report(index, event, error)

    def _report(self, index: EventIndex, event: int, error: Terminal) -> None:
        self._options.report(placed(error, index, event))

    # --- XA -----------------------------------------------------------------------------------------

    def _with_branches(
        self, index: EventIndex, lines: JsonLines | None, run: _Run, piece: FilePiece
    ) -> Iterator[Block]:
        """The lines of an index, and those of branches where they are committed."""
        events = index.events
        done = 0
        noted = np.flatnonzero(events[:, K.BITS] & (BEGINS | PREWRITE | XA_ANSWER))
        for event in noted[_worth_a_look(events[noted, K.BITS])].tolist():
            bits = int(events[event, K.BITS])
            if bits & BEGINS:
                self._began = (int(events[event, K.COMMIT_TS]), index.position(event))
            if bits & PREWRITE:
                committed = self._prepared(index, event, run, piece.description)
            elif bits & XA_ANSWER:
                committed = self._answered(index, event)
            else:
                committed = None
            if committed is not None:
                before = int(events[event, K.OFFSET])
                upto = int(np.searchsorted(lines.ordinals, before)) if lines else 0
                yield from _block(lines, done, upto)
                done = upto
                yield from self._branch(committed, int(events[event, K.COMMIT_TS]))
        yield from _block(lines, done, None)

    def _prepared(self, index: EventIndex, event: int, run: _Run, description: bytes) -> _Pending | None:
        """Remember a branch; give it when it is committed by the same event."""
        try:
            prepare = read_prepare(index.event(event), index.checksum_bytes(event))
        except DecodeError as error:
            self._report(index, event, error)
            return None
        began, start = self._began
        branch = Branch(prepare.name, run.log.path, start, index.end_position(event), description)
        pending = _Pending(branch, run.stats, began)
        if prepare.one_phase:
            return None if index.events[event, K.BITS] & AT_ONCE else pending
        self._pending[prepare.name] = pending
        return None

    def _answered(self, index: EventIndex, event: int) -> _Pending | None:
        """The branch that a statement commits; None when it rolls one back, or none is known."""
        try:
            answer = read_answer(query_at(index, event).sql)
        except UnknownEvent as error:
            self._report(index, event, error)
            return None
        if answer is None:
            self._report(index, event, DecodeError("XA COMMIT or ROLLBACK can't be read", remedy=REPORT))
            return None
        name, committed = answer
        pending = self._pending.pop(name, None)
        if pending is None:
            if committed:
                place = f"{index.segment.file}:{index.position(event)}"
                self._options.note(
                    f"{place}: XA COMMIT {name}: its rows were prepared before these files; give the earlier ones too"
                )
            return None
        if committed:
            return pending
        pending.stats.answer(pending.began, [], XA_ROLLED_BACK)
        return None

    def _branch(self, pending: _Pending, commit_ts: int) -> Iterator[Block]:
        """Decode a committed branch from where it lies."""
        branch = pending.branch
        with BinlogFile(branch.path) as log:
            run = _Run(log, pending.stats, commit_ts)
            for piece in log.range(branch.start, branch.end, branch.description):
                yield from self._piece(piece, run)
        pending.stats.answer(pending.began, run.settled, "")


def _take_back(index: EventIndex, piece: FilePiece) -> None:
    """Mark rows of a large transaction that the file rolls back further on."""
    bits = index.events[:, K.BITS]
    if piece.undone:
        bits[(bits & ROWS) != 0] |= UNDONE
    if piece.undoes:
        bits[(bits & ENDS) != 0] &= ~UNDOES_EARLIER


def _worth_a_look(bits: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which BEGINS are right before a PREWRITE, or the last: only these can begin a branch."""
    prewrites = (bits & PREWRITE) != 0
    kept = (bits & (PREWRITE | XA_ANSWER)) != 0
    kept[:-1] |= prewrites[1:]
    if len(kept):
        kept[-1] = True
    return np.asarray(kept, np.bool_)


def _block(lines: JsonLines | None, start: int, stop: int | None) -> Iterator[Block]:
    if lines is not None:
        text = as_bytes(lines.texts[start:stop])
        if len(text):
            yield text
