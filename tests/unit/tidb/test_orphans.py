"""What has no answer is a rollback when TiDB had every chance to say otherwise, and never before."""

from __future__ import annotations

import time

import pytest

from tests.kit.tidb.pump_world import Fates
from tidegate.errors import SourceUnavailable
from tidegate.pump.cluster import safe_point_of, seconds_of
from tidegate.pump.orphans import PumpOrphans
from tidegate.tidb.records.mvcc import NOTHING
from tidegate.tidb.records.pairing import ROLLED_BACK, Pairing
from tidegate.tidb.records.payload import Binlog, BinlogType

SECOND = 1000 << 18
NODE, AGE = "one", 100
BEGAN, CAME = 1000 * SECOND, 5000 * SECOND  # a session that was idle for long before it committed


class Cluster:
    """A Pump's pairing at CAME, when the prewrite of BEGAN has come."""

    def __init__(self) -> None:
        self.fates = Fates({BEGAN: NOTHING})
        self.pairing = Pairing[int]([NODE])
        self.orphans = PumpOrphans(self.fates, AGE)
        self.named(CAME)
        self.pairing.take(Binlog(BinlogType.PREWRITE, BEGAN, prewrite_key=b"k"), NODE, 0)

    def named(self, tso: int) -> None:
        self.pairing.take(Binlog(BinlogType.ROLLBACK, tso, tso), NODE, 0)

    def told(self, after_seconds: int) -> list[tuple[int, int]]:
        """What a look says, so long after the prewrite came."""
        self.named(CAME + after_seconds * SECOND)
        self.orphans.ask_at = 0.0
        assert list(self.orphans.answers(self.pairing, NODE)) == []
        end = time.monotonic() + 120
        while time.monotonic() < end:
            self.orphans.ask_at = time.monotonic() + 60
            found = list(self.orphans.answers(self.pairing, NODE))
            if found or not self.orphans._asked.waits:
                return [(prewrite.start_ts, fate) for prewrite, fate in found]
            time.sleep(0.01)
        raise AssertionError("no answer")


def test_nothing_is_believed_when_it_is_said_twice_and_far_apart() -> None:
    cluster = Cluster()
    del cluster.fates[BEGAN]  # it isn't asked for yet: it began long ago, and came just now
    assert cluster.told(1) == []
    assert cluster.orphans._absent == {}
    cluster.fates[BEGAN] = NOTHING
    assert cluster.told(AGE + 1) == []
    assert cluster.told(AGE + 50) == []
    assert cluster.told(2 * AGE + 2) == [(BEGAN, ROLLED_BACK)]


def test_a_slow_commit_is_found_by_the_second_look() -> None:
    cluster = Cluster()
    assert cluster.told(AGE + 1) == []
    cluster.fates[BEGAN] = CAME + (AGE + 2) * SECOND
    assert cluster.told(2 * AGE + 2) == [(BEGAN, CAME + (AGE + 2) * SECOND)]


@pytest.mark.parametrize("look", [1, 2])
def test_nothing_is_no_answer_where_garbage_collection_has_passed(look: int) -> None:
    cluster = Cluster()
    cluster.fates.collected_ts = CAME - 1
    if look == 2:
        assert cluster.told(AGE + 1) == []
    cluster.fates.collected_ts = CAME + (AGE + 1) * SECOND
    for after in (3 * AGE, 5 * AGE):
        assert cluster.told(after) == []
    assert cluster.pairing.waits(BEGAN)


def test_who_cannot_be_asked_decides_nothing() -> None:
    cluster = Cluster()
    del cluster.fates[BEGAN]
    assert cluster.told(AGE + 1) == []
    with pytest.raises(SourceUnavailable):
        cluster.fates.fate(b"k", BEGAN)


def test_tidbs_times_are_read() -> None:
    assert safe_point_of("20240131-23:59:59 +0000") >> 18 == 1706745600000
    assert safe_point_of("20240201-01:59:59.123 +0200") >> 18 == 1706745600000
    assert [seconds_of(text) for text in ("10m0s", "1h30m0s", "45s")] == [600, 5400, 45]
    with pytest.raises(ValueError, match="no duration"):
        seconds_of("soon")
