"""Whether a store makes a name at most once. On any other store, nothing tidegate does is right.

In:  a folder of the store.
Out: nothing, or LakeRefused. One object stays in the folder, the same for all callers.

Some stores treat a conditional PUT as a plain one, and report success. Therefore the same name is made
twice: if both succeed, the second one has overwritten the first. If the name is taken at the first
try, this has shown it already: later starts of a lake cost one failing conditional PUT and a look.
"""

from __future__ import annotations

from typing import Final

from tidegate.delta.stores.store import CONDITIONS_REMEDY, LogStore
from tidegate.errors import LakeRefused

PROBE: Final = "made_once.txt"
_TEXT: Final = b"Made by tidegate, which tries to make it again whenever it starts: the store must not allow that.\n"


def check_makes_once(store: LogStore) -> None:
    """Raise LakeRefused for a store that makes a name twice, LakeUnavailable."""
    for _ in range(2):
        if not store.create(PROBE, _TEXT):
            return
    raise LakeRefused(
        "this store wrote over an object that it was asked to make only if it isn't there: of two writers one would be"
        " lost, and none would know",
        where=store.where,
        remedy=CONDITIONS_REMEDY,
    )
