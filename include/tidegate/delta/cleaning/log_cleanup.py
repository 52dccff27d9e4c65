"""Remove needless objects from a Delta log: commits and checkpoints before a kept checkpoint.

In:  a log's folder, the table's properties and features.
Out: how many objects were removed.

PROTOCOL.md, "Metadata Cleanup". All objects back to delta.logRetentionDuration are kept, and the checkpoint before the
oldest version in there. The reasons why it is safe at any time, in any number of processes:
1. A cut is a whole checkpoint that was just read; every commit from its own version on to the newest is there. Each
   version from the cut on can be read as before. It has stood for a day: whoever listed the log before it was there,
   and still reads the commits that it stands for, has come to an end.
2. `_last_checkpoint` never names what goes: no cut lies after it.
3. Versions go one after the other, the oldest first, each by a request of its own, since a store keeps no order within
   one. The rest after a killed or bounded run begins later and has no gap. Nobody who holds version N finds it there
   and N + 1 gone: this would look like the end of the log, where he may commit.
4. The cut moves once a day: the age at which a commit counts as old ends at midnight UTC, as Delta's own does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final

from tidegate.delta.object_names import (
    LAST_CHECKPOINT,
    SIDECARS,
    LogCheckpoint,
    checkpoints,
    commit_version,
    expires_at,
    hinted,
)
from tidegate.delta.stores.store import Entry, LogStore
from tidegate.delta.table.log_retention import log_ms
from tidegate.errors import LakeRefused
from tidegate.limits import LOG_CLEANUP_FILES_MAX

_DAY_MS: Final = 86_400_000
_VERSION_DIGITS: Final = 20  # that every name of a version begins with
# With these features the log's objects are removed by other rules, or by a catalog alone.
_OTHER_RULES: Final = frozenset({"checkpointProtection", "catalogManaged", "adaptiveMetadata-preview"})
_V2: Final = "v2Checkpoint"


def clean_up(store: LogStore, configuration: Mapping[str, str], features: Iterable[str], *, now_ms: int) -> int:
    """Remove what is old enough, at most LOG_CLEANUP_FILES_MAX objects of the log; how many went.

    configuration, features: of the newest version. More than once a day it finds nothing new. Raises LakeUnavailable,
    LakeRefused, DeltaUnsupported (a duration that isn't one).
    """
    kept_ms, named = log_ms(configuration), set(features)
    if kept_ms is None or named & _OTHER_RULES:
        return 0
    cutoff_ms = (now_ms - kept_ms) // _DAY_MS * _DAY_MS
    entries = store.names()
    hint = hinted(store.get(LAST_CHECKPOINT))
    cuts = [cut for cut in _cuts(entries, cutoff_ms, hint) if _made_ms(cut) <= now_ms - _DAY_MS]
    expired = [entry.name for entry in entries if cuts and _goes(entry.name, cuts[0].version)]
    if not expired:
        return 0
    if len(expired) > LOG_CLEANUP_FILES_MAX:
        # In steps from one checkpoint to the next, where these lie close enough.
        steps = [[name for name in expired if _goes(name, cut.version)] for cut in cuts]
        expired = next((step for step in steps if 0 < len(step) <= LOG_CLEANUP_FILES_MAX), expired)
    expired = sorted(expired)[:LOG_CLEANUP_FILES_MAX]
    _check_readable(store, cuts[0])
    for _, names in groupby(expired, key=lambda name: name[:_VERSION_DIGITS]):
        store.delete(list(names))
    gone = len(expired)
    if _V2 in named:
        gone += _remove_sidecars(store, min(cutoff_ms, now_ms // _DAY_MS * _DAY_MS - _DAY_MS))
    return gone


def _made_ms(cut: LogCheckpoint) -> int:
    return max(entry.modified_ms for entry in cut.files)


def _goes(name: str, cut: int) -> bool:
    at = expires_at(name)
    return at is not None and at <= cut


def _cuts(entries: Sequence[Entry], cutoff_ms: int, hint: int | None) -> list[LogCheckpoint]:
    """Whole checkpoints at or before the newest commit that is old enough, the newest first."""
    commits = {version: entry for entry in entries if (version := commit_version(entry.name)) is not None}
    if hint is None or not commits:
        return []
    newest = oldest = max(commits)
    while oldest - 1 in commits:
        oldest -= 1
    old, last_ms = -1, -1
    for version in range(oldest, newest + 1):
        # A commit is later than the one before it, whatever its file's time says (as Delta adjusts them).
        last_ms = max(commits[version].modified_ms, last_ms + 1)
        if last_ms > cutoff_ms:
            break
        old = version
    return [checkpoint for checkpoint in checkpoints(entries) if oldest <= checkpoint.version <= min(old, hint)]


def _check_readable(store: LogStore, cut: LogCheckpoint) -> None:
    """Read all of it, sidecars too: the commits that say the same are about to go."""
    from tidegate.delta.checkpoints.contents import CheckpointGoneError, load

    try:
        for batch in load(store, cut).batches():
            assert "add" in batch
    except CheckpointGoneError as error:
        raise LakeRefused(
            f"the checkpoint of version {cut.version} lacks {error}",
            where=store.where,
            remedy="let Spark write a newer one",
        ) from error


def _remove_sidecars(store: LogStore, before_ms: int) -> int:
    """Those named by no checkpoint, and too old for one in the making."""
    from tidegate.delta.checkpoints.contents import CheckpointGoneError, load

    folder = store.folder(SIDECARS)
    old = [entry.name for entry in folder.names() if entry.modified_ms < before_ms]
    if not old:
        return 0
    try:
        named = {sidecar for checkpoint in checkpoints(store.names()) for sidecar in load(store, checkpoint).sidecars}
    except CheckpointGoneError:
        return 0  # another process is at it
    unnamed = [name for name in old if name not in named][:LOG_CLEANUP_FILES_MAX]
    folder.delete(unnamed)
    return len(unnamed)
