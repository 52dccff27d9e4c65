"""What of a transaction on another server is compared, and how far it is read."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.binlog.format.events import HEADER_BYTES, EventType
from tidegate.mysql.history.other_history import _Event, _Gtid, _of, _Transaction

GTID = _Gtid(0, 11, 5)


def _gtid(gtid: _Gtid) -> _Event:
    head = bytes(5) + gtid.server.to_bytes(4, "little") + bytes(HEADER_BYTES - 9)
    body = gtid.sequence.to_bytes(8, "little") + gtid.domain.to_bytes(4, "little")
    return _Event(EventType.MARIADB_GTID, 0, head + body)


def _rows(*, seconds: int = 7, data: bytes = b"abcd") -> list[_Event]:
    return [
        _Event(EventType.TABLE_MAP, seconds, bytes(HEADER_BYTES)),
        _Event(EventType.WRITE_ROWS_V1, seconds, bytes(HEADER_BYTES + 8) + data),
    ]


def _end() -> _Event:
    return _Event(EventType.XID, 7, bytes(HEADER_BYTES))


def _taken(events: list[_Event]) -> _Transaction:
    made = _Transaction()
    for event in events:
        made.take(event)
    return made


def test_other_rows_are_another_transaction_and_the_same_ones_are_not() -> None:
    ours = _taken([*_rows(), _end()])
    same, other = (_of([_gtid(GTID), *_rows(data=data), _end()], GTID, ours) for data in (b"abcd", b"abce"))
    assert same is not None
    assert ours.differs(same) == ""
    assert other is not None
    assert ours.differs(other) == "it has other rows"


def test_a_transaction_that_is_larger_there_is_not_read_to_its_end() -> None:
    ours, read = _taken([*_rows(), _end()]), 0

    def endless() -> Iterator[_Event]:
        nonlocal read
        yield _gtid(GTID)
        while True:
            read += 1
            yield from _rows()

    there = _of(endless(), GTID, ours)
    assert there is not None
    assert not there.whole
    assert ours.differs(there) == ""
    assert read == 2


def test_of_a_transaction_that_is_not_captured_whole_the_time_is_compared() -> None:
    ours = _taken(_rows(seconds=7))
    there = _of([_gtid(GTID), *_rows(seconds=9), _end()], GTID, ours)
    assert there is not None
    assert ours.differs(there) == "it was written 2 s apart"
