"""The beginning of a table's known history, decided for each commit of a window.

In:  a window, a table's share of it, its standing; the valid record in silver's log (lake/silver/known_history.py).
Out: the record of the commit.

A known beginning goes on with each window of a table with all of its log, catching up included. It is forgotten
- by a window that leaves versions out (tables.history_by_window);
- with rows of a snapshot: rows found then may be older, and differing rows have versions without a counterpart;
- by a table without a part of its log: emptied while it was held, or filled anew (Positions.forget_history);
- by a shard whose changes count from within a window on: it lacked rows before;
- after another writer's change of rows, by silver's log.
It begins anew at a CREATE or TRUNCATE, if silver never had a row. Otherwise it begins at a cut with the whole table,
published after the loss, with the first window after it, if no version has a later time. From there on the versions
tell the same as cuts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from spark_jobs.window.application import Application
from spark_jobs.window.made import TableToWrite
from spark_jobs.window.standing.silver_guard import said_of
from spark_jobs.window.standing.standings import standing_of
from spark_jobs.window.window import TableWindow, Window
from tidegate import tables
from tidegate.delta.log import Beside
from tidegate.delta.table.state import TableState
from tidegate.lake.silver.as_published import own_ts
from tidegate.lake.silver.known_history import KnownHistory, history_name, keeping
from tidegate.merge.past import past_of
from tidegate.merge.past.as_of import ends_by
from tidegate.standing.silver import NO_SILVER
from tidegate.tables import State

_WITHOUT_ROWS = ("create", "truncate")
_WHOLE = (State.ACTIVE, State.RELEASED, State.DROPPED)


@contextmanager
def recording_histories(app: Application, window: Window, works: Iterable[TableToWrite]) -> Iterator[None]:
    """Each commit to a table with history has its record meanwhile."""
    logs = {work.name: app.lake.log(_path(app, work.name)) for work in works if work.plan.past.versions}
    for work in works:
        if work.name in logs:
            logs[work.name].beside = _recording(app, window, work.entry)
    try:
        yield
    finally:
        for log in logs.values():
            log.beside = None


def _recording(app: Application, window: Window, entry: TableWindow) -> Beside:
    name, app_id = entry.name, tables.app_id(app.pipeline.pipeline, entry.name)
    standing = standing_of(app, window, name)
    state = standing.state if standing is not None else State.ACTIVE
    leaves_out = app.pipeline.tables.one_version_per_window(entry.database, entry.table)
    goes_on = not (leaves_out or entry.chunks or entry.shards) and state in _WHOLE
    said = said_of(app, name)
    is_whole = state is State.ACTIVE and (standing is None or standing.applied_ts <= entry.after_ts)
    begun_ts = max(_empty_at(app, entry, window.cut_ts), default=0) if goes_on and state is not State.RELEASED else 0

    def since(read: TableState, known: KnownHistory | None) -> int:
        if not goes_on:
            return 0
        if known is not None and known.since_ts:
            return known.since_ts
        if begun_ts and not read.files and not own_ts(read, app_id):
            return begun_ts
        # Silver has nothing from above after_ts yet, and a cut had all that the record was begun with.
        if not is_whole or known is None or said is None or said.version == NO_SILVER:
            return 0
        is_published = said.table_id == read.table_id and known.seen <= said.version
        if not is_published or own_ts(read, app_id) > entry.after_ts or not _has_versions(read):
            return 0
        return entry.after_ts if ends_by(read.files, entry.after_ts) else 0

    return keeping(app.lake.log(_path(app, name)), since, history_name(app.pipeline.pipeline, name))


def _has_versions(read: TableState) -> bool:
    return past_of([field["name"] for field in read.schema["fields"]]).versions


def _path(app: Application, name: str) -> str:
    return tables.silver_path(*app.names.pair(name))


def _empty_at(app: Application, entry: TableWindow, upto_ts: int) -> list[int]:
    """The commit_ts of its statements that leave it without rows."""
    return [
        version.commit_ts
        for source, database, table in entry.physical
        for version in app.histories[source].versions(database, table)
        if version.kind in _WITHOUT_ROWS and entry.after_ts < version.commit_ts <= upto_ts
    ]
