"""An exhaustive checker: every state that a protocol can get into, breadth first.

In:  a Model: its first state, what may happen next in a state, and what is broken in it.
Out: how many states there are; the shortest way to a broken one, as the names of what happened.

States are immutable and hashable; a model is bounded by what it lets happen (so many rows, restarts, changes of mind),
so that all of it can be looked at. Breadth first: the shortest counterexample is the one that people understand.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

S = TypeVar("S", bound=Hashable)


class Model(Protocol[S]):
    """A protocol with its faults."""

    def first(self) -> S:
        """Where it begins."""
        ...

    def steps(self, state: S) -> Iterable[tuple[str, S]]:
        """What may happen, by name, and what becomes of it."""
        ...

    def broken(self, state: S) -> str:
        """Which promise this state breaks; "" when none."""
        ...


@dataclass(frozen=True, slots=True)
class Result(Generic[S]):
    """what: "" when no promise is ever broken. trace: names of the steps to the first state that breaks one."""

    states: int
    what: str = ""
    trace: tuple[str, ...] = ()
    last: S | None = None


class TooLargeError(Exception):
    """A model has more states than it was allowed: nothing is proved."""


def explore(model: Model[S], states_max: int) -> Result[S]:
    """Look at all states. Raises TooLargeError."""
    first = model.first()
    came_from: dict[S, tuple[S, str] | None] = {first: None}
    layer = [first]
    while layer:
        following: list[S] = []
        for state in layer:
            what = model.broken(state)
            if what:
                return Result(len(came_from), what, trace_to(came_from, state), state)
            for name, after in model.steps(state):
                if after not in came_from:
                    came_from[after] = (state, name)
                    following.append(after)
        if len(came_from) > states_max:
            raise TooLargeError(f"more than {states_max} states")
        layer = following
    return Result(len(came_from))


def trace_to(came_from: dict[S, tuple[S, str] | None], state: S) -> tuple[str, ...]:
    """Names of the steps to a state."""
    names = []
    step = came_from[state]
    while step is not None:
        state, name = step
        names.append(name)
        step = came_from[state]
    return tuple(reversed(names))
