"""MERGE of a table's staged changes, a phase at a time: the reference that every other writer equals.

In:  staged files of decoded changes (Parquet, any order), a rows phase with silver's shape in it.
Out: one commit of the changes and of the phase's upto_ts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from spark_jobs.merge.past import follow_past
from spark_jobs.merge.private.log import PrivateLog
from spark_jobs.merge.silver_writer import SilverWriter
from spark_jobs.merge.twins import leave_one_of_each
from spark_jobs.merge.values import staged_schema
from spark_jobs.merge.widen import widen
from spark_jobs.session.spark import DELETION_VECTORS
from spark_jobs.window.plan import PlannedPhase
from spark_jobs.window.shape.shapes import kept_of
from spark_jobs.window.window import StagedFile
from tidegate import tables
from tidegate.delta.table.state import TableState
from tidegate.limits import REWRITE_BYTES_MAX
from tidegate.merge import silver_sql
from tidegate.merge.kept import in_silver
from tidegate.merge.phases import RowsPhase
from tidegate.merge.silver_sql import SilverShape
from tidegate.merge.version_sql import BEGUN, READ_UPTO, merge_versions
from tidegate.table_names import Physical

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_VIEW: Final = "_tg_changes"


@dataclass(slots=True)
class LargeTables:
    """Names of large tables. A large table isn't measured again."""

    names: set[str] = field(default_factory=set)


def write_rows(writer: SilverWriter, planned: PlannedPhase) -> None:
    """MERGE the staged changes of (after_ts, upto_ts] and record upto_ts with them."""
    phase, shape = planned.phase, planned.shape
    assert isinstance(phase, RowsPhase), "asked of those"
    files = [
        file
        for file in writer.work.staged.files
        if file.max_commit_ts > phase.after_ts and file.min_commit_ts <= phase.upto_ts
    ]
    if not files:
        return
    applied = writer.log.state().transaction(writer.app_id)
    if applied >= phase.upto_ts:
        return
    writer.work.check_follows(phase.after_ts, applied)
    assert shape is not None, "staged rows have a version in force"
    writer.ensure(shape)
    follow_past(writer, shape)
    widen(writer, shape)
    _changes(writer, files, phase, shape).createOrReplaceTempView(_VIEW)

    def merge(private: PrivateLog) -> None:
        writer.work.check_follows(phase.after_ts, private.state.transaction(writer.app_id))
        writer.session.conf.set(DELETION_VECTORS, str(_is_large(writer, private.state)).lower())
        if shape.past.versions:
            writer.session.sql(_versions(writer, private, files, phase, shape))
            return
        source = _source(private, files, shape)
        (counted,) = writer.session.sql(silver_sql.merge(private.uri, source, shape)).collect()
        if writer.entry.chunks and shape.key:
            leave_one_of_each(private, source, shape, counted)

    writer.change(merge, (writer.app_id, phase.upto_ts))


def _versions(
    writer: SilverWriter, private: PrivateLog, files: Sequence[StagedFile], phase: RowsPhase, shape: SilverShape
) -> str:
    """The MERGE of the view of a phase's changes into versions of rows."""
    applied_ts = writer.work.applied_again(phase.after_ts, private.state.transaction(writer.app_id))
    reads = any(file.read_upto_ts for file in files)
    last = writer.app.pipeline.tables.one_version_per_window(writer.entry.database, writer.entry.table)
    return merge_versions(_VIEW, private.uri, shape, applied_ts, reads=reads, last_of_each=last)


def _source(private: PrivateLog, files: Sequence[StagedFile], shape: SilverShape) -> str:
    """The SELECT of the view of a phase's changes, one per key."""
    if not shape.key:
        return silver_sql.net_rows(_VIEW, private.uri, shape)
    return silver_sql.latest_per_key(_VIEW, shape) if len(files) > 1 else f"SELECT * FROM {_VIEW}"


def _is_large(writer: SilverWriter, state: TableState) -> bool:
    known = writer.app.memory(LargeTables).names
    if writer.entry.name not in known and sum(file.size for file in state.files) > REWRITE_BYTES_MAX:
        known.add(writer.entry.name)
    return writer.entry.name in known


def _changes(writer: SilverWriter, files: Sequence[StagedFile], phase: RowsPhase, shape: SilverShape) -> DataFrame:
    """The phase's changes with silver's columns; columns that a shard does not have are null."""
    from pyspark.sql import functions as sql_functions

    frames, kept = [], kept_of(writer.app, writer.entry)
    by_version: dict[tuple[str, str, str, int, int], list[StagedFile]] = {}
    for file in files:
        by_version.setdefault((*file.owner, file.read_upto_ts), []).append(file)
    for (source, database, table, number, read_upto_ts), group in by_version.items():
        version = next(v for v in writer.app.histories[source].versions(database, table) if v.version == number)
        frame = writer.session.read.schema(staged_schema(in_silver(kept, version), shape)).parquet(
            *(writer.app.lake.spark_uri(f.path) for f in group)
        )
        frame = frame.withColumn("_tg_order_source", sql_functions.lit(source))
        if shape.past.versions:
            begun = Physical(source, database, table) in writer.entry.begun
            frame = frame.withColumn(READ_UPTO, sql_functions.lit(read_upto_ts).cast("bigint"))
            frame = frame.withColumn(BEGUN, sql_functions.lit(begun))
        if writer.entry.routed:
            for name, value in zip(tables.SHARDS, (source, database, table), strict=True):
                frame = frame.withColumn(name, sql_functions.lit(value))
        if not all(phase.after_ts < f.min_commit_ts and f.max_commit_ts <= phase.upto_ts for f in group):
            stamp = sql_functions.col(tables.COMMIT_TS)
            frame = frame.where((stamp > phase.after_ts) & (stamp <= phase.upto_ts))
        frames.append(frame)
    merged = frames[0]
    for frame in frames[1:]:
        merged = merged.unionByName(frame, allowMissingColumns=True)
    present = set(merged.columns)
    for column in shape.columns:
        if column.name not in present:
            merged = merged.withColumn(column.name, sql_functions.lit(None).cast(column.type))
    return merged
