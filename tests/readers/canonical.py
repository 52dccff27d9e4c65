"""A table's rows as one number that is the same for all readers, whatever their order, batches and Arrow types.

In:  an Arrow table.
Out: Digest: its columns, how many rows, and sums of hashes of each. Of two multisets of rows with equal digests it is
     believed that they are equal; difference() says of others, row by row, what differs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

_SEEDS: Final = (20261122, 4107)  # 64 bits each
_BATCH_ROWS: Final = 4096


class Digest(NamedTuple):
    """columns: names and kinds of value, sorted. sums: of 64-bit hashes of the rows, one for each seed."""

    columns: tuple[str, ...]
    rows: int
    sums: tuple[int, ...]


def digest(table: pa.Table) -> Digest:
    """The table's digest."""
    found = {name: _hashable(table[name]) for name in sorted(table.column_names)}
    columns = tuple(f"{name} {kind}" for name, (kind, _) in found.items())
    if table.num_rows == 0 or not found:
        return Digest(columns, table.num_rows, ())
    values = pl.DataFrame([pl.Series(str(at), values) for at, (_, values) in enumerate(found.values())])
    return Digest(columns, table.num_rows, tuple(int(values.hash_rows(seed).sum()) for seed in _SEEDS))


def _hashable(column: pa.ChunkedArray) -> tuple[str, pa.ChunkedArray]:
    """What kind of value it is, and the values in the one Arrow type of this kind: equal values have equal bytes."""
    column = _plain(column)
    kind = column.type
    if pa.types.is_boolean(kind):
        return "boolean", column
    if pa.types.is_integer(kind):
        return "integer", column.cast(pa.int64())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text", column.cast(pa.large_string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return "bytes", column.cast(pa.large_binary())
    if pa.types.is_date32(kind):
        return "date", column.cast(pa.int32())
    if pa.types.is_floating(kind):
        return "float", _bits(column.cast(pa.float64()))
    if pa.types.is_decimal(kind):
        return f"decimal of {kind.scale}", column.cast(pa.large_string())
    words = [None if value is None else json.dumps(_word(value), ensure_ascii=False) for value in column.to_pylist()]
    return "nested", pa.chunked_array([pa.array(words, pa.large_string())])


def _bits(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """-0.0 is another value than 0.0; NaN is one."""
    one_nan = pc.if_else(pc.is_nan(column), float("nan"), column)
    chunks = one_nan.chunks if isinstance(one_nan, pa.ChunkedArray) else [one_nan]
    return pa.chunked_array([chunk.view(pa.int64()) for chunk in chunks], pa.int64())


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
