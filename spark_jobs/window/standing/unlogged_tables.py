"""Tables with unknown rows, or with changes without row events: held by name, never half filled.

In:  table versions within the window's reach.
Out: tables leaving the window, with the reason; warnings where the pipeline file asks for no more.

Such a table waits from the version on that causes it. Once the cause is gone, a snapshot, a
TRUNCATE or a new CREATE ends the wait.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from spark_jobs.window.application import Application
from spark_jobs.window.shape.cascading import check_parent
from spark_jobs.window.standing.standings import hold, send_below
from spark_jobs.window.window import Window
from tidegate.cascades.rules import check_definition, rules_of
from tidegate.cascades.values import Doubt
from tidegate.config import Cascades
from tidegate.mysql.facts.unlogged_columns import of_no_one_value
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.model.hidden_changes import kept_elsewhere, unlogged_cascade
from tidegate.standing.causes import Cause
from tidegate.standing.events import Refused
from tidegate.standing.lacking import lacking, lacks_since
from tidegate.standing.standing import Place
from tidegate.table_names import Physical

log = logging.getLogger(__name__)


class Cautioned(set[str]):
    """Tables whose unlogged changes an application has warned of."""


def hold_where_unwhole(app: Application, window: Window, physical: Iterable[Physical]) -> None:
    """Hold the tables among these with unknown rows, or with changes that the log doesn't have."""
    for source, database, table in physical:
        if not app.names.keeps(source, database, table) or (source in app.followed.behind and source != window.behind):
            continue
        name = app.names.logical_name(database, table)
        if app.positions.is_held(name) or app.positions.waits_below(name, window.low_ts):
            continue
        version = app.histories[source].version_at(database, table, window.cut_ts)
        if version is None:
            continue
        if version.status.waits and app.names.logical(database, table)[2]:
            continue  # this shard alone is left out
        reason = unlogged_reason(app, version)
        if (version.status.waits or reason) and app.positions.applied(name) > window.cut_ts:
            # A killed window has met, further on, the statement that mends it.
            send_below(app, window, name, f"{name}: an apply that was killed wrote more than is published of it")
        elif version.status.waits:
            line, needs = lacking(lacks_since(app.histories[source].versions(database, table), version))
            at_ts = app.positions.mark(name)
            hold(app, window, name, Refused(Cause.NEEDS_ROWS, line, Place.of(version), needs=needs, at_ts=at_ts))
        elif reason:
            hold(app, window, name, Refused(Cause.UNLOGGED, reason, Place.of(version), at_ts=app.positions.mark(name)))


def _why_not_followed(app: Application, version: TableVersion) -> str:
    """Why the effects of a version's foreign keys can't be computed, in one phrase; "" if they can."""
    if app.names.logical(version.database, version.table).routed:
        return "tables.routes brings it together with others"
    try:
        check_definition(version)
        for key in version.foreign_keys:
            if key.acts_unseen:
                check_parent(app, version.source, key.parent)
        last = app.histories[version.source].last
        if last((version.database, version.table)) == version:
            rules_of(version, {key.parent: last(key.parent) for key in version.foreign_keys})
    except Doubt as doubt:
        return doubt.why
    return ""


def unlogged_reason(app: Application, version: TableVersion) -> str:
    """One line for table_states: cause, place, remedy."""
    if version.status is VersionStatus.DROPPED:
        return ""
    place = f"{version.name} at {version.file}:{version.pos} of {version.source}"
    if why := kept_elsewhere(version):
        return (
            f"{place}: {why}; exclude it, or give it an engine of its own at the source, and a snapshot reads it anew"
        )
    if why := of_no_one_value(app.pipeline, version):
        return (
            f"{place}: {why}; leave the column out of silver (tables.columns) and release the table; or drop the column"
            " there, and a snapshot reads the table anew; or exclude it"
        )
    why, policy = unlogged_cascade(version), app.pipeline.ddl.unlogged_cascades
    if why and policy is Cascades.FOLLOW:
        doubt = _why_not_followed(app, version)
        if not doubt:
            return ""
        why = f"{why}; it can't be followed: {doubt}"
    if why and policy is not Cascades.WARN:
        return (
            f"{place}: {why}; drop the constraint there (the application then deletes children itself), and a snapshot"
            " reads it anew; or exclude it, or set ddl.unlogged_cascades: warn and release it"
        )
    if why and version.name not in (cautioned := app.memory(Cautioned)):
        cautioned.add(version.name)
        what = "%s: %s; silver keeps what the parent's change took away or changed"
        log.warning(what, place, why, extra={"table": version.name})
    return ""
