"""What the rules of a table's standing may ask, answered by the application.

In:  an Application, a logical table.
Out: Facts; silver's log, versions and snapshots are looked at only when a rule asks.
"""

from __future__ import annotations

from collections.abc import Collection

from spark_jobs.window.application import Application
from spark_jobs.window.shape.shapes import there_at
from spark_jobs.window.window import TableWindow
from tidegate import tables
from tidegate.lake.followed import Physical
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.standing.facts import Facts


def facts_of(app: Application, name: str, physical: Collection[Physical] = ()) -> Facts:
    """About one table. physical: what flows into it, where histories don't know it yet."""

    def flows() -> Collection[Physical]:
        return app.names.flows().get(name) or physical

    return Facts(
        name,
        app.cut_ts,
        applied=lambda: app.positions.applied(name),
        written=lambda: app.positions.written(name),
        mark=lambda: app.positions.mark(name),
        position=app.positions.of,
        late=lambda: {one[0] for one in flows()} & app.followed.behind.keys(),
        feeds=lambda: {one[0] for one in flows()},
        dropped=lambda at_ts: is_dropped(app, name, flows(), at_ts),
        filled=lambda: _filled(app, name),
        has_silver=lambda: has_silver(app, name),
    )


def has_silver(app: Application, name: str) -> bool:
    """Whether silver has a table of this name."""
    return app.lake.log(tables.silver_path(*app.names.pair(name))).state().created


def is_dropped(app: Application, name: str, physical: Collection[Physical], at_ts: int) -> bool:
    """Whether no physical table is left, of a routed table also none without changes in this window."""
    database, table = app.names.pair(name)
    known = [one for one in physical if app.histories[one[0]].version_at(*one[1:], at_ts) is not None]
    routed = bool(known) and app.names.logical(*known[0][1:])[2]
    entry = TableWindow(name, database, table, routed, at_ts, set(physical))
    return bool(known) and not there_at(app, entry, at_ts)


def _filled(app: Application, name: str) -> tuple[str, int] | None:
    for physical in app.names.flows().get(name, ()):
        event = None if app.names.logical(*physical[1:])[2] else app.snapshots.filled(physical)
        if event is not None and event.low_ts is not None and not _anew(app, physical, event.low_ts):
            return event.snapshot, event.low_ts
    return None


def lacked_at(app: Application, physical: Physical, at_ts: int) -> bool:
    """Whether a table lacked rows at a commit_ts since a snapshot emptied it, whatever state it is in now."""
    event = app.snapshots.filled(physical)
    if event is None or event.low_ts is None or event.low_ts > at_ts:
        return False
    versions = app.histories[physical[0]].versions(*physical[1:])
    return not any(event.low_ts < version.commit_ts <= at_ts and empties_all(version) for version in versions)


def _anew(app: Application, physical: Physical, after_ts: int) -> bool:
    """Whether a statement has emptied a table since: all that came later is in the log."""
    versions = app.histories[physical[0]].versions(*physical[1:])
    return any(version.commit_ts > after_ts and empties_all(version) for version in versions)


def empties_all(version: TableVersion) -> bool:
    """Whether nothing of a table is left behind a version."""
    return version.kind in ("create", "truncate") or version.status is VersionStatus.DROPPED
