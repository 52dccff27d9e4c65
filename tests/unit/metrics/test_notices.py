"""What is told: each beginning once, each end once, nothing of what blinks, and one message for many tables."""

from __future__ import annotations

import json
import random

from tests.support.pipeline_views import pipeline
from tidegate.config import Alert
from tidegate.limits import (
    ALERT_KEPT_TABLES_MAX,
    ALERT_NAMED_TABLES_MAX,
    ALERT_OVER_SECONDS,
    ALERT_TEXT_CHARACTERS_MAX,
)
from tidegate.metrics.notices import AlertChange, Notices, message
from tidegate.metrics.rules import RULES, LookSays

HELD, DOWN, DIFFERS = Alert.TABLES_HELD, Alert.SOURCE_DOWN, Alert.VERIFICATION_DIFFERS
LOOK = 30.0


class Looks:
    """Look after look; what was kept is given through JSON whenever it begins anew."""

    def __init__(self) -> None:
        self.notices, self.now = Notices(pipeline()), 1000.0

    def again(self) -> None:
        self.notices = Notices(pipeline(), json.loads(json.dumps(self.notices.kept)))

    def look(self, *tables: str, alert: Alert = DIFFERS, known: frozenset[str] | None = None) -> list[AlertChange]:
        self.now += LOOK
        every = {each: LookSays({}, None) for each in Alert}
        return self.notices.take_in(every | {alert: LookSays(dict.fromkeys(tables, ""), known)}, self.now)

    def until(self, seconds: float, *tables: str, alert: Alert = DIFFERS) -> list[AlertChange]:
        changes: list[AlertChange] = []
        end = self.now + seconds
        while self.now < end:
            changes += self.look(*tables, alert=alert)
        return changes


def told(changes: list[AlertChange]) -> list[tuple[bool, int, tuple[str, ...]]]:
    return [(change.began, change.count, change.names) for change in changes]


def test_a_beginning_and_an_end_are_told_once_each() -> None:
    looks = Looks()
    assert told(looks.look("a.b")) == [(True, 1, ("a.b",))]
    assert looks.until(3600, "a.b") == []
    assert told(looks.until(ALERT_OVER_SECONDS + 3 * LOOK)) == [(False, 1, ("a.b",))]
    assert looks.until(3600) == []
    assert looks.notices.kept == {}


def test_what_began_before_a_restart_isnt_told_again_and_its_end_is() -> None:
    looks = Looks()
    looks.look("a.b")
    looks.again()
    assert looks.until(600, "a.b") == []
    looks.again()
    assert told(looks.until(600)) == [(False, 1, ("a.b",))]


def test_an_alert_begins_when_it_has_been_so_for_its_time() -> None:
    looks = Looks()
    wait = RULES[HELD].for_seconds
    assert looks.until(wait - LOOK, "a.b", alert=HELD) == []
    assert told(looks.until(4 * LOOK, "a.b", alert=HELD)) == [(True, 1, ("a.b",))]


def test_what_blinks_makes_no_message_before_it_begins_and_none_after() -> None:
    looks = Looks()
    wait = RULES[HELD].for_seconds
    for _ in range(10):  # so for less than its time, again and again
        assert looks.until(wait - 2 * LOOK, "a.b", alert=HELD) == []
        assert looks.look(alert=HELD) == []
    assert told(looks.until(wait + 2 * LOOK, "a.b", alert=HELD)) == [(True, 1, ("a.b",))]
    for _ in range(10):  # not so for less than an end takes
        assert looks.until(ALERT_OVER_SECONDS - LOOK, alert=HELD) == []
        assert looks.look("a.b", alert=HELD) == []
    assert told(looks.until(ALERT_OVER_SECONDS + 3 * LOOK, alert=HELD)) == [(False, 1, ("a.b",))]


def test_beginnings_and_ends_come_in_pairs_whatever_flaps_and_whenever_it_starts_anew() -> None:
    chance = random.Random(7)
    for _ in range(20):
        looks, open_ones = Looks(), set[str]()
        so: set[str] = set()
        for _ in range(300):
            so ^= {f"t.{chance.randrange(8)}"} if chance.random() < 0.3 else set()
            if chance.random() < 0.05:
                looks.again()
            for change in looks.look(*so):
                assert not open_ones & set(change.names) if change.began else open_ones >= set(change.names)
                open_ones ^= set(change.names)
        looks.until(ALERT_OVER_SECONDS + 2 * LOOK, *so)
        assert set(looks.notices.kept.get(str(DIFFERS), {"names": []})["names"]) == so


def test_a_look_that_knows_nothing_begins_and_ends_nothing() -> None:
    looks = Looks()
    looks.until(600, "eu", alert=DOWN)
    for _ in range(100):
        assert looks.look(alert=DOWN, known=frozenset()) == []
    assert told(looks.until(600, alert=DOWN)) == [(False, 1, ("eu",))]


def test_a_source_that_has_left_the_pipeline_has_no_alert_any_more() -> None:
    kept = {str(DOWN): {"names": ["eu", "gone"], "more": 0}}
    looks = Looks()
    looks.notices = Notices(pipeline(), kept)
    changes: list[AlertChange] = []
    for _ in range(20):
        changes += looks.look(alert=DOWN, known=frozenset())
    assert told(changes) == [(False, 1, ("gone",))]


def test_many_tables_at_once_are_one_message_that_names_some() -> None:
    looks = Looks()
    (change,) = looks.look(*(f"shop.t{number:03}" for number in range(500)))
    assert (change.count, len(change.names)) == (500, ALERT_NAMED_TABLES_MAX)
    assert change.line.startswith("Tables differ from the source (500): shop.t000, shop.t001, ")
    assert ", 490 more. `tidegate verify shop`" in change.line
    sent = message("shop", [change.plain()])
    assert sent["subject"] == "shop: Tables differ from the source"
    assert sent["text"].count("\n") == 1
    assert sent["severity"] == "critical"


def test_what_is_kept_is_bounded_and_what_is_beyond_is_counted() -> None:
    looks = Looks()
    tables = [f"shop.t{number:05}" for number in range(5000)]
    assert told(looks.look(*tables))[0][:2] == (True, 5000)
    kept = looks.notices.kept[str(DIFFERS)]
    assert (len(kept["names"]), kept["more"]) == (ALERT_KEPT_TABLES_MAX, 5000 - ALERT_KEPT_TABLES_MAX)
    looks.again()
    assert looks.until(600, *tables) == [], "those beyond aren't told again"
    assert told(looks.look(*tables, "shop.new")) == [(True, 1, ())]
    # A look that knows nothing, right after a restart.
    looks.again()
    assert looks.look(known=frozenset()) == []
    assert looks.until(600, *tables, "shop.new") == []
    ended = looks.until(600, *tables[:500])
    assert sum(change.count for change in ended) == 4501
    assert not any(change.began for change in ended)
    assert looks.notices.kept[str(DIFFERS)] == {"names": tables[:500], "more": 0}
    assert sum(change.count for change in looks.until(600)) == 500
    assert looks.notices.kept == {}


def test_an_alert_that_is_left_out_is_forgotten_without_a_word() -> None:
    looks = Looks()
    looks.look("a.b")
    assert looks.notices.take_in({}, looks.now) == []
    assert looks.notices.kept == {}


def test_the_gravest_comes_first_and_a_message_is_bounded() -> None:
    looks = Looks()
    said = {each: LookSays({}, None) for each in Alert}
    said |= {DIFFERS: LookSays({"a.b": ""}, None), HELD: LookSays({"a.c": "parked"}, None)}
    looks.notices.take_in(said, 0.0)
    changes = looks.notices.take_in(said, 1e6)
    assert [change.alert for change in changes] == [HELD], "the other one was told by the first look"
    assert changes[0].line.startswith("Tables are held: a.c (parked). `tidegate status shop`")
    many = [change.plain() for change in changes] * 1000
    sent = message("shop", many)
    assert len(sent["text"]) < ALERT_TEXT_CHARACTERS_MAX + 100
    assert sent["text"].endswith("more messages\n")
    over = message("shop", [changes[0].plain() | {"began": False}])
    assert (over["subject"], over["severity"]) == ("shop: over: Tables are held", "info")


def test_one_source_is_told_in_a_sentence() -> None:
    looks = Looks()
    every = {each: LookSays({}, None) for each in Alert} | {DOWN: LookSays({"eu": "eu doesn't answer"}, None)}
    looks.notices.take_in(every, 0.0)
    (change,) = looks.notices.take_in(every, 1e4)
    assert change.line == "eu doesn't answer. `tidegate check shop` says why."
