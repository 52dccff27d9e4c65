"""States of logical tables as an application has them: by name, and by state.

In:  Standings by name.
Out: States, a dict of them, with an index by state: ten thousand active tables cost a window
     nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any, Final, NoReturn, Self

from tidegate.standing.standing import Standing
from tidegate.tables import State

_stamps: Final = count(1)


class States(dict[str, Standing]):
    """stamp: changes with each update, and differs between two States."""

    def __init__(self, standings: Mapping[str, Standing] | None = None) -> None:
        super().__init__()
        self._by_state: dict[State, dict[str, Standing]] = {}
        self.stamp = next(_stamps)
        self.update(standings or {})

    def of(self, *states: State) -> list[tuple[str, Standing]]:
        """Tables in one of these states; a copy, since they may be changed meanwhile."""
        return [item for state in states for item in self._by_state.get(state, {}).items()]

    def any(self, *states: State) -> bool:
        """Whether a table is in one of these states."""
        return any(self._by_state.get(state) for state in states)

    def __setitem__(self, name: str, state: Standing) -> None:
        before = self.get(name)
        if before is not None:
            del self._by_state[before.state][name]
        super().__setitem__(name, state)
        self._by_state.setdefault(state.state, {})[name] = state
        self.stamp = next(_stamps)

    def update(self, standings: Mapping[str, Standing]) -> None:  # type: ignore[override]  # the one form that is used
        """As a dict's."""
        for name, state in standings.items():
            self[name] = state

    def __ior__(self, standings: Any) -> Self:  # type: ignore[override,misc]
        self.update(standings)
        return self

    def __delitem__(self, name: str) -> NoReturn:
        raise TypeError("what was said of a table is never taken back")

    pop = popitem = clear = setdefault = __delitem__  # type: ignore[assignment]
