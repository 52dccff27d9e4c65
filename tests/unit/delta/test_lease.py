"""A lease between processes: who holds it, who is told so, and what becomes of one that dies, sleeps or is cut off."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kit.s3 import moto
from tests.support.interrupted_store import Memory
from tidegate.delta.leases import lease as module
from tidegate.delta.leases.lease import Lease
from tidegate.delta.leases.lease_entry import LeaseEntry, Process, entry_name, newest_entry, numbers
from tidegate.delta.stores.by_place import log_store
from tidegate.delta.stores.store import LocalStore
from tidegate.errors import LakeRefused, LakeUnavailable, LeaseHeld, Overtaken, Transient
from tidegate.limits import LEASE_KEPT_FILES

# Takes the lease, says its epoch, checks all the time, and says when it may not go on. On `host`, if given.
HOLDER = """
import socket, sys, time
folder, term, host, wait = sys.argv[1], float(sys.argv[2]), sys.argv[3], float(sys.argv[4])
if host: socket.gethostname = lambda: host
from tidegate.delta.leases.lease import Lease
from tidegate.delta.stores.store import LocalStore
from tidegate.errors import Overtaken
lease = Lease.take(LocalStore(folder), "apply of shop", term_seconds=term, wait_seconds=wait, report=lambda line: None)
print("epoch", lease.epoch, flush=True)
try:
    while True:
        lease.check()
        time.sleep(0.01)
except Overtaken as error:
    print(error, flush=True)
"""
COUNTER = """
import sys, time
from pathlib import Path
from tidegate.delta.leases.lease import Lease
from tidegate.delta.stores.store import LocalStore
count = Path(sys.argv[2])
for _ in range(int(sys.argv[3])):
    with Lease.take(LocalStore(sys.argv[1]), "count", term_seconds=15, wait_seconds=300, report=str) as lease:
        found = int(count.read_text())
        time.sleep(0.005)
        lease.check()
        count.write_text(str(found + 1))
"""


def ignore(_: str) -> None:
    """What a lease reports."""


def taken(store: Any, *, term: float = 30.0, wait: float = 0.0, report: Callable[[str], None] = ignore) -> Lease:
    return Lease.take(store, "apply of shop", term_seconds=term, wait_seconds=wait, report=report)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path / "lease"))


@contextmanager
def holder(
    store: LocalStore, *, term: float = 30.0, host: str = "", wait: float = 0.0
) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lease."""
    argv = [sys.executable, "-c", HOLDER, store.where, str(term), host, str(wait)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def seconds(action: Callable[[], Any]) -> float:
    started = time.monotonic()
    action()
    return time.monotonic() - started


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


# --- between processes ------------------------------------------------------------------------------------


def test_a_second_one_is_told_who_holds_it_and_gets_it_after_its_release(store: LocalStore) -> None:
    with taken(store) as first:
        first.check()
        with pytest.raises(LeaseHeld) as told:
            taken(store)
        assert isinstance(told.value, Transient)
        text = str(told.value)
        assert text.startswith(
            f"{store.where}: held by apply of shop on {Process.this().host}, pid {os.getpid()}, since "
        )
        assert "UTC, last seen 20" in text
        assert "wait for it to end, or end that process: 30 s after its last sign of life the lease is free" in text
    with pytest.raises(Overtaken, match="it was released"):
        first.check()
    with taken(store) as second:
        assert (first.epoch, second.epoch) == (1, 2)
        second.check()


def test_an_error_inside_releases_it(store: LocalStore) -> None:
    with pytest.raises(ZeroDivisionError), taken(store):
        raise ZeroDivisionError
    taken(store).release()


def test_it_is_held_over_many_terms_in_few_entries(store: LocalStore) -> None:
    with taken(store, term=6) as lease:
        first = lease._hold.renewed_at
        until(lambda: lease._hold.renewed_at > first)  # by its thread; what follows needn't last as long
        assert lease._end()
        for _ in range(12):
            lease._hold.renew()
            lease.check()
            assert len(numbers(store)) <= LEASE_KEPT_FILES + module._SWEEP_EVERY + 1
        assert lease.epoch == 1


def test_one_that_was_killed_on_this_machine_is_taken_at_once(store: LocalStore) -> None:
    with holder(store) as process:
        assert line(process) == "epoch 1"
        with pytest.raises(LeaseHeld):
            taken(store)
        process.kill()

        def is_zombie() -> bool:
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            return fields[0] == "Z" and int(fields[17]) <= 1  # its other threads have ended, too

        until(is_zombie)  # nobody has asked for its end
        lines: list[str] = []
        taken(store, report=lines.append).release()
        assert lines == [], "no sign of life is waited for"
        process.wait()


def test_a_pid_that_another_process_has_now_does_not_count(store: LocalStore) -> None:
    here = Process.this()
    entry = LeaseEntry(1, 7, "x", "apply of shop", here._replace(start=here.start - 1), 30.0, 0, 0)
    store.create(entry_name(1), entry.encoded())
    with taken(store) as lease:
        assert lease.epoch == 8


@pytest.mark.parametrize("other", [{"host": "elsewhere"}, {"boot_id": "b"}, {"namespaces": "pid:[1]"}])
def test_of_another_machine_or_container_no_pid_tells_anything(store: LocalStore, other: dict[str, str]) -> None:
    here = Process.this()
    entry = LeaseEntry(1, 7, "x", "apply of shop", here._replace(start=0, **other), 1.0, 0, 0)
    store.create(entry_name(1), entry.encoded())
    assert seconds(lambda: taken(store, term=1).release()) > 1.0


def test_one_that_died_on_another_machine_is_taken_after_its_term(store: LocalStore) -> None:
    lines: list[str] = []
    with holder(store, term=2, host="elsewhere") as process:
        assert line(process) == "epoch 1"
        process.kill()
        process.wait()
        started = time.monotonic()
        with taken(store, report=lines.append) as lease:
            assert time.monotonic() - started > 2.0
            assert lease.epoch == 2
    assert len(lines) == 1
    assert lines[0].startswith("waiting for a sign of life of apply of shop on elsewhere, pid ")
    assert lines[0].endswith("without one it is over in 2 s")


def test_one_that_lives_on_another_machine_keeps_it(store: LocalStore) -> None:
    with holder(store, term=12, host="elsewhere") as process:
        assert line(process) == "epoch 1"

        def refused(wait: float) -> None:
            with pytest.raises(LeaseHeld, match="on elsewhere"):
                taken(store, wait=wait)

        refused(0)
        assert seconds(lambda: refused(2.5)) > 2.5
        assert process.poll() is None


def test_who_waits_gets_it_soon_after_its_release_elsewhere(store: LocalStore) -> None:
    with taken(store, term=600) as lease, holder(store, host="elsewhere", wait=600) as process:
        time.sleep(1)
        released = time.monotonic()
        lease.release()
        assert line(process) == "epoch 2"
        assert time.monotonic() - released < 300, "not when its term is over"


def test_one_that_slept_too_long_cannot_go_on(store: LocalStore) -> None:
    with holder(store, term=1) as process:
        assert line(process) == "epoch 1"
        process.send_signal(signal.SIGSTOP)
        with taken(store, wait=120) as lease:  # it lives, but its entry stays as it is
            assert lease.epoch == 2
            process.send_signal(signal.SIGCONT)
            assert "is lost: " in line(process)
            assert process.wait(120) == 0
            lease.check()


def test_one_that_slept_too_long_cannot_go_on_though_nobody_took_it(store: LocalStore) -> None:
    with holder(store, term=0.6) as process:
        assert line(process) == "epoch 1"
        process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        process.send_signal(signal.SIGCONT)
        assert "the lease of apply of shop is lost" in line(process)


def test_what_four_processes_do_under_it_they_do_one_after_the_other(store: LocalStore, tmp_path: Path) -> None:
    count = tmp_path / "count"
    count.write_text("0")
    argv = [sys.executable, "-c", COUNTER, store.where, str(count), "6"]
    processes = [subprocess.Popen(argv) for _ in range(4)]
    assert [process.wait(400) for process in processes] == [0] * 4
    assert count.read_text() == "24"
    newest = newest_entry(store)
    assert newest is not None
    assert (newest.epoch, newest.released) == (24, True)


# --- the store --------------------------------------------------------------------------------------------


def test_it_outlives_a_store_that_is_silent_for_less_than_its_term() -> None:
    store, lines = Memory(), list[str]()
    with taken(store, term=12, report=lines.append) as lease:
        store.fault = lambda: "unreachable"
        before = store.calls["create"]
        until(lambda: store.calls["create"] > before + 2)  # it asks again and again
        store.fault = lambda: ""
        found = lease._hold.renewed_at
        until(lambda: lease._hold.renewed_at > found)
        lease.check()
    assert lines == ["the lease of apply of shop can't be renewed: no answer"]


def test_a_store_that_is_silent_for_longer_ends_it_and_it_can_be_taken_anew() -> None:
    store, lines = Memory(), list[str]()
    with taken(store, term=3, report=lines.append) as lease:
        store.fault = lambda: "unreachable"
        until(lambda: not lease.held and len(lines) == 2)
        with pytest.raises(Overtaken, match=r"it was not renewed for 3 s"):
            lease.check()
        with pytest.raises(LakeUnavailable):
            lease.again()
        store.fault = lambda: ""
        time.sleep(0.3)
        with pytest.raises(Overtaken):
            lease.check()
        with lease.again() as anew:
            assert anew.epoch == 2
            anew.check()
            with pytest.raises(Overtaken):
                lease.check()
    assert lines[1] == "the lease of apply of shop is lost: its term ended before the store answered"


def test_it_is_not_taken_anew_from_somebody_who_took_it_meanwhile() -> None:
    store = Memory()
    lease = taken(store, term=1.5)
    store.fault = lambda: "unreachable"
    time.sleep(1.7)
    store.fault = lambda: ""
    with taken(store, term=30) as other:
        with pytest.raises(LeaseHeld, match="held by apply of shop on "):
            lease.again()
        other.check()


@pytest.mark.server
def test_it_goes_on_in_an_object_store_that_pauses() -> None:
    with moto() as s3:
        store = log_store(s3.folder(), s3.options | {"timeout": "2s"})
        with taken(store, term=15) as lease:
            time.sleep(4)
            with s3.silent():
                time.sleep(4)
            time.sleep(8)
            lease.check()
            with pytest.raises(LeaseHeld):
                taken(store)
        with taken(store) as lease:
            assert lease.epoch == 2


def test_an_entry_that_is_none_is_refused(store: LocalStore) -> None:
    store.create(entry_name(1), b"{}")
    with pytest.raises(LakeRefused, match=r"0001.json: isn't an entry of a lease"):
        taken(store)


def test_the_time_of_day_may_jump_as_it_likes(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with taken(store, term=9) as lease:
        for jump in (86_400, -86_400, 10 * 86_400):
            real, real_ns = time.time, time.time_ns
            monkeypatch.setattr(time, "time", lambda real=real, jump=jump: real() + jump)
            monkeypatch.setattr(time, "time_ns", lambda real=real_ns, jump=jump: real() + jump * 10**9)
            with pytest.raises(LeaseHeld):  # its next renewal is a sign of life
                taken(store)
            lease.check()
            monkeypatch.undo()


def test_a_claim_whose_answer_got_lost_keeps_its_own_process_out_no_term(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store has it, and the process that made it tries again."""
    real = module.make_entry

    def lost(*given: Any) -> bool:
        real(*given)
        raise LakeUnavailable("no answer came", remedy="try again")

    with monkeypatch.context() as patched:
        patched.setattr(module, "make_entry", lost)
        with pytest.raises(LakeUnavailable):
            Lease.take(store, "capture of one", term_seconds=60, report=ignore)
    assert numbers(store) == [1]
    began = time.monotonic()
    with Lease.take(store, "capture of one", term_seconds=60, report=ignore) as lease:
        assert (lease.epoch, lease.held) == (2, True)
    assert time.monotonic() - began < 10
