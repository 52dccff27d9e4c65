"""A person's look at snapshots shows what all events say, and makes none of events of tables that are done."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.seeds import many
from tidegate import tables
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.snapshot.progress import shown
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent, SnapshotState, TableProgress
from tidegate.snapshot.progress.requests import told
from tidegate.snapshot.progress.shown import ShownSnapshots, under_way_and_failed
from tidegate.table_names import Physical

BEGAN = datetime(2026, 5, 4, tzinfo=UTC)
ENDS = (EventKind.DONE, EventKind.FAILED, EventKind.CANCELLED)
Key = tuple[str, str, tuple[str, str]]


def keys(known: list[TableProgress]) -> list[Key]:
    return [(table.snapshot, table.source, table.name) for table in known]


class Events:
    """Events of some tables, appended as they come."""

    def __init__(self, root: Path) -> None:
        self.lake = LakeFiles(str(root))
        self._at = 0

    def say(self, snapshot: str, table: str, *kinds: EventKind) -> None:
        rows = []
        for kind in kinds:
            self._at += 1
            at = BEGAN + timedelta(seconds=self._at)
            rows.append(SnapshotEvent(snapshot, "shop", "s", kind, at, "d" * bool(table), table, wave=1).to_row())
        control.append(self.lake, tables.SNAPSHOTS, rows)

    def check(self, looked: ShownSnapshots, wanted: set[Physical]) -> None:
        """What is shown is what all events say: of tables under way, that failed, and that are wanted."""
        known, every = looked.tables(wanted), told(self.lake, "shop")
        assert under_way_and_failed(known) == under_way_and_failed(every)
        of_wanted = [table for table in every if Physical(table.source, *table.name) in wanted]
        assert [table for table in known if Physical(table.source, *table.name) in wanted] == of_wanted
        assert [key for key in keys(every) if key in keys(known)] == keys(known), "in order of their requests"


def test_tables_that_are_done_are_passed_over_until_one_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = Events(tmp_path)
    events.say("1", "done", EventKind.REQUESTED, EventKind.RANGES, EventKind.WAVE, EventKind.APPLIED, EventKind.DONE)
    events.say("1", "failed", EventKind.REQUESTED, EventKind.FAILED)
    events.say("1", "runs", EventKind.REQUESTED, EventKind.RANGES)
    made = list[str]()
    real = SnapshotEvent.from_row
    monkeypatch.setattr(shown.SnapshotEvent, "from_row", lambda row: made.append(row["table"]) or real(row))
    looked = ShownSnapshots(events.lake)
    assert [key[2][1] for key in keys(looked.tables())] == ["failed", "runs"]
    assert set(made) == {"failed", "runs"}
    made.clear()
    assert len(looked.tables()) == 2
    assert made == []
    events.say("1", "runs", EventKind.WAVE)
    looked.tables()
    assert made == ["runs"], "what was read isn't read again"
    events.say("2", "done", EventKind.REQUESTED)
    events.check(looked, {Physical("s", "d", "done")})
    assert [table.state for table in looked.tables() if table.name[1] == "done"] == [
        SnapshotState.DONE,
        SnapshotState.REQUESTED,
    ]


@pytest.mark.parametrize("seed", range(many(12, 120)))
def test_any_order_of_events_is_shown_as_all_events_say(seed: int, tmp_path: Path) -> None:
    dice, events = random.Random(seed), Events(tmp_path)
    looked = ShownSnapshots(events.lake)
    middle = [kind for kind in EventKind if kind not in (*ENDS, EventKind.REQUESTED, EventKind.MARKED)]
    open_of: dict[str, str] = {}
    for step in range(25):
        table = dice.choice("abcd")
        if table not in open_of:
            open_of[table] = f"{step}"
            events.say(open_of[table], table, EventKind.REQUESTED)
        elif dice.random() < 0.5:
            events.say(open_of.pop(table), table, dice.choice((EventKind.DONE, *ENDS)))
        elif dice.random() < 0.1:
            events.say(open_of[table], "", EventKind.PAUSED)
        else:
            events.say(open_of[table], table, dice.choice(middle))
        if dice.random() < 0.15 and (state := control.current(events.lake, tables.SNAPSHOTS)) is not None:
            control.pack(events.lake, tables.SNAPSHOTS, state, smaller_bytes=1 << 30)
        if dice.random() < 0.4:
            events.check(looked, {Physical("s", "d", name) for name in dice.sample("abcd", dice.choice((0, 0, 1)))})
