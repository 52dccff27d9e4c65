"""Checkpoints of a Delta log.

In:  a log's folder.
Out: a checkpoint's actions.
"""

from __future__ import annotations

from tidegate.delta.state import Action
from tidegate.delta.store import LogStore


def newest(store: LogStore, upto: int | None = None) -> tuple[int, list[Action]] | None:
    """(version, actions without tombstones) of the newest usable checkpoint, at most at version `upto`; None: none."""
    found = [entry for entry in store.names() if ".checkpoint" in entry.name and upto is None]
    assert not found, "checkpoints aren't read yet"
    return None
