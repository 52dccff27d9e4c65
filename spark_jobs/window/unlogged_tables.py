"""Tables that change without row events: held by name, or warned of where the pipeline file says so.

In:  a table version that the window reaches.
Out: the reason for which its table is held; "" when it isn't.

It waits from the version on that brings the cause. A snapshot, TRUNCATE or a new CREATE mends it once that is gone.
"""

from __future__ import annotations

import logging

from spark_jobs.window.application import Application
from tidegate.config import Cascades
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.model.unlogged import kept_elsewhere, unlogged_cascade

log = logging.getLogger(__name__)


def unlogged_reason(app: Application, version: TableVersion) -> str:
    """One line for table_states: what, where, what to do."""
    if version.status is VersionStatus.DROPPED:
        return ""
    place = f"{version.name} at {version.file}:{version.pos} of {version.source}"
    if why := kept_elsewhere(version):
        return (
            f"{place}: {why}; exclude it, or give it an engine of its own at the source, and a snapshot reads it anew"
        )
    why = unlogged_cascade(version)
    if why and app.pipeline.ddl.unlogged_cascades is Cascades.HOLD:
        return (
            f"{place}: {why}; drop the constraint there (the application then deletes children itself), and a snapshot"
            " reads it anew; or exclude it, or set ddl.unlogged_cascades: warn and release it"
        )
    if why and version.name not in app.cautioned:
        app.cautioned.add(version.name)
        log.warning("%s: %s; silver keeps what the parent's change took away or changed", place, why)
    return ""
