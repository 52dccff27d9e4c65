"""A lease under every fault that a store, a clock or a pause may bring: never two that hold it at one moment.

In:  random schedules over a store in memory. Any call of the store may be interrupted by other processes' steps and by
     time, before it acts and after; its answer may be lost; it may act long after its caller gave up.
Out: at no moment two holds whose check() passes; each new hold's epoch is larger than all before; a lease that nobody
     renews any more is taken.
"""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.support.interrupted_store import Memory
from tests.support.seeds import LONG, many
from tidegate.delta.leases import lease as module
from tidegate.delta.leases.lease import Hold, Surroundings, Watch
from tidegate.delta.leases.lease_entry import LeaseEntry
from tidegate.errors import LakeUnavailable, Overtaken

TERM = 9.0
ACTORS = 3


class Leases(RuleBasedStateMachine):
    """Three processes. Each is in the middle of at most one call; whose call is interrupted sleeps meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.store = Memory()
        self.now = 1000.0
        self.rates = [1.0] * ACTORS
        self.watches: list[Watch | None] = [None] * ACTORS
        self.holds: list[list[Hold]] = [[] for _ in range(ACTORS)]  # with those that it lost
        self.busy = [False] * ACTORS
        self.lives = [0] * ACTORS
        self.dead: set[str] = set()
        self.epochs: list[int] = []
        self.draws: Any = None
        self.depth = 0
        self.store.meanwhile = self.interruption
        self.store.fault = self.draw_fault

    @initialize(rates=st.lists(st.floats(0.98, 1.02), min_size=ACTORS, max_size=ACTORS))
    def clocks(self, rates: list[float]) -> None:
        self.rates = rates

    # --- what happens around and inside a call ---

    def interruption(self) -> None:
        if self.draws is None or self.depth > 1 or self.drawn(st.integers(0, 3)) != 3:
            return
        self.depth += 1
        try:
            for _ in range(self.drawn(st.integers(1, 3))):
                self.something()
        finally:
            self.depth -= 1
        self.one_holder()

    def draw_fault(self) -> str:
        if self.draws is None:
            return ""
        return str(self.drawn(st.sampled_from([""] * 8 + ["unreachable", "lost", "again", "late"])))

    def drawn(self, strategy: Any) -> Any:
        return self.draws.draw(strategy)

    def something(self) -> None:
        kind = self.drawn(st.sampled_from(["time", "time", "look", "renew", "late", "again", "kill", "taken", "taken"]))
        actor = self.drawn(st.integers(0, ACTORS - 1))
        if kind == "time":
            self.now += self.drawn(st.sampled_from([1.0, TERM / 3, TERM / 2, TERM]))
        elif kind == "kill":
            self.end(actor)
        elif kind == "taken":
            self.taken_over(actor)
        elif kind == "late":
            if self.store.late:
                self.store.put(*self.store.late.pop(self.drawn(st.integers(0, len(self.store.late) - 1))))
        else:
            self.step(actor, kind)

    def taken_over(self, actor: int) -> None:
        """The actor watches in peace, takes it, and renews until the numbers that others saw are removed."""
        draws, self.draws = self.draws, None
        self.step(actor, "look")
        self.now += 1.12 * TERM
        self.step(actor, "look")
        self.renew_often(actor, 4)
        self.draws = draws

    def step(self, actor: int, kind: str) -> None:
        if self.busy[actor]:
            return
        self.busy[actor] = True
        try:
            if kind == "look":
                self.look(actor)
            elif kind == "again" and self.holds[actor]:
                self.watches[actor] = self.watch(actor, frozenset({self.holds[actor][-1].entry.attempt}))
                self.holds[actor][-1].lost = "again"
                self.look(actor)
            elif self.holds[actor]:
                self.holds[actor][-1].renew()
        except LakeUnavailable:
            pass
        finally:
            self.busy[actor] = False

    def end(self, actor: int) -> None:
        """Its process is gone, in the middle of a call or not; what it asked for may still come."""
        self.dead |= {hold.entry.attempt for hold in self.holds[actor]}
        self.holds[actor], self.watches[actor] = [], None
        self.lives[actor] += 1

    def watch(self, actor: int, own: frozenset[str] = frozenset()) -> Watch:
        def clock() -> float:
            return self.now * self.rates[actor] + 77 * actor

        def gone(entry: LeaseEntry) -> bool:
            return entry.attempt in self.dead

        around = Surroundings(clock, gone, lambda _: False)
        return Watch(self.store, f"actor {actor}", TERM, around, own)

    def look(self, actor: int) -> None:
        if any(holds(hold) for hold in self.holds[actor]):
            return
        watch = self.watches[actor] or self.watch(actor)
        self.watches[actor] = watch
        life = self.lives[actor]
        found = watch.look()
        if found is not None and self.lives[actor] == life:
            self.watches[actor] = None
            self.holds[actor].append(found)
            if holds(found):  # a hold that took too long to get was never one
                assert found.entry.epoch > max(self.epochs, default=0)
                self.epochs.append(found.entry.epoch)

    # --- rules ---

    @rule(data=st.data(), actor=st.integers(0, ACTORS - 1), kind=st.sampled_from(["look", "look", "renew", "again"]))
    def act(self, data: Any, actor: int, kind: str) -> None:
        self.draws = data
        self.step(actor, kind)
        self.draws = None

    @rule(actor=st.integers(0, ACTORS - 1))
    def kill(self, actor: int) -> None:
        self.end(actor)

    @rule(data=st.data(), actor=st.integers(0, ACTORS - 1))
    def release(self, data: Any, actor: int) -> None:
        self.draws = data
        if self.holds[actor]:
            hold = self.holds[actor].pop()
            try:
                hold.release()
            except LakeUnavailable:
                hold.lost = "released"
        self.draws = None

    @rule(seconds=st.sampled_from([0.1, 1.0, TERM / 4, TERM / 2, 0.97 * TERM, TERM, 1.04 * TERM, 1.2 * TERM]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(actor=st.integers(0, ACTORS - 1))
    def take_over(self, actor: int) -> None:
        self.taken_over(actor)

    @rule(actor=st.integers(0, ACTORS - 1), times=st.integers(1, 5))
    def renew_often(self, actor: int, times: int) -> None:
        for _ in range(times):
            self.step(actor, "renew")
            self.now += 0.1

    @rule()
    def somebody_gets_it_in_the_end(self) -> None:
        """When the others have given up and the store answers."""
        self.store.late.clear()
        self.holds = [[] for _ in range(ACTORS)]
        watch = self.watch(0)
        for _ in range(4):
            if (hold := watch.look()) is not None:
                self.holds[0] = [hold]
                self.watches[0] = None
                self.epochs.append(hold.entry.epoch)
                return
            self.now += 1.2 * TERM
        raise AssertionError("nobody gets it")

    @invariant()
    def one_holder(self) -> None:
        holding = [hold.entry for actor in self.holds for hold in actor if holds(hold)]
        assert len(holding) <= 1, holding


def holds(hold: Hold) -> bool:
    try:
        hold.check()
    except Overtaken:
        return False
    return True


@pytest.fixture(autouse=True)
def _few_entries_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEASE_KEPT_FILES", 1)
    monkeypatch.setattr(module, "_SWEEP_EVERY", 1)


@pytest.mark.long
def test_never_two_hold_a_lease() -> None:
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        Leases,
        settings=settings(
            max_examples=many(120, 20_000),
            stateful_step_count=40,
            deadline=None,
            derandomize=not LONG,
            suppress_health_check=list(HealthCheck),
        ),
    )
