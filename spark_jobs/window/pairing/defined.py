"""Versions of tables made by a cluster's DDL jobs in a window.

In:  Pairs; schema_history of the cluster's first Pump.
Out: new versions, taken in by the history; the tables with committed rows, by name.

A job counts at the commit_ts of its last binlog: there a job with several binlogs has its final
schema state. A job that is rolled back changes nothing, but afterwards the rows of a table without
a key may be unknown. A list of tables shows which ones existed when a Pump began. Tables that no
job made wait by name, since nobody knows their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from spark_jobs.window.application import Application
from spark_jobs.window.pairing.pairs import CommittedDdl, Pairs
from tidegate.errors import TidegateError, UnknownEvent
from tidegate.remedy import REPORT
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.replay.history import SchemaHistory
from tidegate.segments.window import SegmentRef
from tidegate.tidb.jobs import Job, id_in
from tidegate.tidb.rows.summary import moves_sequence
from tidegate.tidb.tables.definitions import Stands, ids_of, live_tables, versions_of
from tidegate.tidb.tables.live_tables import LiveTables, TableChange, VersionKind

_FOREVER: Final = (1 << 63) - 1


def replay_jobs(app: Application, pairs: Pairs) -> list[TableVersion]:
    """Raises StreamCorrupt, UnknownEvent."""
    history = app.histories[pairs.owner]
    seen_ts = max((last.commit_ts for name in history.tables() if (last := history.last(name))), default=0)
    stands: list[tuple[int, CommittedDdl | tuple[bytes, SegmentRef]]] = [(ddl.commit_ts, ddl) for ddl in pairs.ddl]
    stands += [(tso, (text, ref)) for tso, text, ref in pairs.tables]
    made: list[TableVersion] = []
    live: LiveTables | None = None
    for commit_ts, definition in sorted(stands, key=lambda at: at[0]):
        if commit_ts <= seen_ts:
            continue
        live = live or live_tables(history)
        if isinstance(definition, CommittedDdl):
            versions = _of_job(definition, pairs, live, history)
        else:
            versions = _of_list(commit_ts, *definition, live, history)
        history.add(versions)
        made += map(history.named, versions)
    return made


def _of_job(ddl: CommittedDdl, pairs: Pairs, live: LiveTables, history: SchemaHistory) -> list[TableVersion]:
    binlog = ddl.binlog
    where = f"{pairs.owner} at {binlog.file}:{binlog.pos}"
    text = pairs.jobs.get(binlog.job_id)
    if text is None:
        if moves_sequence(binlog.query):
            return []
        raise UnknownEvent(
            f"bronze lacks what TiDB's history says of DDL job {binlog.job_id} ({binlog.query[:120]})",
            where=where,
            remedy=f"{REPORT}; a new lake, begun after that job, goes on without it",
        )
    try:
        job = Job.from_text(text)
        if job.schema_state != binlog.schema_state:
            return []
        changes = live.run(job)
    except TidegateError as error:
        error.where = error.where or f"{where}: {binlog.query[:120]}"
        raise
    return versions_of(changes, Stands(ddl.commit_ts, binlog.file, binlog.pos, job.query), history)


def _of_list(tso: int, text: bytes, ref: SegmentRef, live: LiveTables, history: SchemaHistory) -> list[TableVersion]:
    """Versions for the unknown tables of the list: those older than a Pump's beginning."""
    known = {info.id for _, info in live}
    why = "it was there before the first Pump began"
    changes = [
        TableChange(VersionKind.BASELINE, name, info, unknown_rows=why)
        for name, info in LiveTables.from_text(text)
        if info.id not in known
    ]
    live.take_in(changes)
    return versions_of(changes, Stands(tso, ref.file, ref.start_pos, ""), history)


def names_at(history: SchemaHistory, ids: Iterable[int]) -> Iterator[tuple[int, tuple[str, str], int, int]]:
    """(table id, name, first commit_ts, end commit_ts, exclusive) of each version of these ids."""
    wanted = set(ids)
    for name in history.tables():
        versions = history.versions(*name)
        called = ids_of(versions)
        for at, version in enumerate(versions):
            upto_ts = versions[at + 1].commit_ts if at + 1 < len(versions) else _FOREVER
            for table_id in wanted.intersection(called[at]):
                yield table_id, name, version.commit_ts, upto_ts


def newest_id(history: SchemaHistory) -> int:
    """The largest known id of a table."""
    return max(
        (id_in(last.origin) for name in history.tables() if (last := history.last(name)) and last.origin), default=0
    )
