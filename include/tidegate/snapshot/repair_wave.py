"""Keys of a table copied again: a wave of just these rows; apply takes it like any other.

In:  a table at the source, conditions on keys, silver's rows with them.
Out: a wave: chunks of the source's rows, a chunk of deletes for silver's rows unknown to the
     source; its token.

A delete at the low watermark L is as exact as a row there (snapshot/__init__.py). The source didn't
have the key at some moment between both marks. Either the log changes the key above L, and wins,
or the source doesn't have it at the end, either.

Nothing is asked for in control/snapshots, and no end mark is written: nothing is swept, and when
this process dies the wave has no high mark and counts for nothing. A rebuild finds marks and chunks
in bronze.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tidegate.compiled import load_all
from tidegate.config import Pipeline, SnapshotMarks
from tidegate.errors import VerifyError
from tidegate.lake.control import ControlTables
from tidegate.lake.files import LakeFiles
from tidegate.mysql.connecting.connection import ConnectionInfo, connect
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.renamed import under_names
from tidegate.schema.model.types import ZeroDates, canonical
from tidegate.snapshot.chunks.chunk import Chunk, rows_of, schema_of, shape_of, to_payload
from tidegate.snapshot.chunks.chunk_table import ChunkWriter, claim_reader
from tidegate.snapshot.chunks.spans import WHOLE
from tidegate.snapshot.marks.unlogged_marks import marks_for
from tidegate.snapshot.reading.by_key import chunks_where
from tidegate.snapshot.reading.connection import WorkerConnection
from tidegate.snapshot.reading.left_out import left_out, not_of_its_type, unasked
from tidegate.snapshot.reading.result import kernel as result_kernel
from tidegate.snapshot.reading.table_reader import WaveOf
from tidegate.snapshot.watermark import Manifest, MarkKind


@dataclass(frozen=True, slots=True)
class RepairKeys:
    """conditions: SQL, each true of some of the keys; together of all. silver: its rows with these
    keys.

    zero_dates: the fate of zero dates, as in the log's rows. changefeed: the source is one, and its
    TiDB is read.
    """

    database: str
    table: str
    conditions: tuple[str, ...]
    silver: pa.Table
    zero_dates: ZeroDates = ZeroDates.NULL
    marks: SnapshotMarks = SnapshotMarks.AUTO
    changefeed: bool = False


def repair_wave(pipeline: Pipeline, source: str, info: ConnectionInfo, lake: LakeFiles, wanted: RepairKeys) -> str:
    """Read, land, mark; the token of apply's answer. The caller has the lease of the source's
    snapshots.

    Raises SourceRefused, SourceUnavailable, LakeUnavailable, LakeRefused, Overtaken; VerifyError
    for a table replaced by another one.
    """
    load_all(result_kernel.__name__)
    writer = ChunkWriter(lake, source, claim_reader(ControlTables(lake), source))
    with WorkerConnection(info, changefeed=wanted.changefeed) as asked, connect(info) as marking:
        marks = marks_for(asked, marking, lake, (pipeline.pipeline, source), wanted.marks)
        server = (asked.server_id, asked.server_uuid)
        wave = WaveOf(source, uuid.uuid4().hex, 1, uuid.uuid4().hex, *server, is_local=lake.is_local)
        marks.write(wave.mark(MarkKind.LOW))
        name = (wanted.database, wanted.table)
        asked.see(marks.at_ts)
        version = asked.versions(source, [name]).get(name)
        if version is None or not version.key:
            raise _changed(wanted)
        chunks, unread = list[Chunk](), unasked(pipeline, version)
        for condition in wanted.conditions:
            chunks += chunks_where(asked, version, condition, wanted.zero_dates, wave, unread)
        chunks = [chunk for chunk in chunks if chunk.rows] or chunks[:1]
        try:
            names = pipeline.tables.names_of(wanted.database, wanted.table)
            plain = {alias: name for name, alias in under_names(version, names).aliases.items()}
            rows = wanted.silver.rename_columns([plain.get(name, name) for name in wanted.silver.column_names])
            silver = _with((*left_out(pipeline, version), *not_of_its_type(pipeline, version)), rows)
            silver = silver.select(schema_of(version).names).cast(schema_of(version))
        except (pa.ArrowException, KeyError) as error:
            raise _changed(wanted) from error
        gone = _without(silver, [rows_of(chunk, unread) for chunk in chunks], version.silver_key)
        if gone.num_rows:
            chunks.append(_deletes(version, gone, wave))
        numbered = [replace(chunk, chunk=number) for number, chunk in enumerate(chunks, 1)]
        writer.append(numbered)
        marks.write(wave.mark(MarkKind.HIGH, (Manifest.of(name, numbered),)))
    return wave.token


def _with(columns: Collection[Column], rows: pa.Table) -> pa.Table:
    """Rows of silver, with nulls in these columns, which it has not, or not as the source has them."""
    for column in columns:
        if column.silver in rows.schema.names:
            rows = rows.drop_columns([column.silver])
        rows = rows.append_column(column.silver, pa.nulls(rows.num_rows, canonical(column).arrow))
    return rows


def _without(rows: pa.Table, others: Collection[pa.Table], key: Sequence[str]) -> pa.Table:
    """Rows whose key none of the others has."""
    known = {tuple(row.values()) for table in others for row in table.select(key).to_pylist()}
    keys = [tuple(row.values()) for row in rows.select(key).to_pylist()]
    return rows.filter(pa.array([key_cells not in known for key_cells in keys], pa.bool_()))


def _deletes(version: TableVersion, rows: pa.Table, wave: WaveOf) -> Chunk:
    payload = to_payload(rows.to_batches(), rows.schema)
    return replace(wave.chunk(version, WHOLE, rows.num_rows, shape_of(rows.schema), payload), deletes=True)


def _changed(wanted: RepairKeys) -> VerifyError:
    return VerifyError(
        "the table has other columns now than when it was compared",
        where=f"{wanted.database}.{wanted.table}",
        remedy="verify it again",
    )
