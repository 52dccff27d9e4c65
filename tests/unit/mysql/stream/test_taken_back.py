"""A transaction of several segments whose end takes rows back: what is left out, and who is held.

In:  events made by hand, cut inside the transaction.
Out: capture's flags and names, the refs' marks, and what decode makes of each segment alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.kit.decoding import ALL_TIME, version
from tests.unit.binlog.encoding import events as e
from tests.unit.mysql.stream.test_beyond_4_gib import FILE, cutter_at, moved, received
from tidegate.binlog.format.events import EventFlag, EventType
from tidegate.binlog.rows.decode import decode_segment
from tidegate.mysql.stream.place import beginning
from tidegate.schema.model.columns import Column
from tidegate.segments.result import NOTHING_KNOWN
from tidegate.segments.segment import Segment
from tidegate.segments.window import SegmentRef, in_window, without_given_up
from tidegate.tables import SegmentFlag

HEAD = moved(e.format_description(), 0, flags=EventFlag.ARTIFICIAL)
NAMES = [("shop", name) for name in ("t", "u", "other")]
VERSIONS = {name: [version(*name, [Column(1, "id", "int", nullable=False)], ("id",))] for name in NAMES}
START = 256


def insert(table: str, *ids: int) -> bytes:
    """A statement: a TABLE_MAP and its rows."""
    images = b"".join(e.image(e.integer(number)) for number in ids)
    table_id = 5 + len(table)
    return e.table_map(table_id, table, b"\x03", b"") + e.rows(EventType.WRITE_ROWS_V1, table_id, 1, images)


def split(parts: bytes) -> list[bytes]:
    found = []
    while parts:
        size = int.from_bytes(parts[9:13], "little")
        found.append(parts[:size])
        parts = parts[size:]
    return found


def cut(*parts: bytes, again: bool = False) -> list[Segment]:
    """A segment of each part. again: capture starts anew before the last one."""
    cutter = cutter_at(beginning(file=FILE, offset=START))
    at, segments, sent = START, list[Segment](), list[bytes]()
    for number, part in enumerate(parts):
        events = []
        for event in split(part):
            at += len(event)
            events.append(moved(event, at))
        if again and number == len(parts) - 1:
            cutter = cutter_at(cutter.checkpoint)
            begin = cutter.checkpoint.place.replay_from
            known = [event for event in sent if int.from_bytes(event[13:17], "little") > begin]
            stream, cutter.state["have"] = received([HEAD, *known, *events])
        else:
            stream, cutter.state["have"] = received([*([] if number else [HEAD]), *events])
        cutter.state["read"] = 0
        segments += [*cutter.advance(stream), *cutter.cut_now()]
        sent += events
    return segments


def refs_of(segments: Sequence[Segment]) -> list[SegmentRef]:
    names = [name for name in SegmentRef.__dataclass_fields__ if name in Segment.__dataclass_fields__]
    plain = [SegmentRef(**{n: getattr(s, n) for n in names}, path="p", row_group=0, row=0) for s in segments]
    return without_given_up(plain)


def applied(segments: Sequence[Segment]) -> tuple[dict[str, list[int]], set[str]]:
    """(ids that decode gives per table, tables that are held)."""
    ids, held = dict[str, list[int]](), set[str]()
    by_seq = {segment.seq: segment for segment in segments}
    for ref in in_window(refs_of(segments), 0, 1 << 62):
        known = replace(NOTHING_KNOWN, rolled_back_ts=ref.rolled_back_ts)
        done = decode_segment(by_seq[ref.seq], VERSIONS, dict.fromkeys(NAMES, ALL_TIME), known=known)
        held |= {problem.table for problem in done.problems}
        for change in done.changes:
            ids.setdefault(change.table, []).extend(change.batch.column("id").to_pylist())
        done.ledger.check()
    return ids, held


BEFORE = e.mariadb_gtid(1) + insert("t", 1) + e.xid()
AFTER = e.mariadb_gtid(3) + insert("t", 9) + e.xid()
BEGIN = e.mariadb_gtid(2)


@pytest.mark.parametrize("again", [False, True], ids=["streaming", "after a restart of capture"])
def test_a_rollback_takes_back_its_transactions_rows_of_all_segments_and_no_others(again: bool) -> None:
    for end in (e.query("ROLLBACK"), e.compressed_query("ROLLBACK")):
        segments = cut(BEFORE + BEGIN + insert("t", 2), insert("u", 3), insert("t", 4) + end + AFTER, again=again)
        assert len(segments) == 3
        assert [bool(s.flags & SegmentFlag.ROLLED_BACK) for s in segments] == [False, False, True]
        assert applied(segments) == ({"t": [1, 9]}, set())


def test_a_rollback_in_the_segment_of_its_transaction_says_nothing_of_earlier_ones() -> None:
    whole = BEGIN + insert("t", 2) + e.query("ROLLBACK")
    segments = cut(BEFORE + BEGIN + insert("t", 2), e.xid() + whole + AFTER)
    assert not segments[1].flags & SegmentFlag.ROLLED_BACK
    assert applied(segments) == ({"t": [1, 2, 9]}, set())


def test_two_rolled_back_transactions_may_meet_in_a_segment() -> None:
    back = e.query("ROLLBACK")
    segments = cut(
        BEFORE + BEGIN + insert("t", 2), insert("t", 3) + back + AFTER + BEGIN + insert("t", 5), back + AFTER
    )
    assert [ref.rolled_back_ts > 0 for ref in refs_of(segments)] == [True, True, False]
    assert applied(segments) == ({"t": [1, 9, 9]}, set())


def test_a_statement_in_a_rolled_back_transaction_still_holds_the_table_that_it_changes() -> None:
    """It may have changed a table without transactions, which no ROLLBACK takes back."""
    change = e.query("INSERT INTO shop.u VALUES (1)")
    segments = cut(BEFORE + BEGIN + insert("t", 2) + change, insert("t", 3) + e.query("ROLLBACK") + AFTER)
    assert applied(segments) == ({"t": [1, 9]}, {"u"})


@pytest.mark.parametrize("again", [False, True], ids=["streaming", "after a restart of capture"])
def test_back_to_a_savepoint_of_an_earlier_segment_holds_what_the_transaction_names(again: bool) -> None:
    first = BEFORE + BEGIN + e.query("SAVEPOINT `s`") + insert("t", 2)
    back = e.query("ROLLBACK TO `s`")
    segments = cut(first, insert("u", 3) + insert("t", 5), back + e.xid() + AFTER, again=again)
    assert set(segments[2].tables) == {"shop.t", "shop.u"}, "whoever asks for one of them must look at it"
    ids, held = applied(segments)
    assert held == {"t", "u"}
    assert "other" not in ids
    begun_here = cut(first, e.query("SAVEPOINT `r`") + insert("u", 3) + e.query("ROLLBACK TO `r`") + e.xid() + AFTER)
    assert applied(begun_here) == ({"t": [1, 2, 9]}, set())


def test_a_savepoint_in_a_transaction_that_is_rolled_back_whole_holds_nobody() -> None:
    first = BEFORE + BEGIN + e.query("SAVEPOINT `s`") + insert("t", 2)
    segments = cut(first, insert("u", 3) + e.query("ROLLBACK TO `s`"), insert("t", 4) + e.query("ROLLBACK") + AFTER)
    assert applied(segments) == ({"t": [1, 9]}, set())
