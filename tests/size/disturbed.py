"""What happens to a snapshot while it is read: pauses, kills, DDL.

In:  the world, a seed.
Out: disturbances(): in an order of the seed's, each kind as often as is asked for.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from tests.size.tables import BAG, BIG, DATABASE

if TYPE_CHECKING:
    from tests.size.world import World

_PAUSED_SECONDS: Final = 5.0
Disturbance: TypeAlias = "Callable[[World, random.Random], str]"


def pause(world: World, rng: random.Random) -> str:
    world.works.once("snapshot", "pause", str(world.file))
    time.sleep(_PAUSED_SECONDS * rng.random())
    world.works.once("snapshot", "resume", str(world.file))
    return "paused and resumed"


def kill_reader(world: World, _: random.Random) -> str:
    world.works.kill("snapshot")
    return "the reader is killed"


def kill_capture(world: World, _: random.Random) -> str:
    world.works.kill("capture")
    return "capture is killed"


def kill_apply(world: World, _: random.Random) -> str:
    world.works.kill("apply")
    return "apply is killed"


def crash_server(world: World, _: random.Random) -> str:
    world.server.kill()
    world.server.start()
    return "the server is killed and started"


def flush_logs(world: World, _: random.Random) -> str:
    world.server.query("FLUSH BINARY LOGS")
    return "another binlog file"


def add_column(world: World, rng: random.Random) -> str:
    name, tables = f"c{time.time_ns()}", [BIG, BAG, *rng.sample(world.writers.small, min(3, len(world.writers.small)))]
    for table in tables:
        world.server.query(f"ALTER TABLE {table} ADD COLUMN {name} INT NULL DEFAULT 7", database=DATABASE)
    return f"ADD COLUMN to {', '.join(tables)}"


def truncate(world: World, rng: random.Random) -> str:
    tables = rng.sample(world.writers.small, min(5, len(world.writers.small)))
    for table in tables:
        world.server.query(f"TRUNCATE TABLE {table}", database=DATABASE)
    return f"TRUNCATE {', '.join(tables)}"


def rename(world: World, rng: random.Random) -> str:
    """Some for good, one away and back."""
    *gone, back = rng.sample(world.writers.small, min(4, len(world.writers.small)))
    for table in gone:
        new = f"{table}_new"
        world.server.query(f"RENAME TABLE {table} TO {new}", database=DATABASE)
        world.writers.small[world.writers.small.index(table)] = new
    world.server.query(f"RENAME TABLE {back} TO {back}_away", database=DATABASE)
    time.sleep(rng.random())
    world.server.query(f"RENAME TABLE {back}_away TO {back}", database=DATABASE)
    return f"RENAME {', '.join(gone)}; {back} away and back"


KINDS: Final[tuple[Disturbance, ...]] = (
    *(pause, kill_reader, kill_capture, kill_apply, crash_server, flush_logs, add_column, truncate, rename),
)


def disturbances(rng: random.Random, times: int) -> list[Disturbance]:
    """Each kind so often."""
    found = list(KINDS) * times
    rng.shuffle(found)
    return found
