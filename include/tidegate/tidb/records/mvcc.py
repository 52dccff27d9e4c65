"""The word of TiDB's MVCC on a prewrite's key.

In:  the answer of GET :10080/mvcc/hex/KEY as JSON, and a start_ts.
Out: the commit_ts; ROLLED_BACK for a transaction with a record of that; None while it has a lock; NOTHING.

A rolled back transaction may have an entry of type 3 whose commit_ts is its start_ts: that is no
commit. NOTHING is no answer by itself (pump/orphans.py): a slow transaction writes its lock later,
garbage collection removes records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tidegate.tidb.records.pairing import ROLLED_BACK

NOTHING: Final = -1
_ROLLBACK: Final = 3  # kvrpcpb.Op


def fate(answer: Mapping[str, Any], start_ts: int) -> int | None:
    """Raises KeyError or TypeError for an answer of another shape: then nothing is known."""
    info = answer["value"].get("info") or {}
    for write in info.get("writes") or ():
        if write["start_ts"] == start_ts:
            is_rollback = write.get("type", 0) == _ROLLBACK or write["commit_ts"] == start_ts
            return ROLLED_BACK if is_rollback else int(write["commit_ts"])
    lock = info.get("lock")
    if lock and lock.get("start_ts") == start_ts:
        return None
    return NOTHING
