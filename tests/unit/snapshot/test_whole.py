"""A rebuild begins at a snapshot that was whole by then, and at no other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tidegate.snapshot.progress.events import EventKind, SnapshotEvent
from tidegate.snapshot.progress.whole import whole_since
from tidegate.table_names import Physical

TABLE = Physical("s", "d", "t")


def told(snapshot: str, number: int, kind: EventKind, *, table: str = "t", **more: Any) -> SnapshotEvent:
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number)
    return SnapshotEvent(snapshot, "p", "s", kind, at, "d", table, **more)


def read(snapshot: str, start: int, end: EventKind, *, table: str = "t") -> list[SnapshotEvent]:
    """Two waves: from start to start + 5, and to start + 15."""
    first = told(snapshot, start + 1, EventKind.APPLIED, table=table, wave=1, low_ts=start, high_ts=start + 5)
    second = told(snapshot, start + 2, EventKind.APPLIED, table=table, wave=2, low_ts=start + 10, high_ts=start + 15)
    asked = told(snapshot, start, EventKind.REQUESTED, table=table)
    return [asked, first, second, told(snapshot, start + 3, end, table=table)]


def test_the_newest_whole_one_counts() -> None:
    events = [*read("a", 100, EventKind.DONE), *read("b", 200, EventKind.DONE)]
    events += [*read("c", 300, EventKind.FAILED), *read("d", 400, EventKind.CANCELLED)]
    events += read("e", 500, EventKind.DONE, table="another")
    assert [whole_since(events, TABLE, at) for at in (114, 115, 214, 215, 999)] == [None, 100, 100, 200, 200]
    assert whole_since(reversed(events), TABLE, 999) == 200


def test_one_that_goes_on_or_was_never_asked_for_says_nothing() -> None:
    going, repair = read("a", 100, EventKind.DONE)[:-1], read("r", 200, EventKind.DONE)[1:3]
    assert whole_since([*going, *repair], TABLE, 999) is None
    unknown = [told("a", 9, EventKind.APPLIED, wave=3), *read("a", 100, EventKind.DONE)]
    assert whole_since(unknown, TABLE, 999) is None, "a wave without its marks"
