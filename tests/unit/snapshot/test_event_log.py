"""Who looks at control/snapshots again and again is told each event once, however its files are packed."""

from __future__ import annotations

import tracemalloc
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate import tables
from tidegate.lake import control
from tidegate.lake.control.upkeep import rewrite
from tidegate.lake.files import LakeFiles
from tidegate.snapshot.progress.event_log import EventLog
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent, progress
from tidegate.snapshot.progress.requests import Told
from tidegate.snapshot.progress.standing import KnownEvents
from tidegate.table_names import Physical

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def event(kind: EventKind, seconds: int, table: str = "t", snapshot: str = "s1", **cells: Any) -> SnapshotEvent:
    at = BEGAN + timedelta(seconds=seconds)
    return SnapshotEvent(snapshot, "p", "s", kind, at, "d" if table else "", table, **cells)


def said(lake: LakeFiles, *events: SnapshotEvent) -> None:
    control.append(lake, tables.SNAPSHOTS, [one.to_row() for one in events])


def pack(lake: LakeFiles) -> None:
    found = control.load(lake, tables.SNAPSHOTS)
    assert found is not None
    control.pack(lake, tables.SNAPSHOTS, found, smaller_bytes=1 << 30)


def test_packed_files_tell_nothing_twice_and_what_went_makes_all_be_told_anew(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    first, second, third = (event(EventKind.REQUESTED, at, f"t{at}") for at in range(3))
    log = EventLog(lake)
    assert log.look() == (False, [])
    said(lake, first)
    said(lake, second)
    assert sorted(log.look()[1], key=lambda one: one.table) == [first, second]
    pack(lake)
    assert log.look() == (False, [])
    said(lake, third)
    pack(lake)
    assert log.look() == (False, [third])
    rewrite(lake, tables.SNAPSHOTS, lambda rows: rows.filter(pc.not_equal(rows["table"], "t0")))
    anew, events = log.look()
    assert (anew, sorted(one.table for one in events)) == (True, ["t1", "t2"])


def test_who_asks_how_far_tables_are_holds_no_definitions(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    size, count = 50_000, 200
    told_of = [event(EventKind.REQUESTED, 0, f"t{n}") for n in range(count)]
    said(lake, *told_of, *(event(EventKind.WAVE, 1, f"t{n}", definition={"x": "y" * size}) for n in range(count)))
    told = Told(lake, "p")
    tracemalloc.start()
    try:
        assert len(told.tables()) == count
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < size * count / 4
    (found,) = [one for one in EventLog(lake).look()[1] if one.event is EventKind.WAVE and one.table == "t7"]
    assert found.definition == {"x": "y" * size}, "apply is told them"


def test_a_source_is_busy_until_its_reader_says_otherwise_or_has_read_a_wave(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    told = Told(lake, "p")
    said(lake, event(EventKind.REQUESTED, 0), event(EventKind.VIEW, 1, "", reason="Threads_running is 9"))
    assert told.busy() == {"s": "Threads_running is 9"}
    (before,) = told.tables()
    assert before.state == "requested", "a person's pause it is not"
    said(lake, event(EventKind.VIEW, 2, ""))
    assert told.busy() == {}
    said(lake, event(EventKind.VIEW, 3, "", reason="Threads_running is 10"))
    assert told.busy() == Told(lake, "p").busy() == {"s": "Threads_running is 10"}
    said(lake, event(EventKind.WAVE, 4, wave=1, token="w"))  # another reader's, whose bounds are wider
    assert told.busy() == Told(lake, "p").busy() == {}


def test_ones_own_events_are_not_read_back(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    said(lake, event(EventKind.REQUESTED, 0))
    known = KnownEvents.read(lake)
    known.record(control.ControlTables(lake), [event(EventKind.OPENED, 1, low_ts=5, token="a")])
    said(lake, event(EventKind.WAVE, 2, wave=1, token="a", rows=3))
    known.record(control.ControlTables(lake), [event(EventKind.APPLIED, 3, wave=1, token="a", low_ts=5)])
    pack(lake)
    known.look()
    assert known.tables == KnownEvents.read(lake).tables
    assert known.tables["s1", "s", "d", "t"].rows == 3


def filled_by(told: list[SnapshotEvent]) -> SnapshotEvent | None:
    """The newest beginning, without a done snapshot that began as late; one that applied nothing ends what came before.

    told: of one table; low_ts are in order.
    """
    begun = max((one for one in told if one.event is EventKind.OPENED), key=lambda one: one.low_ts or 0, default=None)
    if begun is None:
        return None
    later = {begun.snapshot}
    for snapshot in {one.snapshot for one in told} - later:
        lows = [one.low_ts or 0 for one in told if (one.snapshot, one.event) == (snapshot, EventKind.APPLIED)]
        done = [one.low_ts or 0 for one in told if (one.snapshot, one.event) == (snapshot, EventKind.DONE)]
        if min(lows or [max(done, default=0)]) >= (begun.low_ts or 0):
            later.add(snapshot)
    return None if any(one.event is EventKind.DONE and one.snapshot in later for one in told) else begun


KINDS = [*EventKind]
EVENTS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.sampled_from(["t", "u", ""]), st.sampled_from(["s1", "s2"]), st.booleans()),
    max_size=25,
)


@settings(max_examples=200, deadline=None)
@given(EVENTS)
def test_what_is_carried_forward_is_what_all_events_say(drawn: list[tuple[EventKind, str, str, bool]]) -> None:
    told = [
        event(kind, at, table, snapshot, token=f"k{at // 2}", low_ts=at, high_ts=at)
        for at, (kind, table, snapshot, _) in enumerate(drawn)
    ]
    known, batch = KnownEvents(), list[SnapshotEvent]()
    for one, (*_, waits) in zip(told, drawn, strict=True):
        batch.append(one)
        if not waits:
            known.take_in(batch)
            batch = []
    known.take_in(batch)
    found = progress(told)
    assert known.tables == found
    going = {key: of for key, of in found.items() if not of.state.is_over}
    assert known.going == going
    lows = [
        one.low_ts
        for one in told
        if one.event is EventKind.OPENED and not one.table and one.snapshot in {key[0] for key in going}
    ]
    assert min(known.open_lows(), default=None) == min((low for low in lows if low is not None), default=None)
    places = {one.token: one.high_ts for one in reversed(told) if one.event is EventKind.PLACED}
    marks = {one.token: one for one in told if one.event is EventKind.MARKED}
    assert {one.token for one in known.unplaced} == marks.keys() - places.keys()
    for after, upto in ((-1, 9), (3, 30)):
        wanted = sorted((at, token) for token, at in places.items() if token in marks and at and after < at <= upto)
        assert [(at, one.token) for at, one in known.placed_in(after, upto) if at] == wanted
    for table in ("t", "u"):
        filled = filled_by([one for one in told if one.table == table])
        assert known.filled(Physical("s", "d", table)) == filled
        assert (Physical("s", "d", table) in known.began_empty) == (filled is not None)
