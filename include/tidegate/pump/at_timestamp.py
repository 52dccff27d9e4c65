"""TiDB's tables as they were at a timestamp of PD's.

In:  a timestamp (64 bits, commit_ts layout).
Out: the setting of a session whose SELECTs see what was committed at or below it, and nothing else:
     rows, and the definitions of tables, too. Whether an error says that TiDB has forgotten the
     moment.

It needs no grant. Rows older than tidb_gc_life_time are visible to a SELECT only until garbage
collection comes by.
"""

from __future__ import annotations

from tidegate.mysql.connecting.server_errors import ErrorMeaning, meaning_of


def seen_at(ts: int) -> str:
    """An assignment for SET SESSION. ts: 0 for now, whenever that is."""
    return f"tidb_snapshot = '{ts:d}'" if ts else "tidb_snapshot = ''"


def is_collected(error: BaseException) -> bool:
    """Whether a statement failed since garbage collection has passed its timestamp: of PyMySQL's, or what it caused."""
    cause = error.__cause__ or error
    code = cause.args[0] if cause.args else 0
    return isinstance(code, int) and meaning_of(code) is ErrorMeaning.COLLECTED
