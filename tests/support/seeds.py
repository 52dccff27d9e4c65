"""The seed of random tests: the same in every run, so that it is the change at hand that breaks one, or nothing.

TIDEGATE_SEED=random draws one, to look for what nobody thought of; TIDEGATE_SEED=7 repeats one that was printed.
`make test-long` (TIDEGATE_LONG=1) runs what is marked `long` with more examples, `make test-quick` (TIDEGATE_QUICK=1)
all that starts nothing with fewer.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import Final, TypeVar

VARIABLE: Final = "TIDEGATE_SEED"
_USUAL: Final = 20261122
LONG: Final = bool(os.environ.get("TIDEGATE_LONG"))
QUICK: Final = bool(os.environ.get("TIDEGATE_QUICK"))
_QUICK_SHARE: Final = 8
_EXAMPLES_MIN: Final = 3

Thing = TypeVar("Thing")


def seed() -> int:
    """Prints it too, which pytest shows of a test that fails."""
    given = os.environ.get(VARIABLE) or str(_USUAL)
    found = random.SystemRandom().randrange(1 << 31) if given == "random" else int(given)
    print(f"{VARIABLE}={found}")
    return found


def many(usual: int, long: int) -> int:
    """How many examples: a few in `make test`, where the seed is the same each time, and many in `make test-long`."""
    if LONG:
        return long
    return max(usual // _QUICK_SHARE, _EXAMPLES_MIN) if QUICK else usual


def share(of: Sequence[Thing]) -> Sequence[Thing]:
    """All of what there is; in `make test-quick` some of it, spread over the whole."""
    return of[::_QUICK_SHARE] if QUICK else of
