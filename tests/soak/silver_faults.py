"""Faults of silver, which nobody tells apply of: folders are lost, older copies come back, people write and restore.

In:  a world of one source or of several, a fault's parameters.
Out: KINDS: functions as those of faults.py. A table may wait for rows then; it is never complete without.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from tests.soak.applies import Applies
from tests.soak.hands import ROWS, Hands


class Silvered(Protocol):
    """What has silver, and applies that write it."""

    @property
    def folder(self) -> Path: ...
    @property
    def applies(self) -> Applies: ...
    @property
    def hands(self) -> Hands: ...

    def silver_of(self, table: str) -> str:
        """Path in the lake."""

    def explain(self, table: str, cause: str) -> None:
        """Why the table may wait."""

    def tend(self) -> None:
        """An apply runs."""


def _folder(world: Silvered, table: str) -> Path:
    return world.hands.root / world.silver_of(table)


def lose_silver(world: Silvered, table: str) -> None:
    """Nothing runs meanwhile: somebody who removes a folder is no second writer."""
    world.applies.end()
    world.explain(table, "silver")
    shutil.rmtree(_folder(world, table), ignore_errors=True)


def older_silver(world: Silvered, table: str, seconds: float) -> None:
    """A copy of the table comes back after apply has written more."""
    world.applies.end()
    folder, aside = _folder(world, table), world.folder / f"aside-{table}"
    if not folder.exists():
        return
    shutil.copytree(folder, aside)
    world.tend()
    time.sleep(seconds)
    world.applies.end()
    world.explain(table, "silver")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.move(aside, folder)


def restore_silver(world: Silvered, table: str, versions: int) -> None:
    """Delta's own RESTORE, beside whatever apply does."""
    state = world.hands.lake.log(world.silver_of(table)).state()
    if not state.created or state.version < versions:
        return
    world.explain(table, "silver")
    world.applies.ask(f"RESTORE TABLE delta.`{_folder(world, table)}` TO VERSION AS OF {state.version - versions}")


def optimize_silver(world: Silvered, table: str) -> None:
    """Delta's own OPTIMIZE, beside whatever apply does: it changes no row."""
    if world.hands.lake.log(world.silver_of(table)).state().created:
        world.applies.ask(f"OPTIMIZE delta.`{_folder(world, table)}`")


def foreign_writer(world: Silvered, table: str, hand: str) -> None:
    """Somebody changes rows, beside whatever apply does; before silver is compared a person has them read again."""
    path = world.silver_of(table)
    if world.hands.lake.log(path).state().created and ROWS[hand](world.hands, path):
        world.hands.touched.add(table)
        world.explain(table, "hands")


KINDS: Final[dict[str, Callable[..., None]]] = {
    function.__name__: function
    for function in (lose_silver, older_silver, restore_silver, optimize_silver, foreign_writer)
}
