"""What the demo waits for before it compares."""

from __future__ import annotations

from tidegate.demo.progress import DemoMoment, facts_line
from tidegate.demo.run import covers
from tidegate.demo.workload import Counters
from tidegate.lake.figures.status import SourceStatus, TableStatus
from tidegate.position import MariadbGtidPosition
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


def test_a_line_fits_a_terminal_and_says_what_there_is() -> None:
    moment = DemoMoment(7.0, Counters(), None, 0, (), [], None, None)
    assert facts_line(moment) == "", "nothing but the phase before capture begins"
    source = SourceStatus("shop", 9, 9, 1, 100, 0, "binlog.000001", 4, "0-1-5")
    statuses = (TableStatus("shop.broken", State.HELD, applied_ts=1, delta_version=0, reason=""),)
    moment = DemoMoment(7.0, Counters(committed=2428), source, 1, statuses, [], 0.3, 1.44)
    line = facts_line(moment)
    assert line == ": 2,428 transactions; bronze 0.3 s behind; silver 1 tables, 1.4 s behind, held: shop.broken"
    assert len(f"   74 s  the shop is open{line}") <= 120


def test_a_source_whose_log_is_empty_is_not_covered_before_the_first_cut() -> None:
    wanted = MariadbGtidPosition.parse("0-1-5")
    source = SourceStatus("shop", 9, 9, 1, 100, 0, "binlog.000001", 4, "0-1-5")
    for cut_ts in (0, 100):
        moment = DemoMoment(1.0, Counters(), source, cut_ts, (), [], None, None)
        assert covers(moment, wanted) == bool(cut_ts), "nothing is in silver, though the source has no later change"
