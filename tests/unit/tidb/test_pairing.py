"""Prewrites find their answers in any order of arrival, resolved_ts is kept, and nobody decides by time."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import StreamCorrupt
from tidegate.tidb.records.mvcc import NOTHING, fate
from tidegate.tidb.records.pairing import ROLLED_BACK, Pairing
from tidegate.tidb.records.payload import Binlog, BinlogType

PREWRITE, COMMIT, ROLLBACK = BinlogType.PREWRITE, BinlogType.COMMIT, BinlogType.ROLLBACK


def prewrite(start_ts: int) -> Binlog:
    return Binlog(PREWRITE, start_ts, prewrite_key=b"k")


def commit(start_ts: int, commit_ts: int) -> Binlog:
    return Binlog(COMMIT, start_ts, commit_ts)


def fake(tso: int) -> Binlog:
    return Binlog(ROLLBACK, tso, tso)


def given_on(pairing: Pairing[str]) -> list[tuple[int, str]]:
    return [(one.commit_ts, one.place) for one in pairing.committed(pairing.resolved_ts)]


def test_a_commit_before_its_prewrite_finds_it() -> None:
    pairing = Pairing[str](["a", "b"])
    pairing.take(commit(10, 12), "a", "")
    pairing.take(prewrite(10), "b", "x")
    pairing.take(fake(20), "a", "")
    pairing.take(fake(21), "b", "")
    assert pairing.resolved_ts == 20
    assert given_on(pairing) == [(12, "x")]


def test_the_slowest_pump_holds_resolved_ts() -> None:
    pairing = Pairing[str](["a", "b"])
    pairing.take(fake(20), "a", "")
    assert pairing.resolved_ts == 0
    pairing.take(fake(5), "b", "")
    assert pairing.resolved_ts == 5
    pairing.take(fake(25), "b", "")
    assert pairing.resolved_ts == 20


def test_an_unanswered_prewrite_holds_resolved_ts_however_long() -> None:
    pairing = Pairing[str](["a"])
    pairing.take(prewrite(10), "a", "x")
    for tso in range(20, 10**6, 10**5):
        pairing.take(fake(tso), "a", "")
    assert pairing.resolved_ts == 10
    assert [one.start_ts for one in pairing.unanswered] == [10]
    pairing.answer(10, 15)
    assert given_on(pairing) == [(15, "x")]


def test_a_late_prewrite_with_an_old_start_does_not_take_resolved_ts_back() -> None:
    pairing = Pairing[str](["a"])
    pairing.take(fake(100), "a", "")
    assert pairing.resolved_ts == 100
    pairing.take(prewrite(10), "a", "x")  # a long transaction: it will be committed above 100
    assert pairing.resolved_ts == 100
    pairing.take(fake(200), "a", "")
    assert pairing.resolved_ts == 100
    pairing.take(commit(10, 150), "a", "")
    assert given_on(pairing) == [(150, "x")]


def test_what_is_sent_twice_is_given_once() -> None:
    pairing = Pairing[str](["a", "b"])
    pairing.take(prewrite(10), "a", "x")
    pairing.take(prewrite(10), "b", "again")
    pairing.take(commit(10, 12), "b", "")
    pairing.take(commit(10, 12), "b", "")
    pairing.take(prewrite(10), "a", "late")
    pairing.take(fake(30), "a", "")
    pairing.take(fake(30), "b", "")
    assert given_on(pairing) == [(12, "x")]
    assert pairing.resolved_ts == 30


def test_a_copy_of_a_forgotten_transaction_is_not_applied_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.tidb.records.pairing.TIDB_ANSWERED_COMMITS_MAX", 1)
    pairing = Pairing[str](["a"])
    for start in (10, 20):
        pairing.take(prewrite(start), "a", f"x{start}")
        pairing.take(commit(start, start + 1), "a", "")
    assert len(given_on(pairing)) == 2
    pairing.take(prewrite(10), "a", "copy")
    assert [one.start_ts for one in pairing.unanswered] == [10]
    pairing.answer(10, 11)  # what TiDB's MVCC says
    assert given_on(pairing) == []
    pairing.take(fake(50), "a", "")
    assert pairing.resolved_ts == 50


def test_answers_that_contradict_each_other_stop() -> None:
    pairing = Pairing[str](["a"])
    pairing.take(prewrite(10), "a", "x")
    pairing.take(commit(10, 12), "a", "")
    with pytest.raises(StreamCorrupt, match="committed at 12, says one answer, and rolled back"):
        pairing.answer(10, ROLLED_BACK)


def test_a_pump_that_never_joined_stops() -> None:
    with pytest.raises(StreamCorrupt, match="never joined"):
        Pairing[str](["a"]).take(fake(1), "b", "")


def history(seed: int) -> list[tuple[str, Binlog]]:
    """What two pumps get of random transactions, each pump's in an order that TiDB could send."""
    draw = random.Random(seed)
    sent: list[tuple[float, str, Binlog]] = []
    for _ in range(draw.randint(1, 25)):
        start = draw.randint(1, 1000)
        acknowledged = start + draw.randint(1, 30)
        sent.append((acknowledged, draw.choice("ab"), Binlog(PREWRITE, start * 1000 + draw.randint(0, 999))))
    out = list(sent)
    for at, pump, one in sent:
        took = int(at * 1000) + draw.randint(1, 5000)
        later = took / 1000 + draw.choice([0, 1, 5, 300])
        if draw.random() < 0.2:  # once more, on another pump, before the commit
            out.append((at + 0.1, draw.choice("ab"), one))
        if draw.random() < 0.15:
            out.append((later, pump, Binlog(ROLLBACK, one.start_ts)))
        else:
            out += [(later + n, pump, Binlog(COMMIT, one.start_ts, took)) for n in range(draw.choice([1, 1, 2]))]
    for pump in "ab":
        out += [(at + 0.5, pump, fake(at * 1000)) for at in range(1, 2000, draw.randint(20, 200))]
    return [(pump, one) for _, pump, one in sorted(out, key=lambda entry: entry[0])]


@given(st.integers(0, 10**9))
def test_any_order_gives_each_transaction_once_in_order_and_resolved_ts_holds(seed: int) -> None:
    sent = history(seed)
    expected: dict[int, int] = {}
    for _, one in sent:
        if one.tp is COMMIT:
            expected[one.start_ts] = one.commit_ts
    draw = random.Random(seed)
    queues = {pump: [one for name, one in sent if name == pump] for pump in "ab"}  # each pump's own order is kept
    pairing = Pairing[int](queues)
    found: list[tuple[int, int]] = []
    resolved = 0
    while any(queues.values()):
        pump = draw.choice([name for name, waiting in queues.items() if waiting])
        one = queues[pump].pop(0)
        pairing.take(one, pump, one.start_ts)
        assert pairing.resolved_ts >= resolved
        resolved = pairing.resolved_ts
        if draw.random() < 0.5:
            found += [(each.commit_ts, each.place) for each in pairing.committed(resolved)]
    pairing.end()
    assert not pairing.unanswered
    found += [(each.commit_ts, each.place) for each in pairing.committed(pairing.resolved_ts)]
    assert found == sorted((commit_ts, start_ts) for start_ts, commit_ts in expected.items())


def mvcc(*writes: dict[str, int], lock: dict[str, int] | None = None) -> dict[str, object]:
    return {"key": "74", "value": {"info": {"writes": list(writes)} | ({"lock": lock} if lock else {})}}


def test_mvcc_says_what_became_of_a_prewrite() -> None:
    assert fate(mvcc({"start_ts": 10, "commit_ts": 12}), 10) == 12
    assert fate(mvcc({"start_ts": 9, "commit_ts": 12}), 10) == NOTHING
    assert fate(mvcc({"start_ts": 10, "commit_ts": 10, "type": 3}), 10) == ROLLED_BACK
    assert fate(mvcc(lock={"start_ts": 10}), 10) is None
    assert fate({"value": {}}, 10) == NOTHING
    with pytest.raises(KeyError):
        fate({"error": "no such key"}, 10)
