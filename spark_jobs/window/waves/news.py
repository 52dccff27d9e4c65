"""The marks of waves in a window: ended waves, whole tables, continuing waves.

In:  the window's segments with the watermark table; marks of control/snapshots where none may be in
     the log.
Out: per source Followed, each ended wave with its view's real low_ts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from spark_jobs.window.application import Application
from spark_jobs.window.waves.unlogged_marks import unlogged_waves
from spark_jobs.window.waves.waves import has_marks, marks_in, open_before, seen_upto
from spark_jobs.window.window import Window
from tidegate.errors import StreamCorrupt, UnknownEvent
from tidegate.schema.replay.history import SNAPSHOT as SNAPSHOT_KIND
from tidegate.segments.window import SegmentRef
from tidegate.snapshot.waves import EndedWave, Followed, follow
from tidegate.table_names import Physical


def news(app: Application, window: Window) -> Iterator[tuple[str, Followed]]:
    """(source, Followed), sources with marks in their log first. Lazy: each is read after the
    caller has acted on the one before.
    """
    by_source: dict[str, list[SegmentRef]] = {}
    for ref in window.refs:
        if has_marks(ref):
            by_source.setdefault(ref.source, []).append(ref)
    for source, refs in by_source.items():
        marks = marks_in(app, refs, window.low_ts, window.cut_ts)
        if marks:
            yield source, follow(open_before(app, window, source, marks), marks)
    yield from unlogged_waves(app, window).items()


def placed(app: Application, window: Window, source: str, wave: EndedWave) -> EndedWave:
    """The wave with its view's real low_ts. If its low mark isn't known: the one of its own version, or of apply's
    answer.
    """
    if not wave.at or wave.refused:
        return wave
    begun_ts = _begun(app, source, wave)
    try:
        low_ts = seen_upto(app, window, source, wave, wave.low_ts or max(0, begun_ts - 1))
    except (StreamCorrupt, UnknownEvent) as error:
        return replace(wave, refused=f"where its view lies in the log can't be told: {error}")
    if low_ts is None or (not wave.low_ts and low_ts + 1 != begun_ts):
        return replace(wave, refused="its low watermark isn't in the log, or bronze no longer reaches back to it")
    if low_ts >= wave.high_ts:  # its rows would lie above the window that takes it
        return replace(wave, refused="its view sees what comes after its high watermark; it is read again")
    return replace(wave, low_ts=low_ts + 1)


def _begun(app: Application, source: str, wave: EndedWave) -> int:
    """The commit_ts at which a rebuild begins, if it begins with this wave; else 0."""
    begun_ts = 0
    for manifest in wave.tables:
        taken_ts = app.snapshots.taken_from(wave.token, Physical(source, *manifest.name))
        begun_ts = max(begun_ts, taken_ts or 0)
        for version in app.histories[source].versions(*manifest.name):
            if version.kind == SNAPSHOT_KIND and version.commit_ts <= wave.high_ts:
                begun_ts = max(begun_ts, version.commit_ts)
    return begun_ts
