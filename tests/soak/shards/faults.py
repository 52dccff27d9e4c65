"""What each kind of fault does to several servers.

In:  the world, a Fault of plan.py.
Out: run(world, fault) returns when the fault is over, or is to be over later, while others come.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from tests.soak import faults, table_faults
from tests.soak.plan import Fault
from tests.soak.shards.shop import SHARDS_MAX
from tests.soak.shards.world import ShardWorld

_POINT_SECONDS: Final = 6.0
_DEFINITIONS_MAX: Final = 12
_DUE_MAX: Final = 60


def run(world: ShardWorld, fault: Fault) -> None:
    """Wait, then do it."""
    time.sleep(fault.pause_seconds)
    KINDS[fault.kind](world, **fault.parameters)


def kill(world: ShardWorld, source: str, after: float) -> None:
    time.sleep(after)
    world.places[source].capture.kill()


def kill_point(world: ShardWorld, source: str, point: str) -> None:
    """Of a capture that runs, and has something to do."""
    place = world.places[source]
    if place.is_up and not place.capture.stopped:
        place.capture.died(place.capture.arm(point), _POINT_SECONDS)


def stop_capture(world: ShardWorld, source: str, lasts: float) -> None:
    capture = world.places[source].capture
    capture.stop()
    world.later.append((time.monotonic() + lasts, capture.go_on))


def crash_source(world: ShardWorld, source: str) -> None:
    """Between two answers: MariaDB logs an XA COMMIT before its engine has it, and promises nothing of a crash then."""
    place = world.places[source]
    if place.is_up:
        with place.shop.branches:
            place.shop.server.kill()
            place.shop.server.start()


def stop_source(world: ShardWorld, source: str, lasts: float, killed: bool) -> None:
    place = world.places[source]
    if place.is_up:
        with place.shop.branches:
            (place.shop.server.kill if killed else place.shop.server.stop)()
        world.later.append((time.monotonic() + lasts, place.shop.server.start))


def flush_logs(world: ShardWorld, source: str) -> None:
    if world.places[source].is_up:
        world.places[source].shop.server.query("FLUSH BINARY LOGS")


def change_definition(world: ShardWorld, how: str) -> None:
    """Of all shards, one after the other, while they are written to."""
    number = world.definitions = world.definitions + 1
    if number > _DEFINITIONS_MAX or len(world.due) > _DUE_MAX:
        return
    change = {
        "add": f"ADD COLUMN c{number} VARCHAR(12) DEFAULT 'old'",
        "note": f"MODIFY note VARCHAR({20 + number})",
        "amount": f"MODIFY amount DECIMAL({8 + number}, 2) NOT NULL",
        "place": "MODIFY place BIGINT",
    }[how]
    shards = [(name, shard, change) for name, place in world.places.items() for shard in place.shop.shards]
    world.random.shuffle(shards)
    world.due += shards


def join(world: ShardWorld, database: int, past: bool, source: str) -> None:
    place = world.places[source]
    if place.is_up and len(place.shop.shards) < SHARDS_MAX:
        place.shop.join(database, past=past)


KINDS: Final[dict[str, Callable[..., None]]] = {
    function.__name__: function
    for function in (
        *(kill, kill_point, stop_capture, crash_source, stop_source, flush_logs, change_definition, join),
        *(table_faults.start_apply, table_faults.second_apply, table_faults.retry_apply, table_faults.maintain),
        *(faults.snapshot, faults.kill_reader),
    )
}
