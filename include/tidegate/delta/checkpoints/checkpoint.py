"""A Delta log's checkpoints: find and read the newest one; is one due?

In:  a log's folder.
Out: the version and actions of its newest whole checkpoint, without tombstones.

A reader with a checkpoint needs only the commits after it. write.py writes them,
cleaning/log_cleanup.py removes them. Both may run in any process at any time, beside commits and
beside each other, since a checkpoint only repeats the commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tidegate.delta.object_names import LAST_CHECKPOINT, LogCheckpoint, checkpoints, hinted
from tidegate.delta.stores.store import LogStore
from tidegate.delta.table.state import Action, Keep, no_files
from tidegate.errors import LakeUnavailable
from tidegate.limits import CHECKPOINT_COMMITS

if TYPE_CHECKING:
    from tidegate.delta.checkpoints.contents import Contents

T = TypeVar("T")

# A listed checkpoint may be cleaned up before it is read. Then there is a newer one, which the next look finds.
_LOOKS: Final = 3
# So many files are Python objects at a time, 2 KB each.
_ADDS: Final = 4096


def newest(store: LogStore, upto: int | None = None, keep: Keep | None = None) -> tuple[int, list[Action]] | None:
    """The newest whole checkpoint (not newer than `upto`): its version and its actions; None when there is none.

    Actions are as in the log's JSON: protocol, metaData, domainMetadata, txn and add (of files to keep), no remove.
    Raises LakeUnavailable, LakeRefused (it can't be read: an older one might hide a gap in the log), DeltaUnsupported.
    """
    checkpoint = find(store, upto)
    if checkpoint is None:
        return None  # a young table: Arrow isn't loaded
    return read(store, checkpoint, lambda contents: _actions(contents, keep), upto)


def find(store: LogStore, upto: int | None = None) -> LogCheckpoint | None:
    """The newest whole checkpoint, not newer than `upto`: by `_last_checkpoint`, or by listing the
    whole log.

    That hint may be old, so later ones are looked for. It may be wrong, so the named one must
    exist.
    """
    hint = hinted(store.get(LAST_CHECKPOINT))
    starts = [""] if hint is None or (upto is not None and hint > upto) else [f"{hint:020d}", ""]
    for start in starts:
        for checkpoint in checkpoints(store.names(start)):
            if upto is None or checkpoint.version <= upto:
                return checkpoint
    return None


def read(store: LogStore, checkpoint: LogCheckpoint, do: Callable[[Contents], T], upto: int | None = None) -> T | None:
    """The result of `do` on a checkpoint, or on a newer one if it was cleaned up; None if none is
    left.
    """
    from tidegate.delta.checkpoints.contents import CheckpointGoneError, load

    looked: LogCheckpoint | None = checkpoint
    for _ in range(_LOOKS):
        if looked is None:
            return None
        try:
            return do(load(store, looked))
        except CheckpointGoneError as error:
            gone = str(error)
            looked = find(store, upto)
    raise LakeUnavailable(f"{gone} of its checkpoint isn't there any more", where=store.where, remedy="try again")


def due(version: int, checkpointed: int, commits: int = CHECKPOINT_COMMITS) -> bool:
    """Whether a table at this version should get a checkpoint. checkpointed: version of its last one, -1 for none."""
    return version < checkpointed or version - checkpointed >= commits


def _actions(contents: Contents, keep: Keep | None) -> tuple[int, list[Action]]:
    from tidegate.delta.checkpoints.rows import bodies

    actions = [action for action in contents.others if not action.get("domainMetadata", {}).get("removed")]
    if keep is not no_files:
        adds = (body for batch in contents.batches(("add",)) for body in _adds(batch["add"].drop_null(), bodies))
        loose = (action["add"] for action in contents.loose if "add" in action)
        actions += [{"add": body} for body in chain(loose, adds) if keep is None or keep(body)]
    return contents.version, actions


def _adds(column: Any, bodies: Callable[[Any], list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """As dicts, some at a time: a caller that keeps few of them needs little memory."""
    for start in range(0, len(column), _ADDS):
        yield from bodies(column.slice(start, _ADDS))
