"""Logged rows that were rolled back, and final rows of XA branches, by their transaction's end.

In:  the events of an index, after the walk.
Out: the same, with UNDONE on rolled back rows, and without XA_BIT on rows of branches prepared and
     committed at once.

If a server thinks that a rollback can't undo everything, it writes the rows to the log and then
rolls them back. MySQL 5.6 and every MariaDB do so after CREATE or DROP TEMPORARY TABLE in the
transaction. MariaDB also does so if a table without transactions was changed since the savepoint.
Such a transaction ends with QUERY "ROLLBACK", or goes on after "ROLLBACK TO `name`". Rows of tables
without transactions aren't among the undone rows: in row format they have a transaction of their
own (sql/log.cc, use_trans_cache).

A transaction that began before the index can't be undone here. Each segment of a transaction knows
that the whole is rolled back, by a flag that capture gave the last one. A ROLLBACK TO an earlier
beginning is marked: it holds the tables the transaction has changed so far.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate.binlog.format.events import HEADER_BYTES, EventType
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.binlog.transaction_scan import BEGINS, ENDS, PREWRITE, ROWS, SAVEPOINT, STATEMENT, XA_ANSWER
from tidegate.errors import UnknownEvent
from tidegate.remedy import REFILL
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentFlag

UNDONE: Final = 1 << 21  # for a rows event: it is rolled back
UNDOES_EARLIER: Final = 1 << 22  # for a QUERY event: it rolls back rows from before this index
AT_ONCE: Final = 1 << 23  # for an XA_PREPARE event: it also commits, so its rows are final

_NAME: Final = re.compile(r"(?is)(?:SAVEPOINT|ROLLBACK TO)\s+(?:SAVEPOINT\s+)?(.*?)\s*")
_UNFINISHED: Final = REFILL

Data = npt.NDArray[np.uint8]
Events = npt.NDArray[np.int64]


def settle_outcomes(data: Data, events: Events) -> None:
    """Set and clear the bits in place. It costs next to nothing if nothing was rolled back."""
    bits = events[:, K.BITS]
    rollbacks = _rollbacks(data, events)
    prepares = np.flatnonzero(bits & PREWRITE)
    prepares = prepares[data[events[prepares, K.OFFSET] + HEADER_BYTES] != 0]
    if not len(rollbacks) and not len(prepares):
        return
    begins = np.flatnonzero(bits & BEGINS)
    ends = np.flatnonzero(bits & ENDS)
    for event in rollbacks.tolist():
        begin = _begin(begins, ends, event)
        if begin is not None:
            _undo(data, events, begin, event)
    for event in prepares.tolist():
        begin = _begin(begins, ends, event)
        if begin is not None and begin >= 0:
            events[begin:event, K.BITS] &= ~K.XA_BIT
            events[event, K.BITS] |= AT_ONCE


def undo_known(events: Events, segment: Segment, rolled_back_ts: int) -> None:
    """Mark the rows of transactions that end with ROLLBACK and aren't whole in the segment. These
    are the one that it starts in, if its flag says so, and the one it ends in, at rolled_back_ts
    (0: none).
    """
    known = {rolled_back_ts} if rolled_back_ts else set()
    if segment.flags & SegmentFlag.ROLLED_BACK:
        known.add(segment.min_commit_ts)
    for commit_ts in known:
        of_transaction = events[:, K.COMMIT_TS] == commit_ts
        events[of_transaction, K.BITS] &= ~UNDOES_EARLIER
        events[of_transaction & (events[:, K.BITS] & ROWS != 0), K.BITS] |= UNDONE


def rolled_back_too_late(where: str) -> UnknownEvent:
    """The error to raise at UNDOES_EARLIER."""
    return UnknownEvent("rows of earlier segments are rolled back here", where=where, remedy=_UNFINISHED)


def _rollbacks(data: Data, events: Events) -> npt.NDArray[np.int64]:
    """QUERY events with ROLLBACK or ROLLBACK TO: among ends of transactions and savepoints, those
    with "RO".
    """
    bits = events[:, K.BITS]
    ending = (bits & (ENDS | SAVEPOINT) != 0) & (bits & (STATEMENT | XA_ANSWER) == 0)
    numbers = np.flatnonzero(ending & (events[:, K.TYPE] == EventType.QUERY))
    at = _text_at(data, events[numbers])
    whole = at + 1 < events[numbers, K.END]
    numbers, at = numbers[whole], at[whole]
    return np.asarray(numbers[(data[at] | 0x20 == ord("r")) & (data[at + 1] | 0x20 == ord("o"))], np.int64)


def _text_at(data: Data, rows: Events) -> npt.NDArray[np.int64]:
    """Offsets of the statements in QUERY events. The walk has checked that they lie inside.

    Post-header: thread 4, seconds 4, database length 1, error 2, status variables' length 2.
    """
    body = rows[:, K.OFFSET] + HEADER_BYTES
    status = data[body + 11].astype(np.int64) | data[body + 12].astype(np.int64) << 8
    return np.asarray(body + 13 + status + data[body + 8] + 1, np.int64)


def _begin(begins: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], event: int) -> int | None:
    """First event of this event's transaction; -1 if it is before the index, None outside of a
    transaction.
    """
    at = int(np.searchsorted(begins, event, side="right")) - 1
    begin = int(begins[at]) if at >= 0 else -1
    at = int(np.searchsorted(ends, event, side="left")) - 1
    ended = int(ends[at]) if at >= 0 else -1
    return None if ended > begin or ended == begin >= 0 else begin


def _undo(data: Data, events: Events, begin: int, event: int) -> None:
    """Mark what a ROLLBACK or a ROLLBACK TO undoes."""
    first = begin
    if not events[event, K.BITS] & ENDS:
        name = _name(data, events, event)
        saved = begin + 1 + np.flatnonzero(events[begin + 1 : event, K.BITS] & SAVEPOINT)
        same = [number for number in saved.tolist() if _sets(data, events, number) == name]
        first = same[-1] if same else -1
    if first < 0:
        events[event, K.BITS] |= UNDOES_EARLIER
    undone = events[max(first, 0) : event]
    undone[undone[:, K.BITS] & ROWS != 0, K.BITS] |= UNDONE


def _sets(data: Data, events: Events, event: int) -> str | None:
    """Name of the savepoint an event sets; None if it sets none."""
    text = _text(data, events, event)
    return _name_in(text) if text[:1].upper() == "S" else None


def _name(data: Data, events: Events, event: int) -> str:
    return _name_in(_text(data, events, event))


def _text(data: Data, events: Events, event: int) -> str:
    at = int(_text_at(data, events[event : event + 1])[0])
    return data[at : int(events[event, K.END])].tobytes().decode(errors="surrogateescape")


def _name_in(text: str) -> str:
    """A savepoint's name in lower case, since case doesn't count. The servers write it in quotes."""
    match = _NAME.fullmatch(text)
    name = match[1] if match else text
    if len(name) > 1 and name[0] == name[-1] and name[0] in '`"':
        name = name[1:-1].replace(2 * name[0], name[0])
    return name.casefold()
