"""The column that took a column's place when its type changed.

In:  a table before and after a job.
Out: the pairs of columns. StreamCorrupt where the job doesn't say.

TiDB gives the column another id, and copies all rows without logging that.
"""

from __future__ import annotations

import re
from typing import Final

from tidegate.errors import StreamCorrupt
from tidegate.remedy import REPORT
from tidegate.tidb.jobs import Action, ColumnInfo, Job, TableInfo

_NAME: Final = r"(`(?:[^`]|``)*`|[\w$\x80-\U0010ffff]+)"
_CHANGE: Final = re.compile(rf"\bCHANGE\s+(?:COLUMN\s+)?(?:IF\s+EXISTS\s+)?{_NAME}\s+{_NAME}", re.IGNORECASE)


def successors(was: TableInfo, info: TableInfo, job: Job) -> dict[int, ColumnInfo]:
    """An old column's id -> the column that took its place."""
    if job.type not in (Action.MODIFY_COLUMN, Action.MULTI_SCHEMA_CHANGE):
        return {}
    old = {column.id: column for column in was.columns if column.id not in info.by_id() and not column.hidden}
    new = [column for column in info.columns if column.id not in was.by_id() and not column.hidden]
    if job.type == Action.MODIFY_COLUMN:
        if len(old) != len(new) or len(old) > 1:
            raise StreamCorrupt(f"{len(old)} columns became {len(new)} in one step", remedy=REPORT)
        return dict(zip(old, new, strict=True))
    before = {_bare(to): _bare(name) for name, to in _CHANGE.findall(job.query)}
    by_name = {column.name.lower(): id_ for id_, column in old.items()}
    taken_over = {}
    for column in new:
        name = column.name.lower()
        old_id = by_name.get(before.get(name, name))
        if old_id is not None:
            taken_over[old_id] = column
    return taken_over


def _bare(name: str) -> str:
    return (name[1:-1].replace("``", "`") if name.startswith("`") else name).lower()
