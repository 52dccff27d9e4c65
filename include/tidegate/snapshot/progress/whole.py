"""Since when the log and chunks of a table's snapshot have all of its rows: a rebuild may begin there.

In:  events of control/snapshots, a table, a moment.
Out: the commit_ts of the first low watermark of the newest snapshot that was whole by then; why a
     rebuild doesn't have the rows of a snapshot.

If a row changes before its range is read, the range has its new values, as of a later low watermark. Each change after
that is in the log.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tidegate.snapshot.progress.events import EventKind, SnapshotEvent, SnapshotState, TableKey, progress
from tidegate.table_names import Physical


def whole_since(events: Iterable[SnapshotEvent], table: Physical, at_ts: int) -> int | None:
    """None where no snapshot of the table was whole by at_ts."""
    known = list(events)
    waves: dict[TableKey, list[SnapshotEvent]] = {}
    for event in known:
        if event.event is EventKind.APPLIED:
            waves.setdefault(TableKey(event.snapshot, event.source, *event.name), []).append(event)
    begins = list[int]()
    for key, whole in progress(known).items():
        applied = waves.get(key, [])
        if key.physical != table or whole.state is not SnapshotState.DONE or not applied:
            continue
        if all(_is_over(wave, at_ts) for wave in applied):
            begins.append(min(wave.low_ts or 0 for wave in applied))
    return max(begins, default=None)


def _is_over(wave: SnapshotEvent, at_ts: int) -> bool:
    """Whether its marks are known, and no later."""
    return wave.low_ts is not None and wave.high_ts is not None and wave.high_ts <= at_ts


def not_again(
    before: Iterable[SnapshotEvent],
    after: Iterable[SnapshotEvent],
    tables: Collection[Physical],
    begin_ts: int,
) -> str:
    """Why a rebuild from begin_ts on lacks rows that apply took; "" where it has all of them.

    before: the lake's events; after: the rebuild's, with these.
    """
    known = list(before)
    refused = {_of(event) for event in known if event.event is EventKind.REFUSED}
    taken = {_of(event) for event in known if event.event is EventKind.APPLIED and (event.low_ts or 0) > begin_ts}
    for event in after:
        is_new = event.event is EventKind.REFUSED and _of(event) not in refused
        if is_new and _of(event) in taken and _of(event)[1] in tables:
            return event.reason
    return ""


def _of(event: SnapshotEvent) -> tuple[str, Physical]:
    return event.token, Physical(event.source, *event.name)
