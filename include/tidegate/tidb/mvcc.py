"""What TiDB's MVCC says of a prewrite's key.

In:  the answer of GET :10080/mvcc/hex/KEY as JSON, and a start_ts.
Out: the commit_ts; ROLLED_BACK for a transaction that ended without one; None while it may still be under way.

A rolled back transaction may have an entry of type 3 whose commit_ts is its start_ts: that is no commit. Without an
entry it was rolled back, unless a lock of it is still there. Source: tidb-binlog's pump/storage/storage.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tidegate.tidb.pairing import ROLLED_BACK

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
    return ROLLED_BACK
