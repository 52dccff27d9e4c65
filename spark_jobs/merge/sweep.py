"""Removal of rows that aren't at the source, when a table was snapshotted in place and its snapshot has ended.

In:  the window's Sweeps, silver with all rows of the window.
Out: rows with a commit_ts below the snapshot's first low mark deleted, or ended where rows of the past stay; of a
     routed table those of the one shard; the Delta versions.

From that mark on, each row of the source was written by a wave or by the log. No range of keys is compared: only the
server's collation knows their order. Rows of another writer go, too: they have an older commit_ts, none, one above all
of tidegate's, or no key. A second sweep finds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spark_jobs.merge.private.log import PrivateLog
from spark_jobs.merge.silver_writer import SilverWriter
from spark_jobs.window.application import Application
from spark_jobs.window.made import DdlTimes, TableToWrite
from spark_jobs.window.standing.silver_guard import version_for_cut
from spark_jobs.window.window import Sweep, TableWindow, Window
from tidegate import tables
from tidegate.delta.table.state import TableState
from tidegate.errors import Terminal
from tidegate.failpoint import failpoint
from tidegate.lake.silver.as_published import own_ts
from tidegate.lake.silver.shards import of_no_shard
from tidegate.merge import silver_sql
from tidegate.merge.past import past_of
from tidegate.snapshot.progress.events import TableKey
from tidegate.spark_sql import literal, quote


def sweep_whole_tables(
    app: Application, window: Window, ddl_times: DdlTimes, sweeps: Iterable[tuple[str, Sweep]]
) -> dict[str, int | BaseException]:
    """The new Delta version of each swept table, or its error. Tables that need no sweep aren't in it."""
    outcomes: dict[str, int | BaseException] = {}
    for name, sweep in sweeps:
        known = app.snapshots.tables.get(TableKey(sweep.snapshot, *sweep.physical))
        if name in window.held or known is None or app.snapshots.opened(sweep.snapshot, sweep.physical) is not None:
            continue
        try:
            entry = window.tables.get(name) or _nothing_of(app, window, name, sweep)
            version = _sweep(SilverWriter(app, TableToWrite(entry), ddl_times), sweep, window.cut_ts)
        except Terminal as error:
            outcomes[name] = error
        except Exception as error:  # noqa: BLE001 - the window is tried again, with its other tables
            outcomes[name] = error
        else:
            if version is not None:
                outcomes[name] = version
    return outcomes


def _nothing_of(app: Application, window: Window, name: str, sweep: Sweep) -> TableWindow:
    return TableWindow(name, *app.names.pair(name), app.names.logical(*sweep.physical.pair).routed, window.cut_ts)


def _sweep(writer: SilverWriter, sweep: Sweep, cut_ts: int) -> int | Terminal | None:
    """cut_ts: the window's. Above it and silver's own commits no row is ours."""
    state = writer.log.state()
    done = (f"{writer.app_id}/sweep/{'.'.join(sweep.physical)}", sweep.end_ts)
    upto_ts = max(own_ts(state, writer.app_id), cut_ts)
    # A rebuild knows versions from above its window, whose key is another one.
    version = writer.app.histories[sweep.physical.source].version_at(*sweep.physical.pair, cut_ts)
    never_null = (tables.COMMIT_TS, *(version.silver_key if version is not None else ()))
    if not state.created or not _may_hold(state, sweep.low_ts, upto_ts, never_null):
        return None
    nulls = " OR ".join(f"{quote(name)} IS NULL" for name in never_null)
    stale = f"({nulls} OR {tables.COMMIT_TS} NOT BETWEEN {sweep.low_ts} AND {upto_ts})"

    def work(private: PrivateLog) -> None:
        where = stale
        if writer.entry.routed:
            where = f"({stale} AND {silver_sql.shard_is(sweep.physical)}{_of_no_shard(writer, private)})"
        past = past_of(writer.columns() or ())
        if past.rows_stay:
            ended = past.assigned(sweep.end_ts)
            writer.session.sql(f"UPDATE {private.target} SET {ended} WHERE {where} AND {past.open}")
        else:
            writer.session.sql(f"DELETE FROM {private.target} WHERE {where}")

    writer.change(work, done)
    failpoint("apply_after_sweep")
    return version_for_cut(writer.app, writer.entry.name, writer.state)


def _of_no_shard(writer: SilverWriter, private: PrivateLog) -> str:
    """... OR the condition of each group of a routed table's rows that no shard has."""
    conditions = [""]
    held = private.rows().select(*tables.SHARDS).distinct().collect()
    for cells in of_no_shard(
        writer.app.lake, writer.app.pipeline, writer.entry.name, ((row[0], row[1], row[2]) for row in held)
    ):
        pairs = zip(tables.SHARDS, cells, strict=True)
        same = (f"{name} <=> {'NULL' if cell is None else literal(cell)}" for name, cell in pairs)
        conditions.append(f"({' AND '.join(same)})")
    return " OR ".join(conditions)


def _may_hold(state: TableState, low_ts: int, upto_ts: int, never_null: Sequence[str]) -> bool:
    """Whether a file may have a row from outside of [low_ts, upto_ts], or a NULL in these columns."""
    for file in state.files:
        bounds = file.bounds(tables.COMMIT_TS)
        if bounds is None or bounds[0] < low_ts or bounds[1] > upto_ts:
            return True
        if any(file.nulls(name) != 0 for name in never_null):
            return True
    return False
