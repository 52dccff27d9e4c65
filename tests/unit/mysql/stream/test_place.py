"""What a segment's place in a binlog must have to do with the one before it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.segments import segment
from tidegate.errors import StreamCorrupt
from tidegate.mysql.stream.place import NOTHING, check_continues, without_open
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentFlag, SegmentKind

PLAIN, INSIDE = SegmentFlag(0), SegmentFlag.OPEN_AT_START


def before(**changes: object) -> Segment:
    """Ends at binlog.000001:11 on server 1, between transactions, with GTIDs."""
    return replace(segment(1), **({"flags": PLAIN} | changes))  # type: ignore[arg-type]


def after(file: str, start: int, **changes: object) -> Segment:
    return replace(segment(2), **({"flags": PLAIN, "file": file, "start_pos": start, "end_pos": start + 9} | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (before(), after("binlog.000001", 11)),
        (before(gtid_executed=""), after("binlog.000001", 11)),
        (before(gtid_executed=""), after("binlog.000002", 4)),
        (before(), after("binlog.000001", 500)),
        (before(), after("binlog.000002", 500)),
        (before(), after("binlog.000001", 500, server_id=2)),
        (before(), after("other.000001", 4)),
        (before(flags=SegmentFlag.OPEN_AT_END), after("binlog.000001", 500, server_id=2)),
        (before(gtid_executed=""), after("binlog.000009", 77, kind=SegmentKind.GAP)),
        (before(gtid_executed="", kind=SegmentKind.GAP), after("binlog.000009", 77)),
    ],
    ids=[
        "touches", "touches without GTIDs", "next file", "leaps by GTID", "next file by GTID", "another server by GTID",
        "another name of its files by GTID", "another server sends the half transaction anew", "a gap", "behind a gap",
    ],
)  # fmt: skip
def test_continues(first: Segment, second: Segment) -> None:
    check_continues(first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (before(gtid_executed=""), after("binlog.000001", 12)),
        (before(), after("binlog.000001", 10)),
        (before(gtid_executed=""), after("binlog.000002", 5)),
        (before(gtid_executed=""), after("binlog.000001", 11, server_id=2)),
        (before(flags=SegmentFlag.OPEN_AT_END), after("binlog.000001", 500)),
        (before(flags=SegmentFlag.OPEN_AT_END), after("binlog.000001", 4, server_id=2, flags=INSIDE)),
    ],
    ids=[
        "a hole", "an overlap", "the next file from its middle", "another server by position",
        "a leap in a transaction", "another server goes on with the half transaction",
    ],
)  # fmt: skip
def test_is_refused(first: Segment, second: Segment) -> None:
    with pytest.raises(StreamCorrupt, match=r"begins at .*, expected binlog\.000001:11"):
        check_continues(first, second)


def test_a_half_captured_transaction_is_read_again_from_where_none_was_open() -> None:
    opened = NOTHING.after(before(flags=SegmentFlag.OPEN_AT_END))
    still = opened.after(after("binlog.000001", 11, flags=SegmentFlag.OPEN_AT_START | SegmentFlag.OPEN_AT_END))
    assert (still.place.open, still.place.replay_from, still.end) == (True, 4, "binlog.000001:20")
    assert still.place.replay_commit_ts == before().prev_commit_ts
    given_up = without_open(still)
    assert (given_up.place.open, given_up.place.replay_commit_ts) == (False, still.resolved_ts)
    assert (given_up.seq, given_up.server, given_up.end) == (still.seq, (1, "uuid"), still.end)
