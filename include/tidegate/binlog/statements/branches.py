"""The XA branches of a segment, prepared or answered, in log order.

In:  a Segment.
Out: Pendings and PrewriteAnswers (segments/prewrites.py). A branch prepared and committed at once
     in one index isn't among them: its rows are final (outcome.py).

If a branch begins in an earlier segment, its began_seq is this segment's: only the neighbours know
where it began.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tidegate.binlog.format.xa import read_answer, read_prepare
from tidegate.binlog.index.event_index import EventIndex, index_pieces
from tidegate.binlog.index.outcome import AT_ONCE
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.binlog.statements.judged import query_at
from tidegate.binlog.transaction_scan import PREWRITE, ROWS, XA_ANSWER
from tidegate.errors import DecodeError, UnknownEvent
from tidegate.segments.prewrites import Pending, PrewriteAnswer
from tidegate.segments.segment import Segment

_ILLEGIBLE = "(a branch whose name can't be read)"


def prewrites(segment: Segment) -> list[Pending | PrewriteAnswer]:
    """Raises StreamCorrupt for broken bytes, UnknownEvent for an unknown format or
    compression.
    """
    parts: list[Pending | PrewriteAnswer] = []
    wrote: dict[int, set[str]] = {}  # tables of the transaction that continues in the next piece
    for index in index_pieces(segment):
        ends = np.flatnonzero(index.events[:, K.BITS] & (PREWRITE | XA_ANSWER))
        names = _names(index)
        for start_ts, more in wrote.items():
            names.setdefault(start_ts, set()).update(more)
        for event in ends.tolist():
            parts += _of_event(index, event, names)
        last = int(index.events[-1, K.COMMIT_TS]) if len(index.events) else 0
        wrote = {last: names[last]} if last in names else {}
    return parts


def _of_event(index: EventIndex, event: int, names: dict[int, set[str]]) -> Iterator[Pending | PrewriteAnswer]:
    bits, commit_ts = int(index.events[event, K.BITS]), int(index.events[event, K.COMMIT_TS])
    seq = index.segment.seq
    pos = index.position(event)
    if bits & PREWRITE:
        if bits & AT_ONCE:
            return
        try:
            prepare = read_prepare(index.event(event), index.checksum_bytes(event))
        except DecodeError as error:
            raise UnknownEvent(f"XA PREPARE can't be read: {error.what}", where=f"{index.segment.file}:{pos}") from None
        yield Pending(prepare.name, commit_ts, seq, seq, tuple(sorted(names.get(commit_ts, ()))))
        if prepare.one_phase:
            yield PrewriteAnswer(prepare.name, True, commit_ts, index.segment.file, pos)
        return
    try:
        answer = read_answer(query_at(index, event).sql)
    except UnknownEvent:
        answer = None
    # An answer that can't be read may commit any branch.
    name, committed = answer or (_ILLEGIBLE, True)
    if commit_ts in names:  # its rows are directly before it, and were never prepared
        yield Pending(name, commit_ts, seq, seq, tuple(sorted(names[commit_ts])))
    yield PrewriteAnswer(name, committed, commit_ts, index.segment.file, pos)


def _names(index: EventIndex) -> dict[int, set[str]]:
    """commit_ts of a branch -> the tables it wrote to, in this index."""
    events = index.events
    rows = events[(events[:, K.BITS] & ROWS != 0) & (events[:, K.BITS] & K.XA_BIT != 0)]
    rows = rows[rows[:, K.CONTENT] >= 0]
    if not len(rows):
        return {}
    pairs: npt.NDArray[np.int64] = np.unique(rows[:, [K.COMMIT_TS, K.CONTENT]], axis=0)
    known = [".".join(name) for name in index.names()]
    written: dict[int, set[str]] = {}
    for commit_ts, content in pairs.tolist():
        written.setdefault(commit_ts, set()).add(known[content])
    return written
