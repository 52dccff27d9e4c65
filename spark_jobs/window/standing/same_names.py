"""Tables of one name without a route: several sources have it, or shards flow into a table.

In:  the sources' histories, the tables of a window, silver's columns.
Out: why a table is none of them; such tables are held.

Silver would have the rows of all of them under one key, and a snapshot of one would take the
others' rows for its own. Rows of a routed table have their shard in the key, rows of an unrouted
one don't. One silver table can't have both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spark_jobs.window.application import Application
from spark_jobs.window.plan import Change
from spark_jobs.window.standing.standings import hold
from spark_jobs.window.window import TableWindow, Window
from tidegate.lake.silver.silver_tables import has_shards
from tidegate.remedy import Needs
from tidegate.schema.follow.renames import empties
from tidegate.schema.model.columns import VersionStatus
from tidegate.schema.replay.history import SNAPSHOT
from tidegate.standing.causes import Cause
from tidegate.standing.events import Refused
from tidegate.table_names import Physical

_SHOWN = 3


def several_sources(app: Application, name: str) -> str:
    """The fault of an unrouted logical table in more than one source; "" without one."""
    present = sorted(physical for physical in app.names.flows().get(name, ()) if _is_there(app, physical))
    if len({source for source, *_ in present}) < 2 or app.names.logical(*present[0].pair).routed:
        return ""
    sources = " and ".join(dict.fromkeys(source for source, *_ in present))
    way = "bring them together with tables.routes, or drop it at all but one; or use a pipeline for each source"
    return f"{name}: {sources} have a table of this name each, and silver has one for them; {way}"


def mixed_with_shards(app: Application, name: str, entry: TableWindow | None = None) -> str:
    """The fault of a logical table with shards beside an unrouted table; "" without one.

    entry: its share of a window; a table gone meanwhile has rows in it.
    """
    if not app.pipeline.tables.routes:
        return ""
    physical = {table for table in app.names.flows().get(name, ()) if _is_there(app, table)}
    if entry is not None:
        physical |= {table for table in entry.physical if app.histories[table.source].versions(*table.pair)}
    if not app.pipeline.tables.mixes(table.pair for table in physical):
        return ""
    plain = sorted(table for table in physical if not app.names.logical(*table.pair).routed)
    shards = sorted(physical - set(plain))
    return (
        f"{name}: a route brings {_named(shards)} into the name of {_named(plain)}, which no route names: silver can't"
        " tell its rows from theirs; give the route another table (to), leave one of them out (tables.exclude), or name"
        " both by the route"
    )


def hold_same_names(app: Application, window: Window) -> None:
    """Hold such tables. It runs after the replay of DDL, and before anything of the window is
    decoded.
    """
    for name in list(window.tables):
        if name not in window.tables:  # a partner took it along
            continue
        if what := several_sources(app, name):
            hold(app, window, name, Refused(Cause.NEEDS_ROWS, what))
        elif what := mixed_with_shards(app, name, entry := window.tables[name]):
            # If silver was written while both existed, it may have lost rows of either.
            needs = Needs.ROWS if _were_mixed(app, name, entry.after_ts) else Needs.NOTHING
            hold(app, window, name, Refused(Cause.SAME_NAME, what, needs=needs))


@dataclass(slots=True)
class _Fits:
    """Tables whose silver was seen to have rows of their kind. It can't change while an application
    lives, since its pipeline file is fixed. If another table is put in its place, the published
    marks show it (silver_guard.py).
    """

    names: set[str] = field(default_factory=set)


def hold_other_kinds(app: Application, window: Window, changes: Mapping[str, Sequence[Change]]) -> None:
    """Hold routed tables with silver from before the route, and the other way round.

    A table beginning anew in this window empties silver of them, and gives it its columns.
    """
    fits = app.memory(_Fits).names
    entries = [entry for entry in window.tables.values() if entry.name not in fits]
    asked = [app.pool.submit(app.positions.silver, entry.name) for entry in entries]
    for entry, done in zip(entries, asked, strict=True):
        # Unreadable silver can't be judged here: choose_writers holds its table for that.
        state = done.result()
        if entry.name not in window.tables or state is None or not state.live:
            continue
        if has_shards(state) == entry.routed:
            fits.add(entry.name)
        elif not _begins_anew(entry, changes[entry.name]):
            what = (
                f"{entry.name}: routes name its tables now, and silver's rows are of a table that none named"
                if entry.routed
                else f"{entry.name}: no route names it any more, and silver's rows are of shards"
            )
            hold(app, window, entry.name, Refused(Cause.NEEDS_ROWS, what, needs=Needs.ROWS))


def _begins_anew(entry: TableWindow, changes: Sequence[Change]) -> bool:
    anew = (v for old, v in changes if v.kind == SNAPSHOT or (not entry.routed and old and empties(v)))
    return entry.physical <= {(version.source, version.database, version.table) for version in anew}


def _were_mixed(app: Application, name: str, at_ts: int) -> bool:
    known = [
        (table, app.histories[table.source].version_at(*table.pair, at_ts)) for table in app.names.flows().get(name, ())
    ]
    physical = [table.pair for table, v in known if v is not None and v.status is not VersionStatus.DROPPED]
    return app.pipeline.tables.mixes(physical)


def _is_there(app: Application, physical: Physical) -> bool:
    last = app.histories[physical.source].last(physical.pair)
    return last is not None and last.status is not VersionStatus.DROPPED


def _named(physical: list[Physical]) -> str:
    more = f" and {len(physical) - _SHOWN} others" if len(physical) > _SHOWN else ""
    return ", ".join(f"{table.shown} of {table.source}" for table in physical[:_SHOWN]) + more
