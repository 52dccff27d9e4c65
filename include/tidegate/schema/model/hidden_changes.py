"""The changes of a table that its server writes to no log, in words.

In:  a table version.
Out: one phrase, or "".
"""

from __future__ import annotations

from typing import Final

from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.unlogged import MERGES

_ELSEWHERE: Final = {
    **dict.fromkeys(MERGES, "its rows lie in other tables, and change with theirs"),
    "blackhole": "it keeps none of the rows that the binlog shows",
    **dict.fromkeys(
        ("federated", "federatedx", "spider", "connect", "sphinx", "oqgraph", "s3", "columnstore"),
        "its rows lie outside of the server, and change there too",
    ),
}


def kept_elsewhere(version: TableVersion) -> str:
    """Why the binlog doesn't show what rows a table has: its engine, or a MERGE table over it; "" else."""
    why = _ELSEWHERE.get(version.engine)
    if why is not None:
        return f"its engine is {version.engine.upper()}: {why}"
    return f"rows come to it through the MERGE table {'.'.join(version.merged_by)}" if version.merged_by else ""


def unlogged_cascade(version: TableVersion) -> str:
    """The foreign keys of a table that change its rows without row events, in words; "" when none does."""
    for key in version.foreign_keys:
        rules = [f"ON {what} {rule}" for what, rule in (("DELETE", key.on_delete), ("UPDATE", key.on_update)) if rule]
        if rules and not key.logged:
            return (
                f"foreign key {key.name} to {'.'.join(key.parent)} ({', '.join(rules)}) changes its rows when the"
                " parent's change, and this server logs the parent's alone"
            )
    return ""
