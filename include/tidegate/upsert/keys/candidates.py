"""Which live files may hold a key of the phase, as far as their statistics say.

In:  live files, the table of keys.
Out: the files that must be read. A file is ruled out only by bounds that are certainly wide enough.

A key is compared by the 64-bit leads of its leading columns (keys.hash.leads): a file whose box of
bounds holds no lead of a changed key can't hold the key. Cut texts and rounded timestamps are
widened first; what isn't understood, or missing, rules nothing out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tidegate.delta.table.live_file import LiveFile
from tidegate.errors import UnsupportedValue
from tidegate.upsert.files.partition_values import partition_value
from tidegate.upsert.keys.file import Int64s
from tidegate.upsert.keys.hash import leads
from tidegate.upsert.keys.probe_table import WHOLE, KeyTable

# Statistics hold milliseconds; writers round their maximum either way (PROTOCOL.md asks readers to add one).
_ROUNDED: Final = timedelta(milliseconds=1)
_FLOAT_STEP: Final = 1 << 29  # two neighbours of 32 bits, in leads of doubles


def candidates(files: Iterable[LiveFile], table: KeyTable) -> list[LiveFile]:
    """Files that the bounds of their leading key columns can't rule out."""
    fields = [table.key_schema.field(name) for name in table.lead_names]
    question = ("box", *((field.name, str(field.type)) for field in fields))
    return [file for file in files if table.may_lie_in(file.kept(question, partial(box_of, file, fields)))]


def box_of(file: LiveFile, fields: Sequence[pa.Field]) -> Int64s:
    """int64[columns, 2]: inclusive bounds of the leads of a file's rows."""
    return np.array([_lead_bounds(file, field) for field in fields], np.int64).reshape(len(fields), 2)


def _lead_bounds(file: LiveFile, field: pa.Field) -> tuple[int, int]:
    if field.name in file.partition_values:
        try:
            value = partition_value(file.partition_values[field.name], field.type)
        except UnsupportedValue:
            return WHOLE
        return lead_bounds(value.as_py(), value.as_py(), field.type)
    bounds = file.bounds(field.name)
    if bounds is None:
        return WHOLE
    low, high = (_value(bound, field.type) for bound in bounds)
    if low is None or high is None:
        return WHOLE
    return lead_bounds(low, _rounded(high) if isinstance(high, datetime) else high, field.type)


def _rounded(high: datetime) -> datetime:
    """A maximum beyond its cut-off part; after 9999-12-31 23:59:59.999 come its last microseconds and no more."""
    last = datetime.max.replace(tzinfo=high.tzinfo)
    return last if high > last - _ROUNDED else high + _ROUNDED


def lead_bounds(low: Any, high: Any, kind: pa.DataType) -> tuple[int, int]:
    """Leads of two values of a column; WHOLE when they can't be had."""
    if low is None or high is None:
        return WHOLE
    try:
        ends = leads(pa.array([low, high], kind))
    except (pa.ArrowException, ValueError, TypeError, OverflowError, UnsupportedValue):
        return WHOLE
    if ends[0] > ends[1]:
        return WHOLE
    # A float's text may stand for its neighbour once it went through a double.
    slack = _FLOAT_STEP if pa.types.is_float32(kind) else 0
    return int(ends[0]) - slack, int(ends[1]) + slack


def _value(bound: Any, kind: pa.DataType) -> Any:
    """A bound of the statistics' JSON as a Python value of the column's type; None when it isn't understood."""
    types = pa.types
    try:
        if types.is_integer(kind):
            return bound if type(bound) is int else None
        if types.is_string(kind):
            return bound if isinstance(bound, str) else None
        if types.is_floating(kind):
            return float(bound) if isinstance(bound, int | Decimal) else None
        if types.is_decimal(kind):
            return Decimal(bound) if isinstance(bound, int | Decimal) else None
        if types.is_timestamp(kind):
            return _instant(bound, aware=kind.tz is not None)
        if types.is_date(kind):
            return date.fromisoformat(bound)
    except (ValueError, TypeError, ArithmeticError):
        return None
    return None


def _instant(text: str, *, aware: bool) -> datetime | None:
    moment = datetime.fromisoformat(text)
    return moment if (moment.tzinfo is not None) == aware else None
