"""From when on the versions of a table with history tell its rows: carried from one row of control/cuts to the next.

In:  a table's standing at the end of a window, its silver, what the window had of it.
Out: a commit_ts, or None: not known, or it keeps no history.

A table is complete at a cut where it is active. From there on its log is: each change ends a version and begins one.
This goes on while it waits, since it catches up from its log. It begins anew
- with a snapshot that reads it: rows found then may be older, and rows that differed have versions that never were;
- after another writer's change of its rows, or another log in the place of its own: versions may be gone.
A CREATE or TRUNCATE is a beginning, too: no row is older. So is the end of the reading for a table that silver had
nothing of before.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from spark_jobs.window.application import Application
from spark_jobs.window.standing.silver_guard import said_of
from spark_jobs.window.window import TableWindow, Window
from tidegate import tables
from tidegate.merge.past import past_of
from tidegate.standing.silver import NO_SILVER
from tidegate.standing.standing import Standing
from tidegate.tables import State

_WITHOUT_ROWS: Final = ("create", "truncate")


def history_ts(
    app: Application, window: Window, name: str, standing: Standing | None, swept: Collection[str]
) -> int | None:
    """swept: tables whose rows that their snapshot hasn't seen ended in this window."""
    log = app.lake.log(tables.silver_path(*app.names.pair(name)))
    state = log.known if log.known.created else log.state()
    if not state.created or not past_of([field["name"] for field in state.schema["fields"]]).versions:
        return None
    entry, said = window.tables.get(name), said_of(app, name)
    is_read = entry is not None and bool(entry.chunks)
    lacks = standing is not None and (standing.state is State.SNAPSHOT or standing.lacks_rows)
    goes_on = said is not None and said.table_id == state.table_id and not (is_read or lacks or name in swept)
    if goes_on and said is not None and said.history_ts is not None:
        return said.history_ts
    if standing is not None and standing.state is not State.ACTIVE:
        return None
    if entry is None:
        return window.cut_ts
    read_ts = max((chunk.read_upto_ts for chunk in entry.chunks), default=0)
    is_new = said is None or said.version == NO_SILVER
    if read_ts and is_new:
        return read_ts
    return min(_empty_at(app, entry, max(read_ts, entry.after_ts), window.cut_ts), default=window.cut_ts)


def _empty_at(app: Application, entry: TableWindow, after_ts: int, upto_ts: int) -> list[int]:
    """The commit_ts of its statements that leave it without rows."""
    return [
        version.commit_ts
        for source, database, table in entry.physical
        for version in app.histories[source].versions(database, table)
        if version.kind in _WITHOUT_ROWS and after_ts < version.commit_ts <= upto_ts
    ]
