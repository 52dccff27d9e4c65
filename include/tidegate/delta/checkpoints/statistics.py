"""Statistics a checkpoint has only as columns, as the log's JSON text.

In:  a checkpoint's `add.stats_parsed` (PROTOCOL.md, "Checkpoints":
     delta.checkpoint.writeStatsAsStruct).
Out: the text of `stats` ("Per-file Statistics"), made column by column.

Bounds are only left out, never widened or guessed: a missing bound says nothing. NaN and infinities
are left out, since JSON has no number for them, and so are years with more than four digits, which ISO
8601 lacks. Timestamps are cut to milliseconds, downwards, as the protocol has them in statistics:
readers know this.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.errors import DeltaUnsupported

_ESCAPED: Final = r'["\\\x00-\x1f]'
# 0001-01-01 and 9999-12-31, in days since 1970-01-01.
_DAYS: Final = (-719_162, 2_932_896)
_DAY_MS: Final = 86_400_000


def statistics_text(parsed: Any, physical_types: Sequence[str] = ()) -> Any:
    """JSON objects, or null where `parsed` is null. Raises DeltaUnsupported for columns of types
    without bounds.

    physical_types: Parquet's types of the leaves of `parsed`, in order. INT96 is a moment ("Delta
    Data Type to Parquet Type Mappings"), but Arrow takes it for a timestamp without time zone.
    """
    return _text(parsed, iter(physical_types))


def _text(values: Any, leaves: Iterator[str]) -> Any:
    kind = values.type
    if pa.types.is_struct(kind):
        return _object(values, leaves)
    physical = next(leaves, "")
    if pa.types.is_boolean(kind):
        return pc.if_else(values, "true", "false")
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return values.cast(pa.string())
    if pa.types.is_floating(kind):
        return _only(pc.is_finite(values), values).cast(pa.string())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _quoted(values.cast(pa.string()))
    if pa.types.is_date(kind):
        days = values.cast(pa.date32()).cast(pa.int32())
        return _quoted(_only(_between(days, *_DAYS), days).cast(pa.date32()).cast(pa.string()))
    if pa.types.is_timestamp(kind):
        return _moment(values, in_utc=bool(kind.tz) or physical == "INT96")
    raise DeltaUnsupported(
        f"a checkpoint holds statistics of type {kind} as columns only",
        remedy="set delta.checkpoint.writeStatsAsJson on the table, and write a checkpoint by Spark",
    )


def _object(values: Any, leaves: Iterator[str]) -> Any:
    members = [
        # Each has its comma in front, and the first comma is cut off later: any of them may be null.
        pc.fill_null(pc.binary_join_element_wise(f",{json.dumps(field.name)}:", _text(child, leaves), ""), "")
        for field, child in zip(values.type, values.flatten(), strict=True)
    ]
    empty = pa.repeat(pa.scalar(""), len(values))
    inside = pc.utf8_slice_codeunits(pc.binary_join_element_wise(empty, *members, ""), 1)
    return _only(values.is_valid(), pc.binary_join_element_wise("{", inside, "}", ""))


def _moment(values: Any, *, in_utc: bool) -> Any:
    """As Delta prints them: 2024-01-31T10:00:00.123Z; without Z for a timestamp without time zone."""
    zone = "Z" if in_utc else ""
    local = values.cast(pa.timestamp(values.type.unit)) if values.type.tz else values
    floored = pc.floor_temporal(local, unit="millisecond").cast(pa.timestamp("ms"), safe=False)
    known = _between(floored.cast(pa.int64()), _DAYS[0] * _DAY_MS, (_DAYS[1] + 1) * _DAY_MS - 1)
    text = pc.strftime(_only(known, floored), "%Y-%m-%dT%H:%M:%S")
    return pc.binary_join_element_wise('"', text, f'{zone}"', "")


def _quoted(texts: Any) -> Any:
    if pc.any(pc.match_substring_regex(texts, _ESCAPED)).as_py():
        return pa.array([None if text is None else json.dumps(text) for text in texts.to_pylist()], pa.string())
    return pc.binary_join_element_wise('"', texts, '"', "")


def _between(numbers: Any, low: int, high: int) -> Any:
    return pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high))


def _only(condition: Any, values: Any) -> Any:
    """Values where the condition is true, null elsewhere."""
    return pc.if_else(condition, values, pa.scalar(None, values.type))
