"""The values of existing rows after the type of a column changed.

In:  a column before and after, and the job that changed it.
Out: the new value of a cell. UnsupportedValue where that isn't certain.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from tidegate.tidb.codec.datum import Cells, Value
from tidegate.tidb.jobs import INTEGERS, STRINGS, ColumnInfo, Job, Tp
from tidegate.tidb.values.sql_value import Dated, Sql, cell_value, moment_of, refuse, sql_value
from tidegate.tidb.values.stored import cell

_NUMBERS: Final = frozenset({*INTEGERS, Tp.DECIMAL, Tp.FLOAT, Tp.DOUBLE})


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
