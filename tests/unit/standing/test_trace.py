"""What an event makes of a table is what the code before `step` made of it, for each call that was recorded.

In:  pairs.jsonl: calls of commit 49767fd5 while its tests ran, numbers as ranks, words left out. Its tests had
     no table whose partner goes on: those pairs say what its release_with_partners does.
Out: per kind of event, the pairs that differ, by their line.

Where rules were meant to become others the trace has no pair, so each is a test of its own (test_step.py): the first
cause counts, a held table isn't sent below, a gate stays when rows go. What a table is known for was the cause of a
released one then, and was lost when it came to wait again: `_now` says it as it is said now.

The old code made a table active at the end of its snapshot without a look at silver; those pairs say it isn't ahead.
Nor did it ask whether a source is behind when a table had caught up: none is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from tidegate.remedy import Needs
from tidegate.standing import events
from tidegate.standing.causes import Cause
from tidegate.standing.facts import Facts
from tidegate.standing.standing import Place, Standing
from tidegate.standing.step import RULES, pause, step
from tidegate.tables import State

PAIRS: Final = Path(__file__).with_name("pairs.jsonl")
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE: Final = timedelta(minutes=1)
NOT_RECORDED: Final = frozenset({"reason", "what", "why", "pipeline"})  # words for people
# A window's first word about a table counts: who has left it meets these no more (standings.meet).
LEAVE_THE_WINDOW: Final = frozenset({"Refused", "SentBelow", "SnapshotLost"})

Pair = Mapping[str, Any]
_WORDS: Final = ("fault", "partner", "source", "snapshot")


def _pairs() -> dict[str, list[tuple[int, Pair]]]:
    pairs: dict[str, list[tuple[int, Pair]]] = {}
    for number, line in enumerate(PAIRS.read_text().splitlines(), 1):
        pair = json.loads(line)
        pairs.setdefault(pair["event"], []).append((number, pair))
    return pairs


def _place(value: Mapping[str, Any] | None) -> Place | None:
    return value and Place("s", "d", "t", "binlog.000001" if value["file"] else "", 4, value["at_ts"])


def _standing(value: Mapping[str, Any] | None, since: datetime | None = None) -> Standing | None:
    if value is None:
        return None
    return Standing(
        State(value["state"]),
        "because",
        Cause(value["cause"]) if "cause" in value else None,
        value["applied_ts"],
        _place(value.get("place")),
        needs=Needs(value.get("needs", Needs.NOTHING)),
        since=since,
        **{key: value[key] for key in (*_WORDS, "times", "approved_ts", "unread") if key in value},
    )


def _shown(standing: Standing | None) -> dict[str, Any] | None:
    """As the trace has it."""
    if standing is None:
        return None
    place = standing.place and {"at_ts": standing.place.at_ts, "file": bool(standing.place.file)}
    value = {
        "state": str(standing.state),
        "applied_ts": standing.applied_ts,
        "place": place,
        "cause": str(standing.cause) if standing.cause is not None else "",
        "fault": standing.fault,
        "needs": "" if standing.needs is Needs.NOTHING else str(standing.needs),
        "partner": standing.partner,
        "times": standing.times,
        "source": standing.source,
        "snapshot": standing.snapshot,
        "approved_ts": standing.approved_ts,
        "unread": standing.unread,
    }
    return {key: item for key, item in value.items() if key == "applied_ts" or item}


def _now(value: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A standing of the trace in today's words."""
    if value is None or value["state"] != "released":
        return value and dict(value)
    known = {"ddl_asks": {"approved_ts": (value.get("place") or {}).get("at_ts")}, "ddl_not_read": {"unread": True}}
    return {key: item for key, item in value.items() if key != "cause"} | known.get(value.get("cause", ""), {})


def _wanted(pair: Pair) -> dict[str, Any] | None:
    """What is known of a table stays known of it while it waits."""
    before, after = _now(pair["before"]), _now(pair["after"])
    if before is None or after is None or after["state"] != "held":
        return after
    return after | {key: before[key] for key in ("approved_ts", "unread") if key in before}


def _since(pair: Pair) -> datetime | None:
    """When a table came to wait, for a pause that is over, or isn't, at NOW."""
    if pair["event"] != "PauseOver" or not pair["fields"].get("since"):
        return None
    waited = pause(pair["before"].get("times", 1))
    return NOW - waited if pair["fields"].get("over") else NOW - waited + MINUTE


def _event(pair: Pair) -> events.Event:
    kind, fields = getattr(events, pair["event"]), dict(pair["fields"])
    if kind is events.PauseOver:
        return events.PauseOver(NOW)
    types = {"cause": Cause, "needs": Needs, "state": State, "place": _place}
    made = {key: types.get(key, lambda item: item)(item) for key, item in fields.items()}
    made |= dict.fromkeys(NOT_RECORDED & kind.__dataclass_fields__.keys(), "because")
    return kind(**made)


def _facts(pair: Pair) -> Facts:
    recorded = pair["facts"]

    def of(fact: str) -> Any:
        if (pair["event"], fact) == ("CaughtUp", "late"):
            return ()
        assert fact in recorded, f"{pair['event']} asks for {fact}, which the old code didn't"
        return recorded[fact]

    def dropped(at_ts: int) -> bool:
        asked_ts, value = of("dropped")
        assert asked_ts == at_ts, f"dropped is asked at {at_ts}; the old code asked at {asked_ts}"
        return bool(value)

    class _Lazy(Facts):
        """cut_ts is a value there; here it is asked for like the others."""

        __slots__ = ()

        def __getattribute__(self, name: str) -> Any:
            return of("cut_ts") if name == "cut_ts" else super().__getattribute__(name)

    return _Lazy(
        "t", 0,
        applied=lambda: of("applied"), written=lambda: of("written"), reached=lambda: of("applied"),
        mark=lambda: of("mark"), position=lambda _: of("position"), late=lambda: of("late"),
        feeds=lambda: of("feeds"), dropped=dropped,
        filled=lambda _: of("filled") and (of("filled"), 0), has_silver=lambda: of("has_silver"),
    )  # fmt: skip


def _made(pair: Pair) -> Any:
    if pair.get("decided") and pair["event"] in LEAVE_THE_WINDOW:
        return _now(pair["before"])
    try:
        return _shown(step(_standing(_now(pair["before"]), _since(pair)), _event(pair), _facts(pair)).standing)
    except AssertionError as error:
        return str(error)


@pytest.mark.parametrize("event", sorted(_pairs()))
def test_a_step_makes_of_a_table_what_the_old_code_made_of_it(event: str) -> None:
    differ = []
    for number, pair in _pairs()[event]:
        wanted, made = _wanted(pair), _made(pair)
        if made != wanted:
            differ.append(
                f"line {number}: {json.dumps(pair)}\n  step: {json.dumps(made)}\n  wanted: {json.dumps(wanted)}"
            )
    assert not differ, "\n".join([f"{len(differ)} differ", *differ])


def test_the_trace_names_only_events_that_have_a_rule() -> None:
    assert _pairs().keys() <= {kind.__name__ for kind in RULES}
