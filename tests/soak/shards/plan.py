"""The faults of a soak of several servers, from its seed alone.

In:  a seed, how many, the sources' names.
Out: a list of Fault, as tests/soak/plan.py has them; what a fault does is in faults.py here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from tests.soak.plan import APPLIES, CAPTURE_POINTS, KINDS, LAKE, READERS, Fault, Kinds, seconds, silver
from tests.soak.plan import plan as drawn

ORDERS: Final = "shop.orders"


def plan(seed: int, count: int, sources: Sequence[str]) -> list[Fault]:
    """The first `count` faults of a seed; a longer plan of the same seed begins with a shorter one."""
    return drawn(seed, count, _kinds(sources))


def _kinds(sources: Sequence[str]) -> Kinds:
    def of_one(more: Callable[[random.Random], dict[str, Any]]) -> Callable[[random.Random], dict[str, Any]]:
        return lambda rng: {"source": rng.choice(sources)} | more(rng)

    def as_of_one(kind: str) -> tuple[int, Callable[[random.Random], dict[str, Any]]]:
        """As it is drawn for a single server."""
        weight, more = KINDS[kind]
        return weight, of_one(more)

    return {
        "kill": (20, of_one(lambda rng: {"after": seconds(rng, 0.0, 1.0)})),
        "kill_point": (14, of_one(lambda rng: {"point": f"{rng.choice(CAPTURE_POINTS)}:{rng.randint(1, 3)}"})),
        "stop_capture": (5, of_one(lambda rng: {"lasts": seconds(rng, 1.0, 20.0)})),
        **{kind: as_of_one(kind) for kind in ("two_captures", "cut", "half_open", "trickle")},
        "unplug": (3, of_one(lambda rng: {"lasts": _lasts(rng)})),
        "take_out": (1, of_one(lambda rng: {"lasts": seconds(rng, 5.0, 60.0)})),
        "crash_source": (5, of_one(lambda rng: {})),
        "stop_source": (6, of_one(lambda rng: {"lasts": _lasts(rng), "killed": rng.random() < 0.5})),
        "freeze_source": (4, of_one(lambda rng: {"lasts": _lasts(rng)})),
        "flush_logs": (4, of_one(lambda rng: {})),
        "fail_over": (6, of_one(lambda rng: {"how": rng.choice(["killed", "fenced", "fenced_and_killed"])})),
        "change_definition": (8, lambda rng: {"how": rng.choice(["add", "add", "note", "amount", "place"])}),
        "join": (5, of_one(lambda rng: {"database": rng.randrange(2), "past": rng.random() < 0.5})),
        **APPLIES,
        **silver(lambda rng: rng.choice([ORDERS, f"only_{rng.choice(sources)}.accounts"])),
        **LAKE,
        **READERS,
    }


def _lasts(rng: random.Random) -> float:
    """Mostly waited for, now and then so long that the others go on without it (max_hold_seconds)."""
    return seconds(rng, 65.0, 90.0) if rng.random() < 0.1 else seconds(rng, 1.0, 15.0)
