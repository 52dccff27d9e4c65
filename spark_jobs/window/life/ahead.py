"""Refuse a timestamp from the future: after such a cut, rows that are committed until then would be
lost.

In:  how far each source is resolved, the published cut, this machine's clock.
Out: nothing, or why apply doesn't go on.

Only for TiDB and TiCDC: capture bounds the timestamps of a MySQL or MariaDB server by the server's
clock. A Pump and a changefeed's reader refuse such a timestamp today; older bronze may have one.
"""

from __future__ import annotations

import time

from spark_jobs.window.application import Application
from tidegate.commit_ts import compose, time_text
from tidegate.errors import StreamCorrupt
from tidegate.limits import TIMESTAMP_AHEAD_SECONDS_MAX


def check_not_ahead(app: Application) -> None:
    """Raises StreamCorrupt."""
    sources = [name for name, entry in app.pipeline.sources.items() if not entry.traits.bounds_timestamps]
    latest_ts = compose(int((time.time() + TIMESTAMP_AHEAD_SECONDS_MAX) * 1000))
    for name in sources:
        if (resolved_ts := app.index.resolved(name)) > latest_ts:
            raise _ahead(f"{name} is resolved", resolved_ts, name)
    if sources and app.cut_ts > latest_ts:
        raise _ahead("silver has a cut", app.cut_ts, ", ".join(sources))


def _ahead(what: str, ts: int, where: str) -> StreamCorrupt:
    return StreamCorrupt(
        f"{what} up to {ts} ({time_text(ts)}), more than {TIMESTAMP_AHEAD_SECONDS_MAX} s ahead of this machine's clock:"
        " rows that are committed until then would be lost",
        where=where,
        remedy="where the clock is right, somebody else than the cluster wrote there (docs/threats.md): close that"
        " door, then begin the lake anew (docs/production.md)",
    )
