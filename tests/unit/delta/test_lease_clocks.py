"""What the argument in the head of lease.py says of clocks and late answers, one by one."""

from __future__ import annotations

import pytest

from tests.support.interrupted_store import Memory
from tidegate.delta.leases import lease as module
from tidegate.delta.leases.lease import Hold, Surroundings, Watch
from tidegate.delta.leases.lease_entry import entry_name
from tidegate.errors import LakeUnavailable, Overtaken
from tidegate.limits import LEASE_KEPT_FILES


def watch(store: Memory, speed: float = 1.0) -> Watch:
    """Somebody who wants it, whose clock is faster than the test's by a factor."""
    around = Surroundings(lambda: store.now * speed, lambda _: False, lambda _: False)
    return Watch(store, "apply of shop", 30.0, around)


def held(store: Memory, speed: float = 1.0) -> Hold:
    hold = watch(store, speed).look()
    assert hold is not None
    return hold


def assert_passes(hold: Hold, other: Watch) -> None:
    """The watcher has it now, and the holder knows that he may not go on."""
    assert other.look() is not None
    with pytest.raises(Overtaken):
        hold.check()


def test_a_renewal_is_one_object() -> None:
    store = Memory()
    hold = held(store)
    store.calls.clear()
    for _ in range(60):
        store.now += 10
        hold.renew()
    assert store.calls == {"create": 60, "delete": 9}
    assert len(store.objects) <= LEASE_KEPT_FILES + module._SWEEP_EVERY + 1


@pytest.mark.parametrize(("holders", "watchers"), [(0.98, 1.02), (1.0, 1.0), (1.02, 0.98)])
def test_clocks_that_run_differently_fast_leave_no_moment_with_two(holders: float, watchers: float) -> None:
    store = Memory()
    first, other = held(store, holders), watch(store, watchers)
    while (second := other.look()) is None:
        store.now += 0.1
    with pytest.raises(Overtaken):
        first.check()
    second.check()
    assert store.now < 1000 + 30 * 1.05 / watchers + 0.3


def test_the_holders_term_counts_from_before_it_asked() -> None:
    store = Memory()
    hold, other = held(store), watch(store)

    def slowly() -> None:
        store.meanwhile = lambda: None
        store.now += 5  # before it arrives; then its answer is on the way
        store.meanwhile = answered

    def answered() -> None:
        store.meanwhile = lambda: None
        other.look()
        store.now += 5

    store.now += 10
    store.meanwhile = slowly
    hold.renew()
    assert hold.until == 1040
    store.now = 1015 + 31.6
    assert_passes(hold, other)


def test_a_watchers_term_counts_from_after_he_saw_the_entry() -> None:
    store = Memory()
    hold, other = held(store), watch(store)

    def renewed_late() -> None:
        store.meanwhile = lambda: None
        store.now += 20
        hold.renew()

    store.meanwhile = renewed_late
    other.look()
    store.now += 29.9
    assert other.look() is None
    hold.check()


def test_a_lost_answer_counts_from_the_first_request() -> None:
    store = Memory()
    hold, other = held(store), watch(store)
    store.now += 10
    faults = iter(["lost"])
    store.fault = lambda: next(faults, "")
    with pytest.raises(LakeUnavailable):
        hold.renew()
    other.look()
    store.now += 15
    hold.renew()
    assert hold.until == 1040
    store.now += 17
    assert_passes(hold, other)


def test_a_renewal_that_comes_after_others_came_and_went_is_none() -> None:
    """The number that it asks for was used and removed meanwhile."""
    store = Memory()
    hold, other = held(store), watch(store)
    other.look()

    def meanwhile() -> None:
        store.meanwhile = lambda: None
        store.now += 40
        second = other.look()
        assert second is not None
        for _ in range(20):
            store.now += 1
            second.renew()
        assert entry_name(2) not in store.objects

    store.meanwhile = meanwhile
    hold.renew()
    assert entry_name(2) in store.objects
    with pytest.raises(Overtaken, match="took longer than the 30 s of its term"):
        hold.check()


def test_a_claim_that_comes_after_others_came_and_went_is_none() -> None:
    store = Memory()
    held(store)
    late, other = watch(store), watch(store)
    late.look()
    other.look()
    store.now += 40
    holds: list[Hold] = []

    def before_it_asks() -> None:
        if not store.calls["create"]:
            return
        store.meanwhile = lambda: None
        found = other.look()
        assert found is not None
        for _ in range(20):
            store.now += 1
            found.renew()
        assert entry_name(2) not in store.objects
        holds.append(found)

    store.calls.clear()
    store.meanwhile = before_it_asks
    assert late.look() is None
    assert entry_name(2) in store.objects
    assert late.alive
    holds[0].check()
    holds[0].release()
    following = watch(store).look()
    assert following is not None
    assert following.entry.epoch == 3
