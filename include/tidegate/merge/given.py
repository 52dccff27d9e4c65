"""The version of a giver's silver that a rename's taker reads. Pure.

In:  the giver's Delta log: the commit_ts that each version records for our application, or None for
     somebody else's commit.
Out: the last version before our first commit at or above the rename.

Commits of other writers change no rows of ours (OPTIMIZE, a touched property), or change them on
purpose. Those after our last commit below the rename count as part of it.
"""

from __future__ import annotations

from collections.abc import Callable


def given_version_at(newest: int, recorded: Callable[[int], int | None], commit_ts: int) -> int:
    """A version; -1: no table. recorded: of versions up to the newest, which has a commit at or above
    commit_ts somewhere. Its errors pass.
    """
    before = version = newest
    while version >= 0:
        at = recorded(version)
        if at is not None and at < commit_ts:
            break
        version -= 1
        if at is not None:
            before = version
    return before
