"""TiDB's tables as they were at a timestamp of PD's.

In:  a timestamp (64 bits, commit_ts layout).
Out: the setting of a session whose SELECTs see what was committed at or below it, and nothing else: rows, and the
     definitions of tables, too. Whether an error says that TiDB has forgotten that moment.

It needs no grant. What a SELECT may see is older than tidb_gc_life_time ago only until garbage collection comes by.
"""

from __future__ import annotations

from typing import Final

# tidb/pkg/errno: ErrSnapshotTooOld, as the setting is made, and ErrGCTooEarly, as a statement reads.
_COLLECTED: Final = frozenset({8055, 9006})


def seen_at(ts: int) -> str:
    """An assignment for SET SESSION."""
    return f"tidb_snapshot = '{ts:d}'"


def is_collected(error: BaseException) -> bool:
    """Whether a statement failed since garbage collection has passed its timestamp: of PyMySQL's, or what it caused."""
    cause = error.__cause__ or error
    return bool(cause.args) and cause.args[0] in _COLLECTED
