"""Verify a pipeline while its sources are written to.

In:  a pipeline, connections to its sources, where its lake lies.
Out: a Report; rows in control/verification. Nothing is written at the source.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Mapping

from tidegate.config import Pipeline
from tidegate.errors import UsageError, VerifyError
from tidegate.mysql.connection import ConnectionInfo
from tidegate.verify.check import Check
from tidegate.verify.cut import Cut, LakeReader
from tidegate.verify.recording import record
from tidegate.verify.report import Report, TableResult
from tidegate.verify.silver_side import SilverSide
from tidegate.verify.source_side import SourceSide
from tidegate.verify.under_way import Options


def verify(
    pipeline: Pipeline,
    connections: Mapping[str, ConnectionInfo],
    lake_root: str,
    storage_options: Mapping[str, str] | None = None,
    options: Options | None = None,
    on_table: Callable[[TableResult], None] | None = None,
) -> Report:
    """Compare every kept table. connections: source name -> connection; lake_root: absolute path or URL.

    Raises VerifyError when it can't be carried out: no cut in time, nothing to compare.
    """
    options = options or Options()
    started = time.monotonic()
    sources: dict[str, SourceSide] = {}
    silver = SilverSide(options.memory_bytes)
    try:
        for name in pipeline.sources:
            sources[name] = SourceSide(connections[name])
        positions = {name: side.position() for name, side in sources.items()}
        servers = {name: side.server_id() for name, side in sources.items()}
        lake = LakeReader(lake_root, storage_options or {}, pipeline.pipeline, servers)
        if options.table is not None:
            _check_known(pipeline, sources, lake.newest_cut(), options.table)
        check = Check(pipeline, lake, sources, silver, options)
        check.wait(sources)
        results = []
        for result in check.run():
            results.append(result)
            if on_table is not None:
                on_table(result)
    finally:
        silver.close()
        for side in sources.values():
            side.close()
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


def _check_known(pipeline: Pipeline, sources: Mapping[str, SourceSide], cut: Cut | None, table: str) -> None:
    """Raises UsageError for a table that neither a source nor a cut names, before the wait for a cut."""
    known = set(cut.versions) if cut else set()
    for side in sources.values():
        for database, name in side.tables(pipeline.tables.keeps):
            known |= {f"{database}.{name}", ".".join(pipeline.tables.logical(database, name)[:2])}
    if table not in known:
        close = difflib.get_close_matches(table, known, n=1)
        remedy = f"did you mean {close[0]}?" if close else "give database.table as at the source or in silver"
        raise UsageError(f"there is no table {table!r}", where=pipeline.pipeline, remedy=remedy)
