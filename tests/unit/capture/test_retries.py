"""A source that fails is asked again until the run ends; one that gives the same answer for minutes is for a person."""

from __future__ import annotations

import time

import pytest

from tidegate.capture.retries import Retries
from tidegate.errors import SourceRefused, SourceUnavailable, SourceUnwilling

KEYS = SourceUnwilling("Could not decrypt binlog", where="db", remedy="see its error log")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(time, "monotonic", found.monotonic)
    return found


def test_the_same_answer_for_minutes_is_a_refusal(clock: Clock) -> None:
    retries, waited = Retries(clock.now + 600), 0.0
    while waited < 180:
        wait = retries.wait_seconds(KEYS, heard=False)
        waited, clock.now = waited + wait, clock.now + wait
    with pytest.raises(SourceRefused, match=r"Could not decrypt binlog \(the server's answer \d+ times in 3 minutes\)"):
        retries.wait_seconds(KEYS, heard=False)


def test_a_network_that_is_down_or_other_answers_are_not(clock: Clock) -> None:
    retries = Retries(clock.now + 600)
    failures = [KEYS, SourceUnavailable("connection refused"), SourceUnwilling("memory"), KEYS]
    for number in range(110):
        clock.now += retries.wait_seconds(failures[number // 30 % 4], heard=False)
    clock.now += 300
    with pytest.raises(SourceUnwilling) as caught:
        retries.wait_seconds(failures[2], heard=False)
    assert caught.value is failures[2], "at the run's end, as it is"
    retries = Retries(clock.now + 600)
    for _ in range(100):
        clock.now += retries.wait_seconds(KEYS, heard=True)  # a server that sends is not stuck
        clock.now += 1
