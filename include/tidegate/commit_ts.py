"""commit_ts: 64 bits, TiDB's TSO layout, strictly increasing per source in binlog order.

In:  a commit_ts, a physical time, or a time as people write it.
Out: the same in another form.

The rule of the next one is compiled, for capture and decode (binlog/transaction_scan.py). No compiler is imported here:
every command reads this page.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from tidegate.limits.formats import LOGICAL_BITS

FOREVER: Final = (1 << 63) - 1  # above every commit_ts

_BITS = LOGICAL_BITS
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def compose(physical_ms: int, logical: int = 0) -> int:
    """The commit_ts of a physical time in milliseconds since the Unix epoch."""
    return (physical_ms << _BITS) + logical


def physical_ms(commit_ts: int) -> int:
    """Milliseconds since the Unix epoch of a commit_ts."""
    return commit_ts >> _BITS


def last_at(text: str) -> int:
    """The last commit_ts in the millisecond of a time in ISO form, UTC unless it says. Raises ValueError."""
    at = datetime.fromisoformat(text)
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return compose((at - _EPOCH) // timedelta(milliseconds=1) + 1) - 1


def time_text(commit_ts: int) -> str:
    """Its time for people, to the second; "-" for 0, before the first."""
    if not commit_ts:
        return "-"
    return datetime.fromtimestamp(physical_ms(commit_ts) / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
