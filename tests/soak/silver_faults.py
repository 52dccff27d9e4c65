"""Faults of silver itself, which nobody tells apply of: folders are lost, older copies come back, people restore.

In:  the world, a fault's parameters.
Out: KINDS: functions as those of faults.py. A table may wait for rows then; it is never complete without.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.soak.source import DATABASE
from tests.soak.world import World
from tidegate.lake.files import LakeFiles


def _folder(world: World, table: str) -> Path:
    return world.lake / "silver" / DATABASE / table


def lose_silver(world: World, table: str) -> None:
    """Nothing runs meanwhile: somebody who removes a folder is no second writer."""
    world.applies.end()
    world.kept.explain(table, "silver")
    shutil.rmtree(_folder(world, table), ignore_errors=True)


def older_silver(world: World, table: str, seconds: float) -> None:
    """A copy of the table comes back after apply has written more."""
    world.applies.end()
    folder, aside = _folder(world, table), world.folder / f"aside-{table}"
    if not folder.exists():
        return
    shutil.copytree(folder, aside)
    world.tend()
    time.sleep(seconds)
    world.applies.end()
    world.kept.explain(table, "silver")
    shutil.rmtree(folder, ignore_errors=True)
    aside.rename(folder)


def restore_silver(world: World, table: str, versions: int) -> None:
    """Delta's own RESTORE, beside whatever apply does."""
    path = f"silver/{DATABASE}/{table}"
    state = LakeFiles(str(world.lake)).log(path).state()
    if not state.created or state.version < versions:
        return
    world.kept.explain(table, "silver")
    world.applies.ask(f"RESTORE TABLE delta.`{world.lake / path}` TO VERSION AS OF {state.version - versions}")


def optimize_silver(world: World, table: str) -> None:
    """Delta's own OPTIMIZE, beside whatever apply does: it changes no row."""
    if LakeFiles(str(world.lake)).log(path := f"silver/{DATABASE}/{table}").state().created:
        world.applies.ask(f"OPTIMIZE delta.`{world.lake / path}`")


KINDS: Final[dict[str, Callable[..., None]]] = {
    function.__name__: function for function in (lose_silver, older_silver, restore_silver, optimize_silver)
}
