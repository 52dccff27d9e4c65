"""What the demo waits for before it compares."""

from __future__ import annotations

from tidegate.demo.progress import DemoMoment, facts_line
from tidegate.demo.workload import Counters
from tidegate.lake.status import TableStatus
from tidegate.tables import State


def test_a_held_table_whose_rows_are_still_read_is_waited_for() -> None:
    def status(table: str, state: State) -> TableStatus:
        return TableStatus(table, state, applied_ts=1, delta_version=0, reason="")

    statuses = (
        status("shop.read", State.SNAPSHOT),
        status("shop.silent", State.HELD),  # its reader has said nothing for a while
        status("shop.broken", State.HELD),  # for another reason: waiting wouldn't end it
        status("shop.whole", State.ACTIVE),
    )
    waits = frozenset({"shop.read", "shop.silent"})
    found = DemoMoment(0.0, Counters(), None, 1, statuses, [], None, None, waits)
    assert found.lacking == ["shop.read", "shop.silent"]


def test_a_line_names_each_figure() -> None:
    moment = DemoMoment(7.0, Counters(), None, 0, (), [], None, None)
    line = facts_line(moment)
    assert [part.split()[0] for part in line.split("; ")] == ["source", "bronze", "snapshot", "silver"]
    assert "bronze nothing yet" in line
