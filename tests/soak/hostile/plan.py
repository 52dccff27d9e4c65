"""The rounds of a hostile run, from its seed alone.

In:  nothing; this is data for tests/soak/plan.py.
Out: ROUNDS: what happens between a burst of statements and the apply behind it, how often, from what it is drawn.
"""

from __future__ import annotations

import random
from typing import Any, Final

from tests.soak import hands
from tests.soak.plan import Kinds

POINTS: Final = (
    *("apply_before_schema_history", "apply_after_schema_history", "apply_after_watermarks", "apply_after_prewrites"),
    *("apply_in_decode", "apply_after_decode", "apply_after_stage", "apply_after_changelog", "apply_in_chunks"),
    *("apply_before_commit", "apply_after_commit", "apply_after_commit:2", "apply_in_merge", "apply_in_move"),
    *("reshape_after_file", "reshape_before_commit", "private_before_commit", "copied_before_commit"),
    *("apply_after_merge", "apply_after_sweep"),
    *("apply_before_publish", "apply_in_publish", "apply_after_publish", "apply_after_followed", "apply_after_healed"),
    *("delta_before_commit:2", "delta_after_commit:2", "delta_after_commit:4", "store_before_link:3"),
    *("store_after_link:3", "apply_before_snapshot_version", "apply_after_snapshot_version", "apply_after_placed"),
)


def _burst(rng: random.Random, **more: Any) -> dict[str, Any]:
    return {"statements": rng.choice([10, 40, 80, 150]), **more}


ROUNDS: Final[Kinds] = {
    "goes_on": (6, _burst),
    "kill_apply": (7, lambda rng: _burst(rng, points=rng.choices(POINTS, k=rng.choice([1, 1, 2])))),
    "edit_file": (6, lambda rng: _burst(rng, edits=rng.randint(1, 3))),
    "silver_hand": (6, lambda rng: _burst(rng, hand=rng.choice(list(hands.KINDS)), which=rng.random())),
    "older_silver": (1, lambda rng: _burst(rng, which=rng.random())),
    "crash_source": (1, _burst),
    "set_global": (2, _burst),
    "snapshot": (3, lambda rng: _burst(rng, asked=rng.random() < 0.5, which=rng.random())),
    "small_windows": (2, lambda rng: _burst(rng, windows=rng.randint(2, 4))),
    "maintain": (1, _burst),
    "backup": (3, lambda rng: _burst(rng, which=rng.random(), busy=rng.random() < 0.5)),
    "restore": (2, lambda rng: _burst(rng, which=rng.random())),
}
