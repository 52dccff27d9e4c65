"""Tables that somebody has written to are read again, as a person asks for it, before silver is compared.

In:  a world whose sources are quiet; tables of silver.
Out: read_again(): their rows are the source's. Wrong where a snapshot doesn't end well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from tests.soak.applies import Applies
from tests.soak.shots import Shots
from tests.soak.witness import Wrong
from tidegate import config
from tidegate.lake.files import LakeFiles
from tidegate.snapshot.progress.events import SnapshotState
from tidegate.snapshot.progress.requests import told
from tidegate.snapshot.work import logical_name, newest

_ROUNDS_MAX: Final = 12


def read_again(
    tables: Collection[str], file: Path, shots: Shots, applies: Applies, catch_up: Callable[[], None]
) -> None:
    """Raises Wrong."""
    pipeline = config.load(file)
    lake = LakeFiles(pipeline.lake.path)
    shots.begin(*sorted(tables))
    for _ in range(_ROUNDS_MAX):
        shots.wait()
        catch_up()
        applies.to_the_end()
        asked = newest(told(lake, pipeline.pipeline))
        ends = [progress for progress in asked if logical_name(pipeline, progress) in tables]
        if not shots.reads and all(progress.state.is_over for progress in ends):
            break
    unread = set(tables) - {logical_name(pipeline, progress) for progress in ends}
    bad = [f"{it.name}: {it.state} {it.reason}" for it in ends if it.state is not SnapshotState.DONE]
    if bad or unread:
        raise Wrong(f"not read again: {bad} {sorted(unread)}; see snapshot.log")
