"""Remove needless objects from a Delta log: commits and checkpoints before a kept checkpoint.

In:  a log's folder, the table's properties and features.
Out: how many objects were removed.

PROTOCOL.md, "Metadata Cleanup". All objects back to delta.logRetentionDuration are kept, and the
checkpoint before the oldest version among them. Why it is safe at any time, in any number of
processes:
1. A cut is a whole checkpoint that was just read, and every commit from its version to the newest
   exists. Therefore each version from the cut on can be read as before. The cut is at least a day old: a
   reader that listed the log before it existed, and still reads commits it replaces, has ended by
   now.
2. `_last_checkpoint` never names a removed object: no cut lies after it.
3. Versions go one by one, the oldest first, each in a request of its own, since a store keeps no
   order within one request. After a kill or a bounded run, the rest begins later and has no gap. A
   process that holds version N must never find N there and N + 1 gone: this would look like the end
   of the log, where it may commit.
4. The cut moves once a day: the age at which a commit counts as old ends at midnight UTC, as
   Delta's own does.
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
_VERSION_DIGITS: Final = 20  # every name with a version begins with so many digits
# With one of these features other rules apply to the log's objects, or only a catalog removes them.
_OTHER_RULES: Final = frozenset({"checkpointProtection", "catalogManaged", "adaptiveMetadata-preview"})
_V2: Final = "v2Checkpoint"


def clean_up(store: LogStore, configuration: Mapping[str, str], features: Iterable[str], *, now_ms: int) -> int:
    """Remove what is old enough, at most LOG_CLEANUP_FILES_MAX objects of the log. Returns how many
    went.

    configuration, features: of the newest version. A second call on the same day finds nothing new.
    Raises LakeUnavailable, LakeRefused, DeltaUnsupported (a property that isn't a duration).
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
        # In steps from checkpoint to checkpoint, if these lie close enough.
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
    """Whole checkpoints at or before the newest commit that is old enough; the newest checkpoint
    first.
    """
    commits = {version: entry for entry in entries if (version := commit_version(entry.name)) is not None}
    if hint is None or not commits:
        return []
    newest = oldest = max(commits)
    while oldest - 1 in commits:
        oldest -= 1
    old, last_ms = -1, -1
    for version in range(oldest, newest + 1):
        # A commit counts as later than the one before it, whatever its file's time says: Delta adjusts times like this.
        last_ms = max(commits[version].modified_ms, last_ms + 1)
        if last_ms > cutoff_ms:
            break
        old = version
    return [checkpoint for checkpoint in checkpoints(entries) if oldest <= checkpoint.version <= min(old, hint)]


def _check_readable(store: LogStore, cut: LogCheckpoint) -> None:
    """Read the whole checkpoint with its sidecars, since the commits with the same content are
    about to go.
    """
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
    """Remove sidecars no checkpoint names, and that are too old for an unfinished one."""
    from tidegate.delta.checkpoints.contents import CheckpointGoneError, load

    folder = store.folder(SIDECARS)
    old = [entry.name for entry in folder.names() if entry.modified_ms < before_ms]
    if not old:
        return 0
    try:
        named = {sidecar for checkpoint in checkpoints(store.names()) for sidecar in load(store, checkpoint).sidecars}
    except CheckpointGoneError:
        return 0  # another process is cleaning up
    unnamed = [name for name in old if name not in named][:LOG_CLEANUP_FILES_MAX]
    folder.delete(unnamed)
    return len(unnamed)
