"""A table's rows as one number that is the same for all readers, whatever their order, batches and Arrow types.

In:  an Arrow table.
Out: Digest: how many rows, and the sum of a hash of each. Two multisets of rows with equal digests are equal.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

import pyarrow as pa

_HASH_BYTES: Final = 16
_BATCH_ROWS: Final = 4096


class Digest(NamedTuple):
    """columns: their names, sorted. sum: of 128-bit hashes, without a bound."""

    columns: tuple[str, ...]
    rows: int
    sum: int


def digest(table: pa.Table) -> Digest:
    """The table's digest."""
    total = sum(int.from_bytes(hashlib.blake2b(row.encode(), digest_size=_HASH_BYTES).digest()) for row in rows(table))
    return Digest(tuple(sorted(table.column_names)), table.num_rows, total)


def difference(one: pa.Table, other: pa.Table) -> str:
    """A row that one of them has more often, for a person."""
    first, second = Counter(rows(one)), Counter(rows(other))
    only_first, only_second = first - second, second - first
    example = [f"{name} {min(found)[:300]}" for name, found in (("-", only_first), ("+", only_second)) if found]
    return f"{only_first.total()} rows only here, {only_second.total()} only there: {' '.join(example)}"


def rows(table: pa.Table) -> Iterator[str]:
    """Each row as JSON with its columns in order of their names."""
    names = sorted(table.column_names)
    plain = pa.table({name: _plain(table[name]) for name in names})
    for batch in plain.to_batches(_BATCH_ROWS):
        for row in batch.to_pylist():
            yield json.dumps([_word(row[name]) for name in names], ensure_ascii=False)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Moments as microseconds: Python has no more years than 9999, and readers differ in units."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    return column


def _word(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return f"float {value!r}"
        case bytes():
            return f"0x{value.hex()}"
        case Decimal():
            return f"decimal {value:f}"
        case datetime():
            return value.astimezone(UTC).isoformat() if value.tzinfo else value.isoformat()
        case date() | time():
            return value.isoformat()
        case timedelta():
            return f"{value.days} {value.seconds} {value.microseconds}"
        case dict():
            return {name: _word(value[name]) for name in sorted(value)}
        case list() | tuple():
            return [_word(one) for one in value]
    raise AssertionError(f"no reader gave {type(value)} before")
