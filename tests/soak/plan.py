"""The faults of a soak, from its seed alone.

In:  a seed, how many.
Out: a list of Fault. What a fault does is in faults.py; here is only what, how often, how long, where.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from tests.support.fault_proxy import Way

CAPTURE_POINTS: Final = (
    "capture_before_value_log",
    "capture_after_value_log_sync",
    "capture_before_bronze_commit",
    "capture_after_bronze_file",
    "capture_after_bronze_commit",
)
CHASE_POINTS: Final = (
    "capture_at_chase_start",
    "capture_in_first_catch_up",
    "capture_in_second_catch_up",
    "capture_at_chase_end",
)
APPLY_POINTS: Final = (
    "apply_before_schema_history",
    "apply_after_schema_history",
    "apply_in_decode",
    "apply_after_stage",
    "apply_before_commit",
    "reshape_after_file",
    "reshape_before_commit",
    "apply_after_commit:2",
    "apply_after_merge",
    "apply_before_publish",
    "apply_after_publish",
    "apply_after_followed",
)
UPKEEP_POINTS: Final = (
    "bronze_before_removal",
    "bronze_after_removal",
    "bronze_in_compaction",
    "bronze_before_compaction",
    "bronze_after_compaction",
)
TABLES: Final = ("keyed", "pairs", "bag", "notes")
ROW_HANDS: Final = ("delete", "insert", "update")


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, in words for the log and in parameters. pause_seconds: of an undisturbed capture before it."""

    number: int
    kind: str
    pause_seconds: float
    parameters: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        words = ", ".join(f"{key} {value}" for key, value in self.parameters.items())
        return f"{self.number} {self.kind}" + (f" ({words})" if words else "")


# How often, and what it is drawn from.
Kinds: TypeAlias = Mapping[str, tuple[int, Callable[[random.Random], dict[str, Any]]]]


def seconds(rng: random.Random, low: float, high: float) -> float:
    return round(rng.uniform(low, high), 3)


def _half_open(rng: random.Random) -> dict[str, Any]:
    """Mostly mended before capture gives up on it, now and then not before."""
    lasts = seconds(rng, 0.2, 1.5) if rng.random() < 0.9 else 60.0
    return {"way": rng.choice([*Way, "both"]), "seconds": lasts}


def mode(rng: random.Random) -> str:
    return rng.choice(["batch", "micro_batch"])


APPLIES: Final[Kinds] = {
    "start_apply": (
        9,
        lambda rng: {"mode": mode(rng), "point": rng.choice(APPLY_POINTS) if rng.random() < 0.5 else "none"},
    ),
    "second_apply": (8, lambda rng: {"mode": mode(rng), "sleep": rng.choice([0.0, seconds(rng, 1.0, 20.0)])}),
    "retry_apply": (8, lambda rng: {"after": seconds(rng, 0.0, 1.0)}),
    "maintain": (2, lambda rng: {}),
}
READERS: Final[Kinds] = {
    "snapshot": (4, lambda rng: {"seconds": seconds(rng, 0.0, 3.0)}),
    "kill_reader": (4, lambda rng: {"after": seconds(rng, 0.0, 12.0)}),
}
LAKE: Final[Kinds] = {
    "backup": (
        4,
        lambda rng: {
            "which": rng.random(),
            "killed_after": seconds(rng, 1.0, 6.0) if rng.random() < 0.3 else 0.0,
        },
    ),
    "restore_lake": (3, lambda rng: {"which": rng.random()}),
}


def silver(table: Callable[[random.Random], str]) -> Kinds:
    """table: draws one of silver's."""
    return {
        "lose_silver": (3, lambda rng: {"table": table(rng)}),
        "older_silver": (3, lambda rng: {"table": table(rng), "seconds": seconds(rng, 1.0, 10.0)}),
        "restore_silver": (3, lambda rng: {"table": table(rng), "versions": rng.randint(1, 3)}),
        "optimize_silver": (3, lambda rng: {"table": table(rng)}),
        "foreign_writer": (4, lambda rng: {"table": table(rng), "hand": rng.choice(ROW_HANDS)}),
    }


KINDS: Final[Kinds] = {
    "kill": (24, lambda rng: {"after": seconds(rng, 0.0, 1.0)}),
    "kill_point": (18, lambda rng: {"point": f"{rng.choice(CAPTURE_POINTS)}:{rng.randint(1, 3)}"}),
    "kill_chasing": (5, lambda rng: {"point": rng.choice(CHASE_POINTS), "seconds": seconds(rng, 0.1, 0.5)}),
    "cut": (
        14,
        lambda rng: {
            "after_bytes": rng.randint(1, 60_000),
            "way": rng.choices(list(Way), [4, 1])[0],
            "reset": rng.random() < 0.5,
        },
    ),
    "half_open": (5, _half_open),
    "trickle": (4, lambda rng: {"size": rng.randint(1, 40), "seconds": seconds(rng, 0.2, 1.5)}),
    "flush_logs": (6, lambda rng: {}),
    "checksum": (3, lambda rng: {"algorithm": rng.choice(["NONE", "CRC32"])}),
    "restart_source": (2, lambda rng: {}),
    "crash_source": (3, lambda rng: {}),
    "stall_lake": (4, lambda rng: {"seconds": seconds(rng, 0.3, 1.5), "mebibytes": rng.randint(0, 2)}),
    "move_lake": (2, lambda rng: {"seconds": seconds(rng, 0.1, 1.0)}),
    "fill_lake": (3, lambda rng: {"seconds": seconds(rng, 0.1, 1.0)}),
    "two_captures": (4, lambda rng: {"folder": rng.choice(["same", "own", "own"]), "seconds": seconds(rng, 0.3, 3.5)}),
    "upkeep": (6, lambda rng: {"point": rng.choice([*UPKEEP_POINTS, "none"])}),
    "add_column": (3, lambda rng: {"table": rng.choice(TABLES)}),
    "rewrite_file": (
        9,
        lambda rng: {
            "excluded": tuple(sorted(rng.sample(TABLES, rng.choice([0, 0, 1, 1, 2])))),
            "listed": rng.random() < 0.5,
        },
    ),
    **APPLIES,
    "drop_column": (4, lambda rng: {"table": rng.choice(TABLES)}),
    "approve": (4, lambda rng: {}),
    "truncate": (3, lambda rng: {"table": rng.choice(TABLES)}),
    "recreate": (3, lambda rng: {"table": rng.choice(TABLES)}),
    "rename": (3, lambda rng: {"table": rng.choice(TABLES), "seconds": seconds(rng, 0.0, 0.6)}),
    "statement": (2, lambda rng: {"table": rng.choice(TABLES)}),
    **silver(lambda rng: rng.choice(TABLES)),
    **LAKE,
    **READERS,
}


def plan(seed: int, count: int, weighed: Kinds = KINDS) -> list[Fault]:
    """The first `count` faults of a seed; a longer plan of the same seed begins with a shorter one."""
    rng = random.Random(seed)
    kinds, weights = list(weighed), [weight for weight, _ in weighed.values()]
    faults = []
    for number in range(1, count + 1):
        kind = rng.choices(kinds, weights)[0]
        faults.append(Fault(number, kind, seconds(rng, 0.0, 0.6), weighed[kind][1](rng)))
    return faults
