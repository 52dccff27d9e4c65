"""A server that died while it wrote a transaction, and began a file: the half of it is given up, the rest goes on."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.kit.decoding import index_segment
from tests.unit.binlog.encoding import events as e
from tests.unit.mysql.stream.test_beyond_4_gib import FILE, cutter_at, moved, received
from tidegate.binlog.format.events import EventFlag, EventType
from tidegate.lake.bronze.table import check_continues
from tidegate.mysql.stream.place import beginning
from tidegate.mysql.stream.place import check_continues as check_places
from tidegate.tables import SegmentFlag

NEXT = "binlog.000008"
HEAD = moved(e.format_description(), 0, flags=EventFlag.ARTIFICIAL)
MAPPED = e.table_map(5, "t", b"\x03", b"")
ROWS = e.rows(EventType.WRITE_ROWS_V1, 5, 1, e.image(e.integer(1)))


def placed(start: int, *parts: bytes) -> list[bytes]:
    found = []
    for part in parts:
        start += len(part)
        found.append(moved(part, start))
    return found


def started(*, by_a_restart: bool) -> bytes:
    """A file's FORMAT_DESCRIPTION, which says when the server was started with it."""
    event = bytearray(e.format_description())
    event[71:75] = e.SECONDS.to_bytes(4, "little") if by_a_restart else bytes(4)
    return bytes(event)


def to_next() -> bytes:
    rotate = e.event(EventType.ROTATE, (4).to_bytes(8, "little") + NEXT.encode())
    return moved(rotate, 0, flags=EventFlag.ARTIFICIAL)


HALF = placed(256, e.mariadb_gtid(1), MAPPED, ROWS, e.xid(), e.mariadb_gtid(2), MAPPED, ROWS)


@pytest.mark.parametrize("again", [False, True], ids=["streaming", "after a restart of capture"])
def test_the_half_of_a_transaction_is_given_up(again: bool, caplog: pytest.LogCaptureFixture) -> None:
    cutter = cutter_at(beginning(file=FILE, offset=256))
    stream, cutter.state["have"] = received([HEAD, *HALF])
    segments = [*cutter.advance(stream), *cutter.cut_now()]
    assert segments[-1].flags & SegmentFlag.OPEN_AT_END
    rest = [to_next(), *placed(4, started(by_a_restart=True))]
    if again:
        cutter = cutter_at(cutter.checkpoint)
        assert cutter.checkpoint.place.replay_from == 256
        rest = [HEAD, *HALF, *rest]
    stream, cutter.state["have"] = received(rest)
    cutter.state["read"] = 0
    segments += cutter.advance(stream)
    assert not cutter.open
    assert "given up" in caplog.text
    segments += cutter.cut_now()
    beat = cutter.heartbeat(e.SECONDS * 1000 + 5000)
    assert beat is not None
    whole = placed(cutter.checkpoint.place.offset, e.mariadb_gtid(2), MAPPED, ROWS, e.xid())
    stream, cutter.state["have"] = received(whole)
    cutter.state["read"] = 0
    segments += [beat, *cutter.advance(stream), *cutter.cut_now()]
    for before, after in pairwise(segments):
        check_continues(before, after)
        check_places(before, after)
    assert [bool(segment.flags & SegmentFlag.OPEN_AT_START) for segment in segments] == [False] * len(segments)
    for segment in segments:
        index_segment(segment)
    assert segments[-1].txn_count == 1


def test_a_new_file_without_a_restart_gives_nothing_up() -> None:
    cutter = cutter_at(beginning(file=FILE, offset=256))
    stream, cutter.state["have"] = received([HEAD, *HALF, to_next(), *placed(4, started(by_a_restart=False))])
    list(cutter.advance(stream))
    assert cutter.open
