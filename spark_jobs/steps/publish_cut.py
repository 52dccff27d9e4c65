"""Step 8: publish cut_ts: from here on readers may use it.

In:  window.delta_versions, window.held.
Out: control/table_states events for tables that were held; control/cuts rows for what this window wrote.

States go first: a cut must never be seen that covers a table which is behind it and isn't named as held.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from spark_jobs.application import ACTIVE, DROPPED, HELD, RELEASED, Application, TableState, TableWindow, Window
from spark_jobs.table_shapes import versions_at
from tidegate import tables
from tidegate.failpoint import failpoint
from tidegate.lake.silver import delta_version


def publish_cut(app: Application, window: Window) -> None:
    """Record held tables, then the cut."""
    found = dict(window.held)
    for name, entry in window.tables.items():
        state = app.states.get(name)
        dropped = _is_dropped(app, entry, window.cut_ts)
        if dropped and (state is None or state.state != DROPPED):
            found[name] = TableState(DROPPED, reason="dropped at the source", applied_ts=window.cut_ts)
        elif not dropped and state is not None and state.state == DROPPED:
            found[name] = TableState(ACTIVE, applied_ts=window.cut_ts)
    _caught_up(app, window, found)
    app.record_states(found)
    failpoint("apply_before_publish")
    rows = [_row(app, window, name, found) for name in (*window.delta_versions, *window.held)]
    now = datetime.now(UTC)
    if window.cut_ts > app.cut_ts:
        cut = {"table": "", "delta_version": -1, "applied_ts": window.cut_ts, "state": ACTIVE}
        app.control.append(
            tables.CUTS,
            [{**row, "cut_ts": window.cut_ts, "published_at": now} for row in (cut, *rows)],
            app_transaction=(app.cuts_app_id, window.cut_ts),
        )
        app.cut_ts = window.cut_ts
    elif rows:  # a released table catching up below the published cut: only its own rows are new
        app.control.append(tables.CUTS, [{**row, "cut_ts": app.cut_ts, "published_at": now} for row in rows])
    app.index.forget(app.low_ts)
    app.forget_versions()
    failpoint("apply_after_publish")


def _caught_up(app: Application, window: Window, found: dict[str, TableState]) -> None:
    """A released table has caught up when the window reached the cut; else it stays released, as it was."""
    for name, state in app.states.items():
        if state.state == RELEASED and name not in found and name not in window.held:
            reached = window.cut_ts >= app.cut_ts
            caught_up = TableState(ACTIVE, applied_ts=window.cut_ts)
            found[name] = caught_up if reached else replace(state, applied_ts=window.cut_ts)


def _is_dropped(app: Application, entry: TableWindow, cut_ts: int) -> bool:
    """Whether no physical table is left, of a routed table also none without changes in this window."""
    known = any(app.histories[s].version_at(d, t, cut_ts) is not None for s, d, t in entry.physical)
    return known and not versions_at(app, entry, cut_ts)


def _row(app: Application, window: Window, name: str, found: dict[str, TableState]) -> dict[str, object]:
    state = found.get(name) or app.states.get(name)
    held = state is not None and state.state == HELD
    database, table = app.pair(name)
    version = window.delta_versions.get(name)
    if version is None:
        version = delta_version(app.lake.uri(tables.silver_path(database, table)), app.lake.storage_options)
    return {
        "table": name,
        "delta_version": version,
        "applied_ts": state.applied_ts if held and state else window.cut_ts,
        "state": state.state if state else ACTIVE,
    }
