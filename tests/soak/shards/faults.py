"""What each kind of fault does to several servers.

In:  the world, a Fault of plan.py.
Out: run(world, fault): one of a source is done in that source's turn, others beside it; all other faults at once.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from tests.soak import faults, lake_faults, silver_faults, table_faults
from tests.soak.plan import Fault
from tests.soak.shards import failover
from tests.soak.shards.place import Place
from tests.soak.shards.shop import SHARDS_MAX
from tests.soak.shards.world import ShardWorld
from tests.support.fault_proxy import Way

_POINT_SECONDS: Final = 6.0
_DEFINITIONS_MAX: Final = 12
_DUE_MAX: Final = 60
_END_SECONDS: Final = 60.0


def run(world: ShardWorld, fault: Fault) -> None:
    """Raises what a source's earlier faults raised."""
    if (source := fault.parameters.get("source")) is None:
        _do(world, fault)
    else:
        world.places[source].turns.add(partial(_do, world, fault))


def _do(world: ShardWorld, fault: Fault) -> None:
    time.sleep(fault.pause_seconds)
    KINDS[fault.kind](world, **fault.parameters)


# --- capture -----------------------------------------------------------------------------------------------------


def kill(world: ShardWorld, source: str, after: float) -> None:
    time.sleep(after)
    world.places[source].capture.kill()


def kill_point(world: ShardWorld, source: str, point: str) -> None:
    """Of a capture that runs, and has something to do."""
    place = world.places[source]
    if place.is_up and not place.capture.stopped:
        place.capture.died(place.capture.arm(point), _POINT_SECONDS)


def stop_capture(world: ShardWorld, source: str, lasts: float) -> None:
    world.places[source].capture.stop()
    world.places[source].turns.after(lasts, partial(world.go_on, source))


def two_captures(world: ShardWorld, source: str, folder: str, seconds: float) -> None:
    if not world.places[source].capture.stopped:
        faults.two_captures(world.places[source], folder, seconds)


def take_out(world: ShardWorld, source: str, lasts: float) -> None:
    """The source, of the pipeline file; later it is added again."""
    place = world.places[source]
    if world.out or place.capture.stopped:
        return
    place.capture.stop()
    if place.capture.child is not None:
        place.capture.child.wait(_END_SECONDS)
    if world.take_out(source):
        place.turns.after(lasts, partial(world.take_in, source))
    else:
        world.go_on(source)


# --- the network -------------------------------------------------------------------------------------------------


def cut(world: ShardWorld, source: str, **how: Any) -> None:
    faults.cut(world.places[source], **how)


def half_open(world: ShardWorld, source: str, way: str, seconds: float) -> None:
    """One that lasts must be noticed, by a capture that runs."""
    place = world.places[source]
    if place.capture.stopped or not place.is_up:
        seconds = min(seconds, 1.0)
    faults.half_open(place, way, seconds)


def trickle(world: ShardWorld, source: str, size: int, seconds: float) -> None:
    faults.trickle(world.places[source], size, seconds)


def unplug(world: ShardWorld, source: str, lasts: float) -> None:
    """The source is there, and nobody gets to it."""
    proxy = world.places[source].proxy
    proxy.half_open(*Way)
    world.places[source].turns.after(lasts, proxy.mend)


# --- servers -----------------------------------------------------------------------------------------------------


def crash_source(world: ShardWorld, source: str) -> None:
    place = world.places[source]
    if place.is_up:
        with place.shop.branches:
            _kill(place)
            place.servers.start()


def _kill(place: Place) -> None:
    """Between two answers, and with the last one in the engine's log: MariaDB logs an XA COMMIT before its engine has
    it, and acknowledges an XA ROLLBACK that is in its binlog alone. A crash then leaves the branch prepared, and its
    second answer stops a replica.
    """
    place.servers.primary.query("FLUSH ENGINE LOGS")
    place.servers.primary.kill()


def stop_source(world: ShardWorld, source: str, lasts: float, killed: bool) -> None:
    place = world.places[source]
    if place.is_up:
        with place.shop.branches:
            if killed:
                _kill(place)
            else:
                place.servers.primary.stop()
        place.turns.after(lasts, place.servers.start)


def freeze_source(world: ShardWorld, source: str, lasts: float) -> None:
    """It takes connections, and answers nobody."""
    place = world.places[source]
    process = place.servers.primary.process
    if process is None:
        return
    place.shop.frozen = True
    process.send_signal(signal.SIGSTOP)
    try:
        time.sleep(lasts)
    finally:
        process.send_signal(signal.SIGCONT)
        place.shop.frozen = False


def flush_logs(world: ShardWorld, source: str) -> None:
    if world.places[source].is_up:
        world.places[source].shop.server.query("FLUSH BINARY LOGS")


def fail_over(world: ShardWorld, source: str, how: str) -> None:
    """Of a source whose capture runs; it has to go on by itself."""
    place = world.places[source]
    if place.is_up and place.servers.replicates and not place.capture.stopped:
        failover.HOW[how](place)


# --- tables ------------------------------------------------------------------------------------------------------


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


KINDS: Final[dict[str, Callable[..., None]]] = (
    silver_faults.KINDS
    | lake_faults.KINDS
    | {
        function.__name__: function
        for function in (
            *(kill, kill_point, stop_capture, two_captures, take_out, cut, half_open, trickle, unplug),
            *(crash_source, stop_source, freeze_source, flush_logs, fail_over, change_definition, join),
            *(table_faults.start_apply, table_faults.second_apply, table_faults.retry_apply, table_faults.maintain),
            *(faults.snapshot, faults.kill_reader),
        )
    }
)
