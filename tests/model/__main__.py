"""`make model`: every state of the protocols, and what each cure is good for.

In:  nothing.
Out: a line per model and bounds: how many states, none broken; per cure left out the shortest way to a broken promise.
     Exit code 1 when a promise is broken with all cures, or when a cure is missed by nobody.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from tests.model import first_start, followed, two_applies
from tests.model.checker import Model, explore
from tests.model.followed import Bounds
from tests.model.following import Following

STATES_MAX: Final = 1_500_000  # about 2 GiB
# Of `following` together they cover each source, each way of joining and leaving, holds, kills.
SMALL: Final = (
    Bounds(ops_a=3, ops_b=0, changes=1),
    Bounds(ops_a=3, ops_b=0, changes=1, holds=0, begins=(False, False)),
    Bounds(ops_a=4, ops_b=0, changes=0, kills=0),
    Bounds(ops_a=4, ops_b=0, changes=0, holds=0, unseen=1),
    Bounds(ops_a=2, ops_b=0, changes=2, kills=0),
    Bounds(ops_a=3, ops_b=0, changes=2, holds=0, kills=0, unseen=1),
    Bounds(ops_a=2, ops_b=0, changes=2, holds=0),
    Bounds(ops_a=0, ops_b=2, changes=2, holds=0, begins=(True, True)),
)
LARGE: Final = (
    Bounds(ops_a=4, ops_b=0, changes=1),
    Bounds(ops_a=3, ops_b=0, changes=2),
    Bounds(ops_a=4, ops_b=0, changes=2, holds=0, begins=(False, False)),
    Bounds(ops_a=1, ops_b=2, changes=2, holds=0),
    Bounds(ops_a=2, ops_b=2, changes=1, begins=(True, True)),
    Bounds(ops_a=3, ops_b=0, changes=2, holds=0, unseen=1),
    Bounds(ops_a=4, ops_b=0, changes=1, holds=0, unseen=1),
    Bounds(ops_a=4, ops_b=0, changes=2, holds=0),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A model at some bounds, and the cures that it knows; make takes those that are left out."""

    name: str
    cures: frozenset[str]
    make: Callable[..., Model[Any]]


def cases(bounds: tuple[Bounds, ...]) -> Iterator[Case]:
    """All models."""
    yield Case("first start", first_start.CURES, first_start.FirstStart)
    yield Case("two applies", two_applies.CURES, two_applies.TwoApplies)
    for bound in bounds:
        yield Case(f"following, {bound}", followed.CURES, _following(bound))


def _following(bound: Bounds) -> Callable[..., Following]:
    return lambda *without: Following(*without, bounds=bound)


def main() -> int:
    """Exit code 0 or 1."""
    bad = 0
    for case in cases((*SMALL, *LARGE)):
        found = explore(case.make(), STATES_MAX)
        print(f"{case.name}: {found.states} states, {found.what or 'none broken'}", flush=True)
        bad += bool(found.what)
        for number, step in enumerate(found.trace, 1):
            print(f"  {number:2}. {step}")
    needed: dict[str, str] = {}
    for case in cases(SMALL):
        for cure in sorted(case.cures - needed.keys()):
            found = explore(case.make(cure), STATES_MAX)
            if found.what:
                needed[cure] = f"{found.what}:\n" + "\n".join(f"  {n:2}. {s}" for n, s in enumerate(found.trace, 1))
    for cure in sorted({cure for case in cases(SMALL) for cure in case.cures}):
        print(f"without '{cure}': {needed.get(cure, 'nothing breaks: it cures nothing')}")
        bad += cure not in needed
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
