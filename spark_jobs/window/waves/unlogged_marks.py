"""Waves without marks in their source's log, because nothing may be written there.

In:  events `marked` of control/snapshots: a mark, L and H (snapshot/marks/unlogged_marks.py).
Out: per source this window's waves and ends; events `placed`.

A chunk may come late: its rows are right in each window that ends at H or above
(snapshot/__init__.py). Therefore apply gives such a mark a commit_ts of its own, above H and above
silver's position for its tables, and records it before anything is applied. From then on the mark
is like one in the log: a killed window finds it at the same place, and silver's own position shows
whether silver has it. A DDL of the table between L and this place refuses the wave.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime

from spark_jobs.window.application import Application
from spark_jobs.window.window import Window
from tidegate.errors import DecodeError
from tidegate.failpoint import failpoint
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent
from tidegate.snapshot.watermark import Mark, MarkKind
from tidegate.snapshot.waves import EndedWave, Followed, WholeTable


def unlogged_waves(app: Application, window: Window) -> dict[str, Followed]:
    """Waves by source, in the order of their places."""
    # A main window lacks the data of a source that is behind, so it can't tell whether H is reached. A window of tables
    # that catch up ends at their sources' position, or below.
    late = app.followed.behind.keys() if window.main else ()
    sources = {window.behind} if window.behind is not None else app.histories.keys() - late
    if window.main:
        _place(app, window, [mark for mark in app.snapshots.unplaced if _is_of(app, sources, mark)])
    by_source: dict[str, Followed] = {}
    for place, event in app.snapshots.placed_in(window.low_ts, window.cut_ts):
        if _is_of(app, sources, event):
            _take(by_source.setdefault(event.source, Followed()), event, place)
    return by_source


def _is_of(app: Application, sources: Collection[str], event: SnapshotEvent) -> bool:
    return event.source in sources and event.pipeline == app.pipeline.pipeline


def _mark(event: SnapshotEvent) -> Mark:
    mark = Mark.from_text(str(event.options["mark"]))
    if mark is None:
        raise DecodeError("a mark of control/snapshots is empty", where=event.snapshot)
    return mark


def _place(app: Application, window: Window, events: list[SnapshotEvent]) -> None:
    """Give each mark that belongs to this window its place. A later window takes the others."""
    now, placed_marks = datetime.now(UTC), list[SnapshotEvent]()
    for event in events:
        mark = _mark(event)
        names = {app.names.logical_name(*manifest.name) for manifest in mark.tables}
        applied = [app.positions.applied(name) for name in names]
        # The place must lie above the last transaction that the view sees. That is H itself if the log ends there.
        last_ts = (event.high_ts or 0) if mark.at else (event.high_ts or 0) - 1
        place = max([window.low_ts, last_ts, *applied]) + 1
        if place <= window.cut_ts:
            placed_marks.append(
                replace(event, event=EventKind.PLACED, high_ts=place, low_ts=None, options={}, recorded_at=now)
            )
    if placed_marks:
        app.snapshots.record(app.control, placed_marks)
        failpoint("apply_after_placed")


def _take(followed: Followed, event: SnapshotEvent, place: int) -> None:
    mark = _mark(event)
    if mark.kind is MarkKind.END:
        followed.whole += [WholeTable(mark.snapshot, *manifest.name, place) for manifest in mark.tables]
    elif mark.kind is MarkKind.HIGH:
        server = str(event.options.get("server_uuid", ""))
        ids = (mark.snapshot, mark.wave, mark.token, event.low_ts or 0, place, server)
        followed.ended.append(EndedWave(*ids, mark.tables, "", mark.at, mark.exact))
