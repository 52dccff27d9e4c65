"""The events that apply writes to control/snapshots.

In:  a wave, or a table's snapshot, and its fate.
Out: the event; nothing is recorded here.
"""

from __future__ import annotations

from dataclasses import replace

from spark_jobs.window.application import Application
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent
from tidegate.snapshot.waves import EndedWave, OpenWave
from tidegate.table_names import Physical


def answer(
    app: Application, physical: Physical, kind: EventKind, wave: EndedWave | OpenWave, reason: str = ""
) -> SnapshotEvent:
    """An event about a wave. physical: (source, "", "") means the whole wave."""
    low_ts = None if kind is EventKind.REFUSED else wave.low_ts
    high_ts = wave.high_ts if isinstance(wave, EndedWave) else None
    return SnapshotEvent(
        snapshot=wave.snapshot, pipeline=app.pipeline.pipeline, source=physical.source, event=kind,
        recorded_at=app.snapshots.next_at(wave.snapshot), database=physical.database, table=physical.table,
        wave=wave.wave, token=wave.token,
        low_ts=low_ts, high_ts=high_ts, reason=reason,
    )  # fmt: skip


def told_of(app: Application, snapshot: str, physical: Physical, kind: EventKind, reason: str = "") -> SnapshotEvent:
    """An event about a table's snapshot."""
    at = app.snapshots.next_at(snapshot)
    return SnapshotEvent(
        snapshot, app.pipeline.pipeline, physical.source, kind, at, physical.database, physical.table, reason=reason
    )


def as_refused(taken: SnapshotEvent, reason: str) -> SnapshotEvent:
    """The answer to a wave not taken after all."""
    return replace(taken, event=EventKind.REFUSED, reason=reason)
