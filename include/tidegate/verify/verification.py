"""Verify a pipeline while its sources are written to.

In:  a pipeline, connections to its sources, where its lake lies.
Out: a Report; rows in control/verification. Nothing is written at the source.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial

from tidegate.config import KeptColumns, Pipeline, named_tables
from tidegate.errors import LakeUnavailable, VerifyError
from tidegate.lake.cuts.published import Cut
from tidegate.lake.figures.status import table_statuses
from tidegate.lake.files import LakeFiles
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.table_names import splits
from tidegate.verify.check import Check
from tidegate.verify.copies import Copies
from tidegate.verify.cut import LakeReader
from tidegate.verify.recording import record
from tidegate.verify.report import Report, TableResult
from tidegate.verify.silver_side import SilverSide
from tidegate.verify.source_side import SourceSide
from tidegate.verify.step_lines import StepLines
from tidegate.verify.tidb_side import TidbSide
from tidegate.verify.under_way import TableUnderWay, VerifyOptions
from tidegate.verify.unread import unread_tables


def verify(
    pipeline: Pipeline,
    connections: Mapping[str, ConnectionInfo],
    lake_root: str,
    storage_options: Mapping[str, str] | None = None,
    options: VerifyOptions | None = None,
    on_table: Callable[[TableResult], None] | None = None,
) -> Report:
    """Compare every kept table. lake_root: absolute path or URL. connections: source name -> connection, of a TiDB with
    several Pumps the first one's (pipelines.sql_infos); tables of a source without one are named as not verified.

    Raises VerifyError when it can't be carried out: no cut in time, nothing to compare.
    """
    options = options or VerifyOptions()
    started = time.monotonic()
    with contextlib.ExitStack() as closing:
        sources: dict[str, SourceSide] = {}
        for name in pipeline.owners:
            if name in connections:
                sources[name] = closing.enter_context(contextlib.closing(_side(pipeline, name, connections[name])))
        logged = {name: side for name, side in sources.items() if not side.reads_at_cuts}
        positions = {name: side.position() for name, side in logged.items()}
        servers = {name: side.server() for name, side in logged.items()}
        lake = LakeReader(lake_root, storage_options or {}, pipeline.pipeline, servers)
        progress = StepLines(options.report, partial(_rows_of, pipeline, lake.lake))
        silver = closing.enter_context(contextlib.closing(SilverSide(options.memory_bytes, progress)))
        copies = closing.enter_context(contextlib.closing(Copies(lake.lake)))
        unread = unread_tables(lake.lake, pipeline, [name for name in pipeline.owners if name not in sources])
        if options.tables is not None:
            named = _named(pipeline, sources, unread, lake.newest_cut(), options.tables)
            options = replace(options, tables=named)
        check = Check(pipeline, lake, sources, silver, options, copies, unread)
        check.wait(sources)
        closing.enter_context(progress)
        results = []
        for result in check.run():
            results.append(result)
            progress.done += 1
            if on_table is not None:
                on_table(result)
    if not results:
        raise VerifyError(
            "no table to compare",
            where=pipeline.pipeline,
            remedy="check tables.include of the pipeline file",
        )
    where = {name: f"{file}:{offset}" for name, (file, offset) in (positions | check.positions).items()}
    report = Report(pipeline.pipeline, check.cut.cut_ts, where, tuple(results), time.monotonic() - started)
    if options.record:
        record(lake.lake, report)
    return report


def _rows_of(pipeline: Pipeline, lake: LakeFiles, name: str) -> int | None:
    """Silver's rows at the newest cut. A shard's are a part of its table's."""
    if pipeline.tables.logical(*splits(name)[0]).name != name:
        return None
    with contextlib.suppress(LakeUnavailable):
        return next((table.size.rows for table in table_statuses(lake) if table.table == name and table.size), None)
    return None


def _side(pipeline: Pipeline, source: str, info: ConnectionInfo) -> SourceSide:
    """The side by its kind. Raises VerifyError for a server of another one, SourceUnavailable, SourceRefused."""
    traits, tables = pipeline.sources[source].traits, pipeline.tables

    def kept(database: str, table: str) -> KeptColumns:
        return tables.columns_of(*tables.logical(database, table)[:2])

    return TidbSide(info, kept, traits.in_silver) if traits.shows_past else SourceSide(info, kept)


def _named(
    pipeline: Pipeline,
    sources: Mapping[str, SourceSide],
    unread: Iterable[TableUnderWay],
    cut: Cut | None,
    names: Collection[str],
) -> frozenset[str]:
    """Raises UsageError for a table that neither a source nor a cut names, before the wait for a cut."""
    known = set(cut.states) if cut else set()
    known |= {name for work in unread for name in (work.name_there, work.logical)}
    for side in sources.values():
        for database, name in side.tables(pipeline.tables.keeps):
            known |= {f"{database}.{name}", pipeline.tables.logical(database, name).name}
    remedy = "give database.table as at the source or in silver"
    return named_tables(names, known, where=pipeline.pipeline, lacks="there is no table '{}'", remedy=remedy)
