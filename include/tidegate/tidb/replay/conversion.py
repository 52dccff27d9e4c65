"""The values of existing rows after the type of a column changed.

In:  a column before and after, and the job that changed it.
Out: the pairs of columns; the new value of a cell. UnsupportedValue where that isn't certain.

TiDB gives the column another id, copies all rows, and tells nobody of the copies.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from tidegate.errors import StreamCorrupt
from tidegate.remedy import REPORT
from tidegate.tidb.datum import Value
from tidegate.tidb.jobs import INTEGERS, STRINGS, Action, ColumnInfo, Job, TableInfo, Tp
from tidegate.tidb.replay.sql_value import Dated, Sql, cell_value, moment_of, refuse, sql_value
from tidegate.tidb.replay.stored import cell
from tidegate.tidb.rows import Cells

_NUMBERS: Final = frozenset({*INTEGERS, Tp.DECIMAL, Tp.FLOAT, Tp.DOUBLE})
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


def converted(was: ColumnInfo, column: ColumnInfo, cells: Cells, job: Job) -> Value | str:
    value = sql_value(was, cell(was, cells))
    if (was.tp is Tp.TIMESTAMP) != (column.tp is Tp.TIMESTAMP) and value is not None:
        value = _in_zone(was, column, value, job.time_zone)
    if was.tp is Tp.FLOAT and column.tp in STRINGS and isinstance(value, float):
        value = str(np.format_float_positional(np.float32(value), unique=True, trim="-"))
    if was.tp in (Tp.ENUM, Tp.SET) and column.tp in _NUMBERS:
        number = cell(was, cells)
        value = number if isinstance(number, int) else None
    if isinstance(value, int) and column.tp is Tp.TIME:
        refuse(column, value)
    return cell_value(column, value)


def _in_zone(was: ColumnInfo, column: ColumnInfo, value: Sql, name: str) -> Sql:
    """A TIMESTAMP is kept in UTC and converted as the session of the statement showed it."""
    if name.upper() in ("UTC", "ETC/UTC"):
        return value
    try:
        zone = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        refuse(column, value)
    if was.tp is Tp.TIMESTAMP and isinstance(value, Dated):
        local = datetime(*value.at, tzinfo=UTC).astimezone(zone)
    elif column.tp is Tp.TIMESTAMP and isinstance(value, Dated) and not value.is_date:
        local = datetime(*value.at, tzinfo=zone).astimezone(UTC)
    else:
        refuse(column, value)
    return Dated(moment_of(local), digits=value.digits)
