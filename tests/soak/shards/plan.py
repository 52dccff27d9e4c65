"""The faults of a soak of several servers, from its seed alone.

In:  a seed, how many, the sources' names.
Out: a list of Fault, as tests/soak/plan.py has them; what a fault does is in faults.py here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from tests.soak.plan import APPLIES, CAPTURE_POINTS, READERS, Fault, Kinds, seconds
from tests.soak.plan import plan as drawn


def plan(seed: int, count: int, sources: Sequence[str]) -> list[Fault]:
    """The first `count` faults of a seed; a longer plan of the same seed begins with a shorter one."""
    return drawn(seed, count, _kinds(sources))


def _kinds(sources: Sequence[str]) -> Kinds:
    def of_one(more: Callable[[random.Random], dict[str, Any]]) -> Callable[[random.Random], dict[str, Any]]:
        return lambda rng: {"source": rng.choice(sources)} | more(rng)

    return {
        "kill": (20, of_one(lambda rng: {"after": seconds(rng, 0.0, 1.0)})),
        "kill_point": (14, of_one(lambda rng: {"point": f"{rng.choice(CAPTURE_POINTS)}:{rng.randint(1, 3)}"})),
        "stop_capture": (5, of_one(lambda rng: {"lasts": seconds(rng, 1.0, 20.0)})),
        "crash_source": (5, of_one(lambda rng: {})),
        "stop_source": (6, of_one(_outage)),
        "flush_logs": (4, of_one(lambda rng: {})),
        "change_definition": (8, lambda rng: {"how": rng.choice(["add", "add", "note", "amount", "place"])}),
        "join": (5, of_one(lambda rng: {"database": rng.randrange(2), "past": rng.random() < 0.5})),
        **APPLIES,
        **READERS,
    }


def _outage(rng: random.Random) -> dict[str, Any]:
    """Mostly waited for, now and then so long that the others go on without it (max_hold_seconds)."""
    long = rng.random() < 0.15
    return {"lasts": seconds(rng, 65.0, 90.0) if long else seconds(rng, 1.0, 15.0), "killed": rng.random() < 0.5}
