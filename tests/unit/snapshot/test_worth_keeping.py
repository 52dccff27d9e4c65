"""What maintain takes out of control/snapshots changes no answer that anybody reads from it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.snapshot.test_event_log import BEGAN, event, said
from tidegate import tables
from tidegate.lake import control
from tidegate.lake.control.upkeep import rewrite
from tidegate.lake.files import LakeFiles
from tidegate.segments.segment import Server
from tidegate.snapshot.chunks.spans import WHOLE, Span
from tidegate.snapshot.progress.event_log import EventLog
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent, SnapshotState, TableProgress
from tidegate.snapshot.progress.orphans import _Judge
from tidegate.snapshot.progress.standing import KnownEvents
from tidegate.snapshot.progress.worth_keeping import worth_keeping

SPANS = (Span(None, ("5",)), Span(("5",), None))
HERE: Server = (1, "u")


def kept(events: list[SnapshotEvent], seconds: int) -> list[SnapshotEvent]:
    rows = pa.Table.from_pylist([one.to_row() for one in events], schema=tables.SNAPSHOTS.schema)
    found = worth_keeping(rows, BEGAN + timedelta(seconds=seconds))
    return [SnapshotEvent.from_row(row) for row in found.to_pylist()]


def of_one_table(name: str, at: int, last: EventKind | None, snapshot: str = "s1") -> list[SnapshotEvent]:
    """As reader and apply tell it: two waves, of which the first is refused and read again."""
    made = [
        event(EventKind.REQUESTED, at, name, snapshot),
        event(EventKind.RANGES, at + 1, name, snapshot, spans=SPANS, rows=9),
        event(EventKind.OPENED, at + 1, "", snapshot, token=f"{snapshot}{name}a", low_ts=at),
        event(
            EventKind.WAVE, at + 2, name, snapshot, wave=1, token=f"{snapshot}{name}a", spans=SPANS, chunks=2, rows=4
        ),
        event(EventKind.REFUSED, at + 3, name, snapshot, wave=1, token=f"{snapshot}{name}a", reason="a DDL"),
        event(EventKind.MARKED, at + 4, "", snapshot, wave=2, token=f"{snapshot}{name}b", low_ts=at, high_ts=at + 4),
        event(
            EventKind.WAVE, at + 5, name, snapshot, wave=2, token=f"{snapshot}{name}b", spans=SPANS, chunks=2, rows=5
        ),
        event(EventKind.PLACED, at + 6, "", snapshot, wave=2, token=f"{snapshot}{name}b", high_ts=at + 9),
        event(EventKind.OPENED, at + 7, name, snapshot, wave=2, token=f"{snapshot}{name}b", low_ts=at),
        event(EventKind.APPLIED, at + 8, name, snapshot, wave=2, token=f"{snapshot}{name}b", low_ts=at, high_ts=at + 9),
        event(EventKind.ENDED, at + 9, name, snapshot, options={"server": HERE}),
    ]
    made[3] = replace(made[3], definition={"columns": "many"})
    return [*made, event(last, at + 10, name, snapshot)] if last else made


def answers(told: TableProgress) -> tuple[object, ...]:
    """What anybody asks of a snapshot that is over, for ever."""
    return (told.state, told.low_ts, told.waves, told.rows, told.waiting, told.options, told.by_hand, told.reason)


TABLES = st.lists(
    st.tuples(
        st.sampled_from(["t", "u", "v"]),
        st.integers(0, 60),
        st.sampled_from([None, EventKind.DONE, EventKind.FAILED, EventKind.CANCELLED]),
        st.sampled_from(["s1", "s2"]),
    ),
    max_size=5,
    unique_by=lambda one: (one[0], one[3]),
)


@settings(max_examples=150, deadline=None)
@given(TABLES, st.integers(0, 80), st.none() | st.tuples(st.integers(0, 70), st.sampled_from([*EventKind])))
def test_all_answers_are_what_they_were(
    drawn: list[tuple[str, int, EventKind | None, str]], seconds: int, whole: tuple[int, EventKind] | None
) -> None:
    told = [one for name, at, last, snapshot in drawn for one in of_one_table(name, at, last, snapshot)]
    if whole is not None and whole[1] in (EventKind.PAUSED, EventKind.RESUMED, EventKind.CANCELLED):
        told.append(event(whole[1], whole[0], "", "s1"))
    after = kept(told, seconds)
    before, now = KnownEvents.of(told), KnownEvents.of(after)
    assert before.going == now.going, "of what isn't over nothing goes"
    assert {key: answers(of) for key, of in before.tables.items()} == {
        key: answers(of) for key, of in now.tables.items()
    }
    assert all(not of.left for of in now.tables.values() if of.state is SnapshotState.DONE)
    assert before.began_empty == now.began_empty
    assert before.open_lows() == now.open_lows()
    assert before.placed_in(-1, 1 << 40) == now.placed_in(-1, 1 << 40)
    for key in before.tables:
        assert before.opened(key[0], key[1:]) == now.opened(key[0], key[1:])
        assert before.begun_by(key[1:], 3) == now.begun_by(key[1:], 3)
    for one in told:
        if one.token and before.tables and not one.table and one.snapshot in {key[0] for key in before.going}:
            assert before.low_ts("s", one.token) == now.low_ts("s", one.token)
    of, since = _Judge(told, {}), _Judge(after, {})
    assert (of._applied, of._refused, [one.chunks for one in of._waves]) == (
        since._applied,
        since._refused,
        [one.chunks for one in since._waves],
    )
    assert kept(after, seconds) == after, "a second run finds nothing"


def test_it_takes_most_of_the_bytes_of_what_is_over_and_followers_are_told(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    big = {"columns": "x" * 2000}
    for number in range(50):
        events = of_one_table(f"t{number}", number, EventKind.DONE if number else None)
        said(lake, *(replace(one, definition=big) if one.event is EventKind.WAVE else one for one in events))
    log = EventLog(lake)
    log.look()
    rows = control.read(lake, tables.SNAPSHOTS)
    found = rewrite(lake, tables.SNAPSHOTS, lambda rows: worth_keeping(rows, BEGAN + timedelta(days=1)))
    assert found == (50 * 12 - 1, 50 * 12 - 1 - 49 * 2)
    assert control.read(lake, tables.SNAPSHOTS).nbytes < rows.nbytes / 3
    anew, events = log.look()
    assert (anew, len(events)) == (True, found[1])
    (left,) = KnownEvents.read(lake).going.values()
    assert (left.table, left.left, left.ended_at) == ("t0", (), HERE)
    assert left.rows == 5
    assert WHOLE not in left.left
