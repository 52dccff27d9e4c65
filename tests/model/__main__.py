"""`make model`: every state of the protocols, and what each rule and cure is good for.

In:  nothing; --long looks at the large bounds, too.
Out: a line per model and bounds: how many states, none broken; per rule or cure left out the shortest way to a broken
     promise. Exit code 1 when a promise is broken with all of them, or when one is missed by nobody.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tests.model import changelog, first_start, moves, ties, two_applies, two_machines
from tests.model.checker import Model, Result, explore
from tests.model.life import Life
from tests.model.progress import stuck
from tests.model.scenarios import LARGE, MUTATIONS, SMALL, WHERE, without
from tests.model.world import Bounds

STATES_MAX: Final = 1_500_000  # about 2 GiB


@dataclass(frozen=True, slots=True)
class Case:
    """A model, and the cures that it knows; make takes those that are left out."""

    name: str
    cures: frozenset[str]
    make: Callable[..., Model[Any]]


CASES: Final = (
    Case("first start", first_start.CURES, first_start.FirstStart),
    Case("two applies", two_applies.CURES, two_applies.TwoApplies),
    Case("changelog", changelog.CURES, changelog.Changelog),
    Case("rename", moves.CURES, partial(moves.Moves, False)),
    Case("swap of names", moves.CURES, partial(moves.Moves, True)),
    Case("renames at one moment", ties.CURES, ties.Ties),
    *(
        Case(f"two machines, {world.name}", two_machines.CURES, partial(two_machines.TwoMachines, world))
        for world in two_machines.WORLDS
    ),
)


def breaks(mutation: str, states_max: int = STATES_MAX) -> tuple[str, Result[Any]] | None:
    """The first bounds where rules without one break a promise, or leave somebody waiting."""
    first = [bounds for bounds in SMALL if bounds.name == WHERE.get(mutation)]
    for every in (first, [bounds for bounds in SMALL if bounds not in first]):
        for bounds in every:
            with without(mutation):
                try:
                    seen = looked(bounds, states_max, followed=bounds.is_followed)
                except (AssertionError, RecursionError) as error:
                    return bounds.name, Result(0, f"a standing that can't be: {error}")
            if seen.what:
                return bounds.name, seen
    return None


def looked(bounds: Bounds, states_max: int, *, followed: bool) -> Result[Any]:
    """All states of these bounds. followed: whether the ways on are looked for, too."""
    return stuck(bounds, states_max) if followed else explore(Life(bounds), states_max)


def main() -> int:
    """Exit code 0 or 1."""
    bad = sum(_look(case.name, explore(case.make(), STATES_MAX)) for case in CASES)
    for bounds in (*SMALL, *(LARGE if "--long" in sys.argv else ())):
        began = time.monotonic()
        followed = bounds.is_followed or "--long" in sys.argv
        name = f"{bounds.name}, to its end" if followed else bounds.name
        bad += _look(name, looked(bounds, STATES_MAX, followed=followed), began)
    for cure in sorted({cure for case in CASES for cure in case.cures}):
        broken = (explore(case.make(cure), STATES_MAX).what for case in CASES if cure in case.cures)
        bad += not _missed(cure, next(filter(None, broken), ""))
    for mutation in MUTATIONS:
        seen = breaks(mutation)
        bad += not _missed(mutation, f"{seen[0]}: {seen[1].what}" if seen else "")
    return int(bad > 0)


def _look(name: str, seen: Result[Any], began: float = 0) -> int:
    took = f" in {time.monotonic() - began:.1f} s" if began else ""
    print(f"{name}: {seen.states} states{took}, {seen.what or 'none broken'}", flush=True)
    for number, step in enumerate(seen.trace, 1):
        print(f"  {number:2}. {step}")
    return int(bool(seen.what))


def _missed(cure: str, what: str) -> bool:
    print(f"without '{cure}': {what or 'nothing breaks'}", flush=True)
    return bool(what)


if __name__ == "__main__":
    sys.exit(main())
