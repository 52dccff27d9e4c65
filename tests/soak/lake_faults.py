"""Faults of a whole lake: backups are made while all work on it, and one of them is put back.

In:  a world of one source or of several, a fault's parameters.
Out: KINDS: functions as those of faults.py. A lake that was put back catches up with sources that have gone on.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

from tests.soak.applies import Applies
from tests.soak.copies import Copies
from tests.soak.hands import Hands
from tests.soak.shots import Shots

_KEPT_MAX: Final = 2


class Copied(Protocol):
    """What has a lake of which there are copies. copies: each with what the world remembered when it began."""

    @property
    def applies(self) -> Applies: ...
    @property
    def shots(self) -> Shots: ...
    @property
    def hands(self) -> Hands: ...
    @property
    def copies(self) -> Copies[Any]: ...

    def remembered(self) -> Any:
        """What is known of the lake now. Raises Wrong."""

    def keep(self, memories: list[Any]) -> None:
        """Of these moments the lake may come back: the sources keep what they have sent since."""

    def no_captures(self) -> AbstractContextManager[None]:
        """None runs inside it, and those that ran go on behind it."""

    def put_back(self, memory: Any, unlike: frozenset[str]) -> None:
        """The lake is a copy of that moment; unlike: tables whose silver isn't as it was published. Raises Wrong."""


def backup(world: Copied, which: float, killed_after: float) -> None:
    """Into a new folder, or one of the earlier ones; everything else goes on."""
    copies = world.copies
    renewed = [None, *copies.made][int(which * (len(copies.made) + 1))]
    copies.backup(world.remembered(), renewed, lambda: None, killed_after=killed_after)
    copies.keep(_KEPT_MAX)
    world.keep([made.memory for made in copies.made])


def restore_lake(world: Copied, which: float) -> None:
    """As a person does it: nothing runs, the lake is moved away, a copy of it takes its place, all goes on."""
    copies = world.copies
    if not copies.made:
        backup(world, 0.0, 0.0)
        return
    chosen = copies.made[int(which * len(copies.made))]
    with world.no_captures():
        world.shots.kill()
        world.applies.quiet()
        unlike = copies.restore(chosen, world.hands.root)
        world.put_back(chosen.memory, unlike)


KINDS: Final[dict[str, Callable[..., None]]] = {function.__name__: function for function in (backup, restore_lake)}
