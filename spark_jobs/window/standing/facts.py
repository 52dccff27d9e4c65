"""The questions of the rules of a table's standing, answered by the application.

In:  an Application, a logical table.
Out: Facts; silver's log, versions and snapshots are looked at only when a rule asks.
"""

from __future__ import annotations

from collections.abc import Collection

from spark_jobs.window.application import Application
from spark_jobs.window.shape.shapes import there_at
from spark_jobs.window.window import TableWindow
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.snapshot.progress.events import SnapshotEvent
from tidegate.standing.facts import Facts
from tidegate.table_names import Physical


def facts_of(app: Application, name: str, physical: Collection[Physical] = ()) -> Facts:
    """About one table. physical: its physical tables, where histories don't know it yet."""

    def flows() -> Collection[Physical]:
        return app.names.flows().get(name) or physical

    return Facts(
        name,
        app.cut_ts,
        applied=lambda: app.positions.applied(name),
        written=lambda: app.positions.written(name),
        reached=lambda: app.positions.reached(name),
        mark=lambda: app.positions.mark(name),
        position=app.positions.of,
        late=lambda: {physical_table.source for physical_table in flows()} & app.followed.behind.keys(),
        feeds=lambda: {physical_table.source for physical_table in flows()},
        dropped=lambda at_ts: is_dropped(app, name, flows(), at_ts),
        filled=lambda at_ts: _filled(app, name, at_ts),
        has_silver=lambda: has_silver(app, name),
    )


def has_silver(app: Application, name: str) -> bool:
    """Whether silver has a table of this name; an unreadable one counts."""
    silver = app.positions.silver(name)
    return silver is None or silver.created


def is_dropped(app: Application, name: str, physical: Collection[Physical], at_ts: int) -> bool:
    """Whether no physical table is left. For a routed table this includes shards without changes in this window."""
    database, table = app.names.pair(name)
    known = [
        physical_table
        for physical_table in physical
        if app.histories[physical_table.source].version_at(*physical_table.pair, at_ts) is not None
    ]
    routed = bool(known) and app.names.logical(*known[0].pair).routed
    entry = TableWindow(name, database, table, routed, at_ts, set(physical))
    return bool(known) and not there_at(app, entry, at_ts)


def _filled(app: Application, name: str, at_ts: int) -> tuple[str, int] | None:
    for physical in app.names.flows().get(name, ()):
        event = None if app.names.logical(*physical.pair).routed else lacks_at(app, physical, at_ts)
        if event is not None and event.low_ts is not None:
            return event.snapshot, event.low_ts
    return None


def lacks_since(app: Application, physical: Physical, at_ts: int) -> SnapshotEvent | None:
    """The event of the snapshot because of which a table lacks rows at a commit_ts, whatever its
    state is now: silver was emptied at the event's low mark, not all rows are read yet, and no
    statement up to the commit_ts has emptied the table since.
    """
    event = app.snapshots.filled(physical)
    if event is None or event.low_ts is None or event.low_ts > at_ts:
        return None
    versions = app.histories[physical.source].versions(*physical.pair)
    anew = any(event.low_ts < version.commit_ts <= at_ts and empties_all(version) for version in versions)
    return None if anew else event


def lacks_at(app: Application, physical: Physical, at_ts: int) -> SnapshotEvent | None:
    """The same, and also if the snapshot begins above the commit_ts: until then the table lacks the
    snapshot's rows. A killed window may have recorded statements from above. They have emptied
    nothing yet.
    """
    event = app.snapshots.filled(physical)
    return None if event is None or event.low_ts is None else lacks_since(app, physical, max(at_ts, event.low_ts))


def empties_all(version: TableVersion) -> bool:
    """Whether nothing of a table is left after a version."""
    return version.kind in ("create", "truncate") or version.status is VersionStatus.DROPPED
