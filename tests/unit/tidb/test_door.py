"""What a Pump's door lets in.

In:  clusters and binlogs as they come; PD's timestamps, this machine's clock.
Out: why not, or nothing.
"""

from __future__ import annotations

import time

import pytest

from tests.kit.tidb import encode
from tidegate.commit_ts import compose
from tidegate.limits import PUMP_KEY_BYTES_MAX, TIMESTAMP_AHEAD_SECONDS_MAX
from tidegate.pump.door import Door
from tidegate.pump.etcd import Etcd, EtcdEntry, cluster_of
from tidegate.tidb.records.payload import BinlogType, binlog_of, fake_payload, job_payload, tables_payload

PREWRITE, COMMIT = BinlogType.PREWRITE, BinlogType.COMMIT


def now_ts(seconds: float = 0.0) -> int:
    return compose(int((time.time() + seconds) * 1000))


def test_the_first_cluster_that_enters_is_the_pumps() -> None:
    door = Door()
    assert (door.cluster, door.refuses_cluster(8)) == (None, "")
    assert door.enters(7) == ""
    assert door.cluster == 7
    for why in (door.enters(8), door.refuses_cluster(8)):
        assert why == "this Pump is of cluster 7, not of 8"
    assert door.enters(7) == ""


def test_who_knows_the_cluster_is_asked_before_a_stranger_says_it() -> None:
    door, asked = Door(), list[int]()

    def known() -> int:
        asked.append(1)
        return 7

    door.known = known
    for _ in range(2):
        assert door.enters(8) == "this Pump is of cluster 7, not of 8"
    assert door.enters(7) == ""
    assert len(asked) == 1


def test_a_question_whether_it_is_back_makes_nobody_the_pumps_cluster() -> None:
    door = Door()
    assert door.refuses_cluster(8) == ""
    assert door.enters(7) == ""


@pytest.mark.parametrize("ahead", [TIMESTAMP_AHEAD_SECONDS_MAX + 60, 3e9])
def test_a_timestamp_that_pd_cant_have_given_is_refused(ahead: float) -> None:
    door = Door(7)
    door.saw(now_ts())
    for payload in (
        encode.binlog(PREWRITE, now_ts(ahead), key=b"k"),
        encode.binlog(COMMIT, now_ts(), now_ts(ahead)),
        encode.binlog(PREWRITE, now_ts(), now_ts(ahead), key=b"k"),
    ):
        assert "can't be PD's" in door.refuses(binlog_of(payload))


def test_timestamps_as_they_are_enter_whatever_the_clock_is_that_is_behind() -> None:
    door, late = Door(7), 3600.0
    assert door.refuses(binlog_of(encode.binlog(PREWRITE, now_ts(), key=b"k"))) == ""
    ahead = binlog_of(encode.binlog(PREWRITE, now_ts(late), key=b"k"))
    assert "can't be PD's" in door.refuses(ahead), "nobody has said that PD is ahead"
    door.saw(now_ts(late))
    assert door.refuses(ahead) == "", "this machine's clock is behind"
    door.saw(now_ts(-late))
    assert door.refuses(binlog_of(encode.binlog(PREWRITE, now_ts(), key=b"k"))) == "", "PD's is"


def test_what_only_a_pump_writes_comes_from_no_client() -> None:
    for payload in (fake_payload(now_ts()), job_payload(1, now_ts(), b"{}"), tables_payload(now_ts(), b"[]")):
        assert Door(7).refuses(binlog_of(payload)) == "only a Pump writes such a binlog"


def test_a_key_that_tikv_wouldnt_take_is_refused() -> None:
    key = bytes(PUMP_KEY_BYTES_MAX + 1)
    assert "is no TiDB's" in Door(7).refuses(binlog_of(encode.binlog(PREWRITE, now_ts(), key=key)))


@pytest.mark.parametrize(("value", "cluster"), [((7 << 40).to_bytes(8, "big"), 7 << 40), (b"7", None), (None, None)])
def test_pd_says_which_cluster_it_is_of(
    value: bytes | None, cluster: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()

    def get(etcd: Etcd, key: str) -> EtcdEntry:
        asked.append(key)
        return EtcdEntry(value, 1)

    monkeypatch.setattr(Etcd, "get", get)
    assert cluster_of(Etcd(["http://pd:2379"])) == cluster
    assert asked == ["/pd/cluster_id"]
