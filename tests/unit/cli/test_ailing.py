"""A part of Airflow that ended is said once, after a while, and once more when it is back."""

from __future__ import annotations

from tidegate.limits import UP_AILING_SECONDS
from tidegate.local.ailing import Ailing


def test_a_part_is_named_once_it_has_been_silent_for_long() -> None:
    watched = Ailing("a.log")
    assert not [*watched.look([], 0.0)]
    assert not [*watched.look(["scheduler", "triggerer"], 10.0)]
    assert not [*watched.look(["scheduler"], 9.0 + UP_AILING_SECONDS)]
    assert not [*watched.look(["scheduler", "triggerer"], 9.5 + UP_AILING_SECONDS)], "the triggerer had come back"
    (line,) = watched.look(["scheduler", "triggerer"], 10.0 + UP_AILING_SECONDS)
    assert "scheduler hasn't answered for 120 s" in line
    assert "a.log" in line
    assert not [*watched.look(["scheduler"], 50.0 + UP_AILING_SECONDS)]
    assert [*watched.look([], 60.0 + UP_AILING_SECONDS)] == ["Airflow's scheduler answers again"]
    assert not [*watched.look(["scheduler"], 70.0 + UP_AILING_SECONDS)], "counted anew"
