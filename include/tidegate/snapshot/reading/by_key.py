"""Rows of one table by their keys, as the server has them now.

In:  a connection to the source, keys as decode gives their columns.
Out: ReadByKey: the table as the server shows it, its rows with these keys.

The server compares a key's literals by the column's collation, so rows with other keys may come as
well.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidegate.compiled import load_all
from tidegate.errors import UnsupportedValue
from tidegate.limits import (
    ASKED_STATEMENT_ROWS_MAX,
    SNAPSHOT_CHUNK_BYTES_DEFAULT,
    SNAPSHOT_CHUNK_ROWS_DEFAULT,
    SNAPSHOT_STATEMENT_SECONDS,
)
from tidegate.mysql.sql_text.sql import double_literal, quote_name, text_literal
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import ZeroDates, canonical
from tidegate.snapshot.chunks.chunk import Chunk, rows_of, schema_of
from tidegate.snapshot.chunks.spans import WHOLE, Span
from tidegate.snapshot.reading.connection import WorkerConnection
from tidegate.snapshot.reading.result import kernel as result_kernel
from tidegate.snapshot.reading.table_reader import ChunkBounds, ChunkReader, Pace, WaveOf


@dataclass(frozen=True, slots=True)
class ReadByKey:
    """version: the table before and after the read; None where it isn't there, or changed
    meanwhile. rows: of schema_of(version). null_dates: how many impossible dates became NULL in
    them.
    """

    version: TableVersion | None
    rows: pa.Table
    null_dates: int = 0


def read_by_key(
    asked: WorkerConnection,
    source: str,
    of: TableVersion,
    keys: Sequence[tuple[Any, ...]],
    zero_dates: ZeroDates,
) -> ReadByKey:
    """keys: values of of.key's columns, in its order, none NULL. Raises SourceRefused,
    SourceUnavailable, UnsupportedValue.
    """
    load_all(result_kernel.__name__)
    name = (of.database, of.table)
    version = asked.versions(source, [name]).get(name)
    if version is None or version.key_names != of.key_names:
        return ReadByKey(None, pa.table({}))
    starts = range(0, len(keys), ASKED_STATEMENT_ROWS_MAX)
    conditions = (_condition(of, keys[at : at + ASKED_STATEMENT_ROWS_MAX]) for at in starts)
    read = read_where(asked, version, conditions, zero_dates)
    after = asked.versions(source, [name]).get(name)
    if after is None or (after.columns, after.key) != (version.columns, version.key):
        return ReadByKey(None, pa.table({}))
    return read


def read_where(
    asked: WorkerConnection, version: TableVersion, conditions: Iterable[str], zero_dates: ZeroDates
) -> ReadByKey:
    """The rows of each condition in SQL; "" for all. Raises as ResultStream."""
    wave = WaveOf(version.source, "", 0, uuid.uuid4().hex, asked.server_id, asked.server_uuid, is_local=True)
    chunks = list[Chunk]()
    for condition in conditions:
        chunks += chunks_where(asked, version, condition, zero_dates, wave)
    tables = [schema_of(version).empty_table(), *map(rows_of, chunks)]
    return ReadByKey(version, pa.concat_tables(tables), sum(chunk.null_dates for chunk in chunks))


def chunks_where(
    asked: WorkerConnection,
    version: TableVersion,
    condition: str,
    zero_dates: ZeroDates,
    wave: WaveOf,
    left_out: frozenset[str] = frozenset(),
) -> Iterator[Chunk]:
    bounds = ChunkBounds(SNAPSHOT_CHUNK_ROWS_DEFAULT, SNAPSHOT_CHUNK_BYTES_DEFAULT, SNAPSHOT_STATEMENT_SECONDS)
    reader, pace = ChunkReader(asked.raw, asked.info, version, condition, zero_dates, left_out), Pace()
    left: Span | None = WHOLE
    while left is not None:
        pieces = list(reader.read(left, pace, bounds, wave))
        yield from (chunk for chunk, _ in pieces)
        left = pieces[-1][1]


def _condition(version: TableVersion, keys: Sequence[tuple[Any, ...]]) -> str:
    """SQL for the rows with these keys."""
    by_id = {column.id: column for column in version.columns}
    columns = [by_id[column_id] for column_id in version.key]
    names = [*map(quote_name, version.key_names)]
    if len(columns) == 1:
        return f"{names[0]} IN ({', '.join(key_literal(columns[0], key[0]) for key in keys)})"
    each = (
        " AND ".join(
            f"{name} = {key_literal(column, cell)}" for name, column, cell in zip(names, columns, key, strict=True)
        )
        for key in keys
    )
    return f"({') OR ('.join(each)})"


def key_literal(column: Column, value: Any) -> str:
    """A canonical value as a literal, equal to the column's value at the server. Raises
    UnsupportedValue.
    """
    match canonical(column).kind:
        case Kind.INT | Kind.UNSIGNED_BIGINT | Kind.YEAR | Kind.BOOLEAN:
            return str(int(value))
        case Kind.BIT:
            return str(int.from_bytes(value, "big"))
        case Kind.DECIMAL:
            return f"{value:f}"
        case Kind.DECIMAL_TEXT:
            return str(value)
        case Kind.FLOAT | Kind.DOUBLE:
            return double_literal(value)
        case Kind.DATE:
            return f"'{value.isoformat()}'"
        case Kind.DATETIME | Kind.TIMESTAMP:
            return f"'{value.replace(tzinfo=None).isoformat(' ', 'microseconds')}'"
        case Kind.BINARY:
            return f"x'{value.hex()}'"
        case Kind.TIME | Kind.UUID | Kind.INET if value.isascii() and "'" not in value and "\\" not in value:
            return f"'{value}'"
        case Kind.TEXT | Kind.ENUM | Kind.SET:
            return text_literal(value.encode(), column.charset or "utf8mb4")
    raise UnsupportedValue(
        f"column {column.name} is {column.type}, which can't be asked for as a key",
        remedy="set ddl.unlogged_generated: hold",
    )
