"""A transaction that the server sends again stops a stream that asked by GTID."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tidegate.config import Flavour
from tidegate.errors import StreamCorrupt
from tidegate.mysql.stream.gtid_tracker import GtidTracker
from tidegate.mysql.stream.packet_walk import MARIADB_GTID, MYSQL_GTID, TAGGED_GTID

SERVER = uuid.UUID("3e11fa47-71ca-11e1-9e33-c80aa9429562")
_HALVES = [int.from_bytes(SERVER.bytes[at : at + 8], "little") for at in (0, 8)]


def _run(kind: int, high: int, low: int, first: int, last: int) -> dict[str, Any]:
    return {"kind": kind, "high": high, "low": low, "first": first, "last": last}


def _mysql(first: int, last: int) -> dict[str, Any]:
    return _run(MYSQL_GTID, *_HALVES, first, last)


@pytest.mark.parametrize("again", [(1, 1), (5, 5), (4, 6), (7, 7), (6, 8), (6, 9)])
def test_mysql(again: tuple[int, int]) -> None:
    strict, lax = (GtidTracker(Flavour.MYSQL, f"{SERVER}:1-5:7", strict=strict) for strict in (True, False))
    with pytest.raises(StreamCorrupt, match=rf"sent {SERVER}:{again[0]}-{again[1]} again"):
        strict.add([_mysql(*again)], "one at b.1:4")
    lax.add([_mysql(*again)], "one at b.1:4")
    assert str(lax) in (f"{SERVER}:1-5:7", f"{SERVER}:1-7", f"{SERVER}:1-5:6-8", f"{SERVER}:1-8", f"{SERVER}:1-9")


def test_a_transaction_that_others_overtook_is_new() -> None:
    tracker = GtidTracker(Flavour.MYSQL, f"{SERVER}:1-5:7", strict=True)
    tracker.add([_mysql(6, 6), _mysql(8, 10)], "one at b.1:4")
    assert str(tracker) == f"{SERVER}:1-10"


def test_mysql_with_a_tag() -> None:
    tracker = GtidTracker(Flavour.MYSQL, "", strict=True)
    run = _run(TAGGED_GTID, tracker.tagged(f"{SERVER}:tag"), 0, 1, 3)
    tracker.add([_mysql(1, 3), run], "one at b.1:4")
    with pytest.raises(StreamCorrupt, match="tag:1-3 again"):
        tracker.add([run], "one at b.1:4")


def test_mariadb() -> None:
    strict, lax = (GtidTracker(Flavour.MARIADB, "0-1-5,1-2-9", strict=strict) for strict in (True, False))
    for tracker in (strict, lax):
        tracker.add([_run(MARIADB_GTID, 0, 1, 6, 7)], "one at b.1:4")
    with pytest.raises(StreamCorrupt, match="sent 1-2-9 after 1-2-9"):
        strict.add([_run(MARIADB_GTID, 1, 2, 9, 9)], "one at b.1:4")
    lax.add([_run(MARIADB_GTID, 1, 2, 3, 3)], "one at b.1:4")
    assert str(lax) == "0-1-7,1-2-3"
