"""Questions that hang hold few threads, however many there are, and leave nothing behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from tidegate.patience import NoAnswer, NotAsked, Patience


@pytest.fixture
def hangs() -> Iterator[threading.Event]:
    answers = threading.Event()
    yield answers
    answers.set()


def waiting(prefix: str) -> int:
    return sum(thread.name.startswith(f"tidegate-{prefix}") for thread in threading.enumerate())


def test_of_many_questions_without_an_answer_only_some_are_asked(hangs: threading.Event) -> None:
    patience = Patience(0.01, most=3)
    for number in range(50):
        with pytest.raises(NoAnswer) as caught:
            patience.ask(f"hung {number}", hangs.wait)
        assert isinstance(caught.value, NotAsked) is (number >= 3)
    assert waiting("hung") == 3
    with pytest.raises(NoAnswer) as caught:
        patience.ask("hung 0", hangs.wait)
    assert not isinstance(caught.value, NotAsked), "it was asked, and waits for the same answer"
    hangs.set()
    end = time.monotonic() + 30
    while waiting("hung") and time.monotonic() < end:
        time.sleep(0.01)
    assert patience.ask("hung 60", lambda: "an answer", 10) == "an answer"


def test_answers_that_nobody_fetched_are_forgotten(hangs: threading.Event) -> None:
    patience = Patience(0.01)
    for number in range(20):
        with pytest.raises(NoAnswer):
            patience.ask(f"late {number}", hangs.wait, keeps=0.2)
    hangs.set()
    assert patience.ask("late 0", lambda: "anew", 10, keeps=60) is True, "a late answer counts a while"
    time.sleep(0.5)
    assert patience.ask("another", lambda: 1, 10) == 1
    assert len(patience) == 0
