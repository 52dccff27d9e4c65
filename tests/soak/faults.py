"""What each kind of fault does to the world.

In:  the world, a Fault of plan.py.
Out: run(world, fault) returns when the fault is over; whether all is well again is found out when the world settles.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from tests.soak import lake_faults, silver_faults, table_faults
from tests.soak.capturing import Capture
from tests.soak.plan import Fault
from tests.soak.source import DATABASE
from tests.soak.witness import Wrong
from tests.soak.world import World
from tests.support.fault_proxy import FaultProxy, Way
from tests.support.nursery import TERMINAL, TRANSIENT
from tidegate.tables import SEGMENTS

_POINT_SECONDS: Final = 6.0
_CHASE_SECONDS: Final = 5.0
_CUT_SECONDS: Final = 2.0
_NOTICED_SECONDS: Final = 120.0  # of a machine that does other things, too
_UPKEEP_SECONDS: Final = 900.0  # behind a busy capture it gives way and tries again, and the machine may be full
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


class Wired(Protocol):
    """What has a network before it."""

    @property
    def proxy(self) -> FaultProxy: ...


class Captured(Protocol):
    """What is captured."""

    @property
    def folder(self) -> Path: ...
    @property
    def capture(self) -> Capture: ...


def run(world: World, fault: Fault) -> None:
    """Wait, then do it."""
    time.sleep(fault.pause_seconds)
    _KINDS[fault.kind](world, **fault.parameters)


@contextmanager
def _gate(world: World, name: str) -> Iterator[None]:
    path = world.capture.gate / name
    path.touch()
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def kill(world: World, after: float) -> None:
    time.sleep(after)
    world.capture.kill()


def snapshot(world: World, seconds: float) -> None:
    """A table that changes is read again while everything else goes on."""
    world.shots.begin()
    time.sleep(seconds)


def read_table(world: World, table: str, seconds: float) -> None:
    """Its rows are read again in place, as a person may ask for."""
    world.shots.begin(f"{DATABASE}.{table}")
    time.sleep(seconds)


def kill_reader(world: World, after: float) -> None:
    world.shots.begin()
    world.shots.wait()
    time.sleep(after)
    world.shots.kill()


def kill_point(world: World, point: str) -> None:
    child = world.capture.arm(point)
    world.capture.died(child, _POINT_SECONDS)


def kill_chasing(world: World, point: str, seconds: float) -> None:
    """A lake that stands still while much comes turns the chaser on; so it stays for a while."""
    with _gate(world, "stall"):
        chases = world.capture.said("the lake is slower than the source")
        child = world.capture.arm(point)
        world.sessions.burst(3)
        end = time.monotonic() + _CHASE_SECONDS
        while child.returncode is None and not chases() and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(seconds)
    world.capture.died(child, _POINT_SECONDS)


def cut(world: Wired, after_bytes: int, way: Way, reset: bool) -> None:
    before = world.proxy.cuts
    world.proxy.cut(after_bytes if way is Way.TO_CLIENT else after_bytes % 400 + 1, way, reset=reset)
    end = time.monotonic() + _CUT_SECONDS
    while world.proxy.cuts == before and time.monotonic() < end:
        time.sleep(0.02)
    if world.proxy.cuts == before:
        world.proxy.cut_all(reset=reset)
    world.proxy.mend()


def half_open(world: Wired, way: str, seconds: float) -> None:
    before = world.proxy.accepted
    world.proxy.half_open(*(Way if way == "both" else (Way(way),)))
    began = time.monotonic()
    while time.monotonic() - began < seconds and world.proxy.accepted == before:
        if time.monotonic() - began > _NOTICED_SECONDS:
            raise Wrong(f"a half-open connection went unnoticed for {_NOTICED_SECONDS:.0f} s")
        time.sleep(0.05)
    world.proxy.mend()


def trickle(world: Wired, size: int, seconds: float) -> None:
    world.proxy.trickle(size, 0.01)
    time.sleep(seconds)
    world.proxy.mend()


def flush_logs(world: World) -> None:
    world.server.query("FLUSH BINARY LOGS")


def checksum(world: World, algorithm: str) -> None:
    world.server.query(f"SET GLOBAL binlog_checksum = {algorithm}")


def restart_source(world: World) -> None:
    world.server.restart()


def crash_source(world: World) -> None:
    world.server.kill()
    world.server.start()


def stall_lake(world: World, seconds: float, mebibytes: int) -> None:
    with _gate(world, "stall"):
        world.sessions.burst(mebibytes)
        time.sleep(seconds)


def fill_lake(world: World, seconds: float) -> None:
    """A disk that has no room left; where it can't be had, a write that says so."""
    with world.disk.full() if world.disk.mounted else _gate(world, "full"):
        time.sleep(seconds)


def move_lake(world: World, seconds: float) -> None:
    """A file is where bronze was; swapped in one step, since a bronze that isn't there would be made anew."""
    there = world.lake / SEGMENTS.path
    aside = there.with_name("aside")  # on the same disk
    aside.write_text("a file is where the table was")
    world.applies.meet_refusal()
    _exchange(there, aside)
    time.sleep(seconds)
    _exchange(there, aside)
    aside.unlink()


def _exchange(one: Path, other: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE):
        raise OSError(ctypes.get_errno(), "renameat2")


def two_captures(world: Captured, folder: str, seconds: float) -> None:
    """A second one of the same source, with the same value log or one of its own. One of them may be fenced."""
    world.capture.rivals += 1
    state = world.capture.state if folder == "same" else world.folder / f"rival-{time.time_ns()}"
    rival = world.capture.start(state, world.folder / "rival.log")
    rival.wait(seconds)
    rival.send(signal.SIGTERM)
    if rival.wait(20) is None:
        rival.send(signal.SIGKILL)
        rival.wait()
    if rival.returncode not in (0, TERMINAL, TRANSIENT, -signal.SIGTERM, -signal.SIGKILL):
        raise Wrong(f"the second capture ended with {rival.returncode}: see rival.log")


def upkeep(world: World, point: str) -> None:
    """Maintain's steps for bronze, as days later; killed at the point when there is work that reaches it."""
    world.witness.look()
    child = world.capture.upkeep(point, world.witness.seq)
    if child.wait(_UPKEEP_SECONDS) is None:
        child.send(signal.SIGKILL)
        raise Wrong(f"upkeep of bronze takes over {_UPKEEP_SECONDS:.0f} s")
    if child.returncode not in (0, -signal.SIGKILL):
        raise Wrong(f"upkeep of bronze ended with {child.returncode}: see upkeep.log")


def add_column(world: World, table: str) -> None:
    world.sessions.add_column(table)


_KINDS: Final[dict[str, Callable[..., None]]] = (
    table_faults.KINDS
    | silver_faults.KINDS
    | lake_faults.KINDS
    | {
        function.__name__: function
        for function in (
            *(
                kill,
                kill_point,
                kill_chasing,
                cut,
                half_open,
                trickle,
                flush_logs,
                checksum,
                restart_source,
                crash_source,
            ),
            *(stall_lake, fill_lake, move_lake, two_captures, upkeep, add_column, snapshot, read_table, kill_reader),
        )
    }
)
