"""Every arrow of a table's life: what step() makes of each standing by each event, over a grid of facts.

In:  nothing.
Out: (state before, event, state after) of all that is possible.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any, Final

from tidegate.remedy import Needs
from tidegate.standing import events as e
from tidegate.standing.causes import Cause
from tidegate.standing.facts import Facts
from tidegate.standing.standing import Place, Standing
from tidegate.standing.step import step
from tidegate.tables import State

CUT: Final = 20
NOW: Final = datetime(2026, 11, 24, tzinfo=UTC)
KNOWN: Final[tuple[dict[str, Any], ...]] = ({}, {"approved_ts": 8}, {"unread": True})
PLACE: Final = Place("s1", "d", "t", "b.000001", 400, 15)


def facts(applied: int = CUT, **said: Any) -> Facts:
    """Of a table that one source feeds, which is where the cut is."""
    known: dict[str, Any] = {
        "written": lambda: applied,
        "reached": lambda: applied,
        "mark": lambda: min(applied, CUT),
        "position": lambda _source: CUT,
        "late": tuple,
        "feeds": lambda: ("s1",),
        "dropped": lambda _at: False,
        "filled": lambda _: None,
        "has_silver": lambda: False,
    }
    return Facts("d.t", CUT, applied=lambda: applied, **(known | said))


def standings() -> Iterator[Standing | None]:
    """One of each kind."""
    yield None
    yield Standing(State.ACTIVE, applied_ts=10)
    yield Standing(State.DROPPED, "dropped at the source", applied_ts=10)
    yield Standing(State.LEFT, "left", applied_ts=10)
    for snapshot in ("a", ""):
        yield Standing(State.SNAPSHOT, "fills", applied_ts=10, snapshot=snapshot)
    for cause, needs in product(Cause, Needs):
        yield waits(cause, needs)
    for source, times, known in product(("", "s1", "s2"), (0, 1), KNOWN):
        yield Standing(State.RELEASED, "goes on", applied_ts=10, times=times, source=source, **known)
    for cause, known in product(Cause, KNOWN[1:]):
        yield replace(waits(cause), **known)


def waits(cause: Cause, needs: Needs = Needs.NOTHING) -> Standing:
    """A held one."""
    return Standing(
        State.HELD, "why", cause, 10, PLACE, needs=needs, fault="", since=NOW,
        times=int(cause is Cause.WRITE_FAILED), partner="d.u" * (cause is Cause.WAITS_WITH),
    )  # fmt: skip


def events() -> Iterator[e.Event]:
    """One of each kind, or more where a field decides."""
    for cause in Cause:
        yield (
            e.Refused(cause, "why", PLACE, partner="d.u" * (cause is Cause.WAITS_WITH))
            if (cause is not Cause.WRITE_FAILED)
            else e.NotWritten("why")
        )
    yield e.SilverOlder(5, "why")
    yield from (e.SentBelow("why"), e.SentBelow("why", unread=True), e.Emptied(12), e.Emptied(12, "s1"))
    yield from (e.PartnerGoesOn(), e.PauseOver(NOW), e.PauseOver(NOW + timedelta(days=2)), e.Released(), e.Answered())
    for state in (State.RELEASED, State.HELD, State.LEFT):
        yield e.Selected(state, 10, "the pipeline file")
    for source in ("s1", "s2"):
        yield from (e.SourceStalls(source, "why"), e.SourceMeets(source), e.SourceBack(source))
        yield e.FlowsIn(source, "d.t_1")
    yield from (e.WaveBegins("b", 12), e.ShardBegins(), e.SnapshotLost("why"), e.Whole(CUT), e.ShardsLack("why", CUT))
    yield from (e.CutReached(5, CUT), e.CutReached(CUT, 30), e.CaughtUp(15), e.CaughtUp(CUT))
    yield from (e.RowsGone("why", PLACE), e.LoggedAgain("why"))


def grounds() -> Iterator[Facts]:
    """What may be so of the table."""
    for applied, dropped in product((10, CUT, 40), (False, True)):
        yield facts(applied, dropped=lambda _at, gone=dropped: gone)
    yield facts(filled=lambda _: ("a", 9))
    yield facts(has_silver=lambda: True)
    yield facts(feeds=lambda: ("s1", "s2"))
    yield facts(late=lambda: ("s1",))
    yield facts(position=lambda _source: 5)


def arrows() -> set[tuple[State, str, State]]:
    """State of one of which nothing was said: active."""
    possible = set()
    for before, event, ground in product(list(standings()), list(events()), list(grounds())):
        after = step(before, event, ground).standing
        was, is_now = (one.state if one is not None else State.ACTIVE for one in (before, after))
        if was is not is_now:
            possible.add((was, type(event).__name__, is_now))
    return possible
