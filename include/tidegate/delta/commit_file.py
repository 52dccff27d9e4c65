"""One commit of a Delta log, read.

In:  a log's folder, a version.
Out: its actions; nothing when the log has no such file.
"""

from __future__ import annotations

from typing import Any

from tidegate.delta.actions import parsed
from tidegate.delta.names import commit_name
from tidegate.delta.store import LogStore
from tidegate.errors import LakeRefused


def read_commit(store: LogStore, version: int) -> list[dict[str, Any]] | None:
    """A commit's actions; None when there is no such file (any more). Raises LakeUnavailable, LakeRefused."""
    data = store.get(commit_name(version))
    if data is None:
        return None
    try:
        return parsed(data)
    except ValueError as error:
        raise LakeRefused(
            f"version {version} of its log isn't readable: {error}", where=store.where, remedy="restore that file"
        ) from error
