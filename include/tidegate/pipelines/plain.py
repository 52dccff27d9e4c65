"""A look at a pipeline as plain values: the JSON of the page and of `tidegate status --json`.

In:  a PipelineView.
Out: a dict of JSON's own types; docs/page.md lists its keys.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from tidegate.capture.health import slowest
from tidegate.commit_ts import time_text
from tidegate.lake.figures.verified import VerifiedTogether
from tidegate.snapshot.progress.forecast import forecast, rate, seconds_left

if TYPE_CHECKING:
    from tidegate.lake.figures.timeline import Timeline
    from tidegate.lake.schema_history.schema_changes import SchemaChange
    from tidegate.pipelines.watching import PipelineView
    from tidegate.snapshot.progress.events import TableProgress

DDL_CHARS: Final = 2000
_PREWRITES: Final = 100
_SNAPSHOT: tuple[str, ...] = ("snapshot", "source", "database", "table", "state", "waves", "rows", "bytes", "low_ts")


def plain(view: PipelineView) -> dict[str, Any]:
    """All of one look."""
    cells: dict[str, Any] = {"pipeline": view.pipeline.pipeline, "state": str(view.health), "why": view.why}
    if view.standing is not None:
        at = slowest(view.standing)
        all_of_it = forecast(view.snapshots, view.at)
        cells |= view.standing.to_json()
        cells["slowest"] = asdict(at) if at else None
        cells["verified"] = {name: asdict(known) for name, known in view.verified.items()}
        cells["verification"] = asdict(VerifiedTogether.of(view.standing.alive, view.verified))
        cells["snapshots"] = [_snapshot(table, view.at) for table in view.snapshots]
        cells["snapshots_left"] = asdict(all_of_it) | {"done_at": all_of_it.done_at(view.at)} if all_of_it else None
    cells["capture"] = {name: asdict(capture) for name, capture in view.captures.items()}
    cells["schema_changes"] = [_change(view, name, change) for name, change in view.changes]
    cells["prewrites"] = [asdict(prewrite) for prewrite in view.prewrites[:_PREWRITES]]
    cells["maintenance"] = asdict(view.maintained) if view.maintained else None
    if view.timeline is not None:
        cells["history"] = _history(view.timeline)
    return cells


def _history(timeline: Timeline) -> dict[str, Any]:
    return {
        "end": timeline.end,
        "step_seconds": timeline.step_seconds,
        "lag_seconds": timeline.lag,
        "rows": timeline.rows,
        "payload_bytes": timeline.payload_bytes,
        "window_seconds": timeline.window_seconds,
        "capture_cpu": timeline.capture_cpu,
        "apply_cpu": timeline.apply_cpu,
        "rows_per_second": timeline.rows_a_second,
    }


def _change(view: PipelineView, name: str, change: SchemaChange) -> dict[str, Any]:
    version = change.version
    return {
        "table": name,
        "source": version.source,
        "physical": version.name,
        "commit_ts": version.commit_ts,
        "at": time_text(version.commit_ts),
        "kind": version.kind,
        "ddl": version.ddl[:DDL_CHARS],
        "effect": list(change.effect),
        "in_silver": view.in_silver(name, change),
    }


def _snapshot(table: TableProgress, now: float) -> dict[str, Any]:
    cells = {name: getattr(table, name) for name in _SNAPSHOT}
    return cells | {
        "estimate": table.estimate,
        "rows_per_second": rate(table, now),
        "seconds_left": seconds_left(table, now),
        "reason": table.reason,
        "left": len(table.left),
        "waiting": len(table.waiting),
        "refused": list(table.refused),
    }
