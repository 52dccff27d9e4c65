"""TiDB's tables as they were at a timestamp of PD's.

In:  a timestamp (64 bits, laid out as commit_ts).
Out: the setting of a session whose SELECTs see only what was committed at or below it: rows, and
     tables' definitions, too. Whether an error says that TiDB no longer has that moment.

It needs no grant. A SELECT sees rows older than tidb_gc_life_time only until the next garbage
collection.
"""

from __future__ import annotations

from tidegate.mysql.connecting.server_errors import ErrorMeaning, meaning_of


def seen_at(ts: int) -> str:
    """An assignment for SET SESSION. ts: 0 for now, whenever that is."""
    return f"tidb_snapshot = '{ts:d}'" if ts else "tidb_snapshot = ''"


def is_collected(error: BaseException) -> bool:
    """Whether a statement failed because garbage collection has passed its timestamp. error: PyMySQL's, or one that it
    caused.
    """
    cause = error.__cause__ or error
    code = cause.args[0] if cause.args else 0
    return isinstance(code, int) and meaning_of(code) is ErrorMeaning.COLLECTED
