"""Rows that a server logged and then took back, where a segment doesn't hold the whole transaction.

In:  a recorded file (tests/golden) in which transactions end with ROLLBACK, or go back to a savepoint.
Out: the decoder leaves out what it knows to be rolled back, and else holds tables rather than keep rows of an earlier
     segment that a later one takes back. (That whole transactions are right is shown by test_golden_truth.py.)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.kit.decoding import ALL_TIME, changed_rows, index_segment, segment, segment_of_file
from tests.unit.binlog.golden import GOLDEN
from tidegate.binlog.index.event_index import EventIndex
from tidegate.binlog.index.outcome import UNDOES_EARLIER, UNDONE
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.binlog.rows.decode import decode_segment
from tidegate.binlog.transaction_scan import BEGINS, ENDS, ROWS, SAVEPOINT
from tidegate.segments.result import CommitSpan
from tidegate.tables import EVERY_TABLE, SegmentFlag

CONTENT = (GOLDEN / "mariadb114_rollback_logged" / "events.binlog").read_bytes()
WHOLE = index_segment(segment_of_file(CONTENT))
NAME = ("golden", "t")


def rolled_back_transaction() -> tuple[int, int]:
    """(first, last) event of one that ends with ROLLBACK."""
    bits = WHOLE.events[:, K.BITS]
    begin = 0
    for number, said in enumerate(bits.tolist()):
        begin = number if said & BEGINS else begin
        undone = (bits[begin:number] & UNDONE) != 0
        if said & ENDS and undone.any() and b"ROLLBACK" in WHOLE.event(number):
            return begin, number
    raise AssertionError("the file has no such transaction")


def cut(begin: int, start: int, stop: int) -> EventIndex:
    """Events start to stop, behind the context of the transaction that began at begin."""
    first = index_segment(segment_of_file(CONTENT)).segment.context
    gtid = WHOLE.event(begin)
    offsets = WHOLE.events[:, K.OFFSET]
    return index_segment(segment(first + gtid, CONTENT[4 + offsets[start] : 4 + offsets[stop]]))


def test_a_rollback_of_what_an_earlier_segment_began_holds_the_tables_named_unless_it_is_known() -> None:
    begin, end = rolled_back_transaction()
    index = cut(begin, begin + 1, end + 1)
    assert index.events[-1, K.BITS] & UNDOES_EARLIER
    windows = {NAME: ALL_TIME, ("golden", "other"): ALL_TIME}
    for names, held in (("golden.t",), {NAME}), ((EVERY_TABLE,), set(windows)):
        found = decode_segment(replace(index.segment, tables=names), {}, windows)
        assert {(p.database, p.table) for p in found.problems} == held
        assert all("rolled back" in p.message for p in found.problems)
    commit_ts = int(index.events[-1, K.COMMIT_TS])
    flagged = replace(index.segment, tables=(EVERY_TABLE,), flags=SegmentFlag.ROLLED_BACK, min_commit_ts=commit_ts)
    known = decode_segment(flagged, {}, windows)
    assert (known.problems, known.changes) == ((), ())
    assert known.ledger.ignored["rolled back"]


def test_outside_the_window_it_stops_nobody() -> None:
    begin, end = rolled_back_transaction()
    made = cut(begin, begin + 1, end + 1).segment
    assert changed_rows(decode_segment(made, {}, {NAME: CommitSpan(0, 1)})) == []


def test_back_to_a_savepoint_that_the_segment_holds_needs_no_earlier_one() -> None:
    bits = WHOLE.events[:, K.BITS]
    saves = np.flatnonzero(bits & SAVEPOINT)
    back = next(int(n) for n in saves if b"ROLLBACK TO" in WHOLE.event(int(n)))
    begin = int(np.flatnonzero(bits[:back] & BEGINS)[-1])
    index = cut(begin, begin + 1, back + 1)
    undone = index.events[:, K.BITS] & UNDONE != 0
    assert undone.any()
    assert not (undone & (index.events[:, K.BITS] & ROWS == 0)).any()
    assert not (index.events[:, K.BITS] & UNDOES_EARLIER).any()
