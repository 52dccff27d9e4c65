"""Reads commits of a Delta log.

In:  a log's folder, a version.
Out: the actions of one commit, None without its file; or of all commits from there on.

Several commits are requested at a time, since waiting for the store's answer to each would take
long.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from typing import Any, Final

from tidegate.delta.object_names import commit_name, commit_version
from tidegate.delta.stores.store import LocalStore, LogStore
from tidegate.delta.table.actions import parsed
from tidegate.errors import LakeRefused
from tidegate.limits import LOG_READ_THREADS_MAX

_BEFORE_LISTING: Final = 2  # most tables have so few new commits that a listing isn't worth it


def read_commit(store: LogStore, version: int) -> list[dict[str, Any]] | None:
    """A commit's actions; None if its file doesn't exist (any more). Raises LakeUnavailable,
    LakeRefused.
    """
    data = store.get(commit_name(version))
    if data is None:
        return None
    try:
        return parsed(data)
    except ValueError as error:
        raise LakeRefused(
            f"version {version} of its log isn't readable: {error}", where=store.where, remedy="restore that file"
        ) from error


def read_commits(store: LogStore, first: int, upto: int | None = None) -> Iterator[list[dict[str, Any]]]:
    """The actions of each commit from `first` on, in order, up to the first missing one. Raises as
    read_commit.

    upto: the last wanted version; None: all.
    """
    version = first
    while (upto is None or version <= upto) and (actions := read_commit(store, version)) is not None:
        yield actions
        version += 1
        if version - first == _BEFORE_LISTING and not isinstance(store, LocalStore):
            for actions in _listed(store, version, upto):
                yield actions
                version += 1


def _listed(store: LogStore, first: int, upto: int | None) -> Iterator[list[dict[str, Any]]]:
    versions = {commit_version(entry.name) for entry in store.names(commit_name(first))}
    end = first + len(versions) if upto is None else upto + 1
    unbroken = list(takewhile(versions.__contains__, range(first, end)))
    if len(unbroken) < _BEFORE_LISTING:
        return
    with ThreadPoolExecutor(LOG_READ_THREADS_MAX, thread_name_prefix="log") as pool:
        for start in range(0, len(unbroken), LOG_READ_THREADS_MAX):  # so many in memory, whatever the log has
            for actions in pool.map(
                lambda version: read_commit(store, version), unbroken[start : start + LOG_READ_THREADS_MAX]
            ):
                if actions is None:  # removed since it was listed
                    return
                yield actions
