"""Which reading of the source's clock a heartbeat proves."""

from __future__ import annotations

import pytest

from tidegate.config import DumpMode, Flavour
from tidegate.mysql.stream.quiet import LogEnd, Quiet


def test_a_heartbeat_proves_the_last_reading_well_before_it_left() -> None:
    quiet = Quiet(1.0)
    quiet.came(10.0)
    quiet.read(1_000, 10.25)
    quiet.read(1_250, 10.5)
    quiet.read(1_900, 10.9)  # it may have left by then
    assert quiet.heartbeat(11.0, at_end=True) == 1_250
    assert quiet.heartbeat(12.0, at_end=True) is None, "nothing was read since"


def test_a_heartbeat_that_waited_on_the_way_with_what_came_before_it_proves_nothing() -> None:
    quiet = Quiet(1.0)
    quiet.came(10.0)
    quiet.read(1_000, 10.7)
    assert quiet.heartbeat(10.75, at_end=True) is None
    assert quiet.heartbeat(11.0, at_end=True) == 1_000, "those between them are counted from the first one"


def test_one_that_comes_late_proves_no_later_reading() -> None:
    quiet = Quiet(1.0)
    quiet.came(10.0)
    quiet.read(500, 10.5)
    for at in range(11, 16):
        assert not quiet.wants_clock(at)
        quiet.read(at * 1_000, at)
    assert quiet.heartbeat(16.0, at_end=True) == 500


@pytest.mark.parametrize("reads", [(), (10.5,)])
def test_one_amid_the_log_proves_nothing(reads: tuple[float, ...]) -> None:
    quiet = Quiet(1.0)
    quiet.came(10.0)
    for at in reads:
        quiet.read(1, at)
    assert quiet.heartbeat(11.0, at_end=False) is None
    assert quiet.wants_clock(11.1)


def test_before_the_first_message_nothing_is_proved() -> None:
    quiet = Quiet(1.0)
    quiet.read(1, 10.0)
    assert quiet.heartbeat(11.0, at_end=True) is None


def test_the_clock_is_looked_at_soon_until_a_reading_is_kept() -> None:
    """A far server's answer takes long: what is left of the period must do for it."""
    quiet = Quiet(0.5)
    quiet.came(10.0)
    assert quiet.wait_seconds(10.0) < 0.1
    quiet.read(1, 10.3)
    assert quiet.wait_seconds(10.31) > 1
    assert quiet.heartbeat(10.5, at_end=True) == 1


def test_two_heartbeats_of_one_place_that_come_at_once_are_not_at_the_logs_end() -> None:
    """MySQL sends both while it passes over events."""
    end = LogEnd(100, Flavour.MYSQL, DumpMode.GTID)
    for _ in range(2):
        end.note("log.1", 700, 100, took=False)
    end.stand(100)
    assert end.take(100) is False
    end.note("log.1", 700, 100, took=False)
    assert end.take(100) is True


@pytest.mark.parametrize(("flavour", "dump"), [(Flavour.MARIADB, DumpMode.GTID), (Flavour.MYSQL, DumpMode.POSITION)])
def test_other_servers_send_heartbeats_at_their_logs_end_alone(flavour: Flavour, dump: DumpMode) -> None:
    end = LogEnd(100, flavour, dump)
    assert end.take(100) is None
    end.note("log.1", 700, 100, took=False)
    end.stand(700)
    assert end.take(700) is True
    end.note("log.1", 900, 800, took=True)
    end.stand(800)
    assert end.take(850) is None, "events came after it"


def test_an_events_end_is_the_logs_end() -> None:
    end = LogEnd(100, Flavour.MYSQL, DumpMode.GTID)
    end.note("log.1", 300, (1 << 32) + 300, took=True)
    end.stand((1 << 32) + 300)
    assert end.take((1 << 32) + 300) is True
    end.note("log.1", 900, (1 << 32) + 500, took=True)
    assert end.take((1 << 32) + 300) is False, "it has passed over events up to there"
