"""A commit that replaces live files while others may change rows elsewhere in the table.

In:  a table's log, the live files to replace, `add` bodies of the new ones.
Out: one commit; or CommitConflict if one of the replaced files is no longer live as it was.

It may come after any other commits: while the replaced files are live, with the same deletion
vectors, the new files have the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.table.actions import moved
from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import TableState, file_key
from tidegate.errors import CommitConflict
from tidegate.limits import EXCHANGE_ATTEMPTS_MAX


def exchange(
    log: DeltaLog,
    removes: Sequence[LiveFile],
    adds: Sequence[Mapping[str, Any]],
    *,
    operation: str,
    data_change: bool = False,
) -> TableState:
    """The state after the commit. data_change: the new files lack some rows of the replaced ones.

    Raises CommitConflict (nothing was written), LakeUnavailable, DeltaUnsupported.
    """

    def decide(read: TableState) -> Change:
        if not read.created:
            raise CommitConflict("there is no table any more", where=log.place, remedy="look at it again")
        for file in removes:
            if file_key(file.action) not in read.live:
                raise CommitConflict(f"{file.path} isn't live any more", where=log.place, remedy="look at it again")
        return Change(moved(removes, adds, data_change=data_change), operation)

    return log.update(decide, attempts=EXCHANGE_ATTEMPTS_MAX)
