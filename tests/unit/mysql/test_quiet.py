"""Which reading of the source's clock a heartbeat proves."""

from __future__ import annotations

import pytest

from tidegate.mysql.stream.quiet import Quiet


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
