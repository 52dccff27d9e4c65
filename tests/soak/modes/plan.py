"""The faults of a soak of all modes: those that nobody's silver may be hurt by, and DDL on any of its tables.

In:  nothing.
Out: KINDS, for plan(). Silver that somebody loses or changes has its own soak: a past that is lost can't be compared.
"""

from __future__ import annotations

import random
from typing import Any, Final

from tests.soak import plan
from tests.soak.modes.tables import TABLES
from tests.soak.plan import Kinds

# The reader of the log takes CRC32 for granted; the rest hurts silver, or makes tables wait.
_LEFT_OUT: Final = frozenset(
    (
        *("checksum", "rewrite_file", "rename", "statement", "approve", "snapshot"),
        *("lose_silver", "older_silver", "restore_silver", "foreign_writer"),
    )
)


def _table(rng: random.Random) -> dict[str, Any]:
    return {"table": rng.choice(TABLES).name}


KINDS: Final[Kinds] = {name: drawn for name, drawn in plan.KINDS.items() if name not in _LEFT_OUT} | {
    "add_column": (8, _table),
    "drop_column": (7, _table),
    "truncate": (8, _table),
    "recreate": (5, _table),
    "optimize_silver": (5, _table),
    "read_table": (6, lambda rng: {**_table(rng), "seconds": plan.seconds(rng, 0.0, 4.0)}),
}
