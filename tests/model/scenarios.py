"""Bounds of the model of tables' lives, and rules that are taken out of it.

In:  nothing.
Out: SMALL, LARGE: bounds, each of which brings some features together; MUTATIONS: per name what replaces a rule, a
     guard of one, or what a step decides; without(): the model without one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from tests.model import asked, planning, publishing
from tests.model.world import Bounds
from tidegate.lake.standing.from_bronze import FromBronze
from tidegate.merge.follow import LeftAt
from tidegate.standing import events as e
from tidegate.standing import step as rules
from tidegate.standing.standing import Standing
from tidegate.standing.step import Step
from tidegate.tables import State as Is

_TWO: Final = ((0, 0), (1, 1))
_SHARDS: Final = ((0, 0), (1, 0))
_ONE: Final = ((0, 0), (0, 0))
_PAIR: Final = ((0, 0), (0, 1))
_BOTH: Final = ((True, True), (True, True))

SMALL: Final = (
    Bounds("causes", kinds=("CRSTXEPA",), kills=1),
    Bounds("ask", ops=(4,), kinds=("CRSTA",), specials=2, policy="ask"),
    Bounds("ask twice", ops=(3,), kinds=("CRAX",), specials=2, policy="ask", kills=1),
    Bounds("stop", ops=(4,), kinds=("CRDA",), policy="stop", kills=1),
    Bounds("unlogged", ops=(4,), kinds=("CRTUL",), kills=1),
    Bounds("fails", fails=2, kills=1),
    Bounds("joins", kinds=("CRDS",), toggles=((0,), ()), changes=2, kills=1),
    Bounds("joins, unread", kinds=("CRTXEP",), toggles=((0,), ()), changes=2),
    Bounds("joins late", keeps=((False,), (True,)), kinds=("CRDS",), toggles=((0,), ()), changes=1, kills=1),
    Bounds(
        "joins, short", ops=(2,), kinds=("CS",), keeps=((False,), (True,)), toggles=((0,), ()), changes=3,
        forgets=True,
    ),
    Bounds("given back", ops=(3,), kinds=("CRT",), gives=2, kills=1),
    Bounds("half a window", ops=(4,), kinds=("CRT",), gives=1, kills=1, halves=True),
    Bounds("half a window, joins", ops=(4,), kinds=("CRT",), toggles=((0,), ()), changes=2, kills=1, halves=True),
    Bounds(
        "half a window, marks", _PAIR, (3, 1), ("CRT", "C"), keeps=((True, True), (True,)), toggles=((0,), ()),
        changes=2, kills=1, halves=True, keeps_deleted=True, is_followed=False,
    ),
    Bounds(
        "given back, stall", _TWO, (1, 2), ("C", "CR"), lags=(1,), keeps=_BOTH, stalls=1, gives=1, is_followed=False
    ),
    Bounds("stall", _TWO, (1, 2), ("C", "CR"), lags=(1,), keeps=_BOTH, stalls=1, kills=1),
    Bounds("stall, dropped", _TWO, (1, 3), ("C", "CRD"), lags=(1,), keeps=_BOTH, stalls=1),
    Bounds(
        "source joins", _TWO, (1, 2), ("C", "CRD"), lags=(1,), keeps=((True, True), (True, False)),
        toggles=((), (1,)), changes=2,
    ),
    Bounds("routed", _SHARDS, (2, 2), ("CR", "CRD"), lags=(1,), keeps=((True,), (True, True)), stalls=1),
    Bounds(
        "routed, killed", _SHARDS, (2, 2), ("CR", "CR"), lags=(1,), keeps=((True,), (True, True)), stalls=1, kills=1
    ),
    Bounds(
        "routed, given back", _SHARDS, (2, 2), ("CR", "CR"), lags=(1,), keeps=((True,), (True, True)), stalls=1,
        gives=1, is_followed=False,
    ),
    Bounds(
        "stall twice", ((0, 0), (1, 0), (2, 1)), (2, 1, 0), ("CR", "C", ""), lags=(0, 1),
        keeps=((True, True), (True, True, True)), stalls=2, is_followed=False,
    ),
    Bounds("rename", _PAIR, (3, 1), ("CRG", "CR"), keeps=((True, True), (True,)), kills=1),
    Bounds("rename, held", _PAIR, (3, 1), ("CEG", "C"), specials=2, keeps=((True, True), (True,)), kills=1),
    Bounds("shards", _ONE, (2, 1), ("CST", "C"), snaps=1, kills=1, is_followed=False),
    Bounds(
        "shards, joins", _SHARDS, (1, 2), ("C", "CR"), keeps=((True,), (True, True)), toggles=((), (1,)), changes=2,
        snaps=1, is_followed=False,
    ),
    Bounds("shards, put back", _ONE, (1, 1), ("C", "C"), snaps=2, losses=1, kills=1),
    Bounds("put back", ops=(4,), kinds=("CRDS",), kills=1, losses=1),
    Bounds("put back, released", ops=(4,), kinds=("CRET",), kills=1, losses=1, is_followed=False),
    Bounds("snapshot", ops=(3,), kinds=("CRS",), snaps=1, kills=1),
    Bounds("snapshot, emptied", ops=(4,), kinds=("CSTD",), snaps=2, cancels=1),
    Bounds("snapshot, held", ops=(4,), kinds=("CSED",), specials=2, snaps=1, kills=1, is_followed=False),
    Bounds("swap", _PAIR, (3, 1), ("CRW", "CR"), keeps=((True, True), (True,)), kills=1),
    Bounds(
        "rename, snapshot", _PAIR, (3, 0), ("CSG", ""), specials=2, keeps=((True, True), (True,)), snaps=1, kills=1,
        is_followed=False,
    ),
    Bounds(
        "rename, begun anew", _PAIR, (4, 0), ("CSG", ""), specials=2, keeps=((True, True), (True,)), snaps=1,
        is_followed=False,
    ),
    Bounds(
        "swap, snapshot", _PAIR, (3, 1), ("CSW", "C"), specials=2, keeps=((True, True), (True,)), snaps=1,
        is_followed=False,
    ),
)  # fmt: skip
LARGE: Final = (
    Bounds("shards, long", _ONE, (3, 1), ("CRSTD", "C"), snaps=1, kills=1, is_followed=False),
    Bounds("shards, put back, long", _ONE, (2, 1), ("CR", "C"), snaps=2, losses=1, kills=1, is_followed=False),
    Bounds(
        "shards, stall", _SHARDS, (2, 2), ("CS", "CT"), lags=(1,), keeps=((True,), (True, True)), stalls=1, snaps=1,
        is_followed=False,
    ),
    Bounds(
        "routed, given back, killed", _SHARDS, (2, 2), ("CR", "CR"), lags=(1,), keeps=((True,), (True, True)), stalls=1,
        gives=1, kills=1,
    ),
    Bounds(
        "routed, fails", _SHARDS, (3, 2), ("CR", "CR"), lags=(1,), keeps=((True,), (True, True)), stalls=1, fails=1
    ),
    Bounds(
        "half a window, routed", _SHARDS, (1, 3), ("C", "CRT"), lags=(1,), keeps=((True,), (True, True)), stalls=1,
        kills=1, halves=True, is_followed=False,
    ),
    Bounds(
        "half a window, stall", _TWO, (1, 3), ("C", "CRT"), lags=(1,), keeps=_BOTH, stalls=1, kills=1, halves=True,
        is_followed=False,
    ),
    Bounds("causes, long", ops=(4,), kinds=("CRSTXEPAD",), specials=2, kills=2),
    Bounds("joins, long", ops=(4,), kinds=("CRDSTX",), toggles=((0,), ()), changes=2, fails=1, kills=1),
    Bounds("stall, long", _TWO, (2, 3), ("CR", "CRD"), lags=(1,), keeps=_BOTH, stalls=1, kills=1),
    Bounds(
        "swap, snapshot, killed",
        _PAIR,
        (3, 1),
        ("CSW", "C"),
        specials=2,
        keeps=((True, True), (True,)),
        snaps=1,
        kills=1,
    ),
    Bounds("rename, unread", _PAIR, (4, 1), ("CXGT", "C"), specials=2, keeps=((True, True), (True,))),
    Bounds("rename, long", _PAIR, (4, 2), ("CRGXT", "CRT"), specials=2, keeps=((True, True), (True,)), kills=1),
)  # fmt: skip


def _stays(before: Standing | None, _: Any, __: Any) -> Step:
    return Step(before)


def _refused_again(before: Standing | None, event: e.Refused, facts: Any) -> Step:
    return rules._refused(None, event, facts)


def _cut_at_once(before: Standing | None, event: e.CutReached, facts: Any) -> Step:
    if rules.is_in(before, Is.RELEASED):
        return Step(Standing(Is.ACTIVE, applied_ts=event.upto_ts))
    return rules._cut_reached(before, event, facts)


def _caught_up_below(before: Standing | None, event: e.CaughtUp, facts: Any) -> Step:
    if before is None or before.state is not Is.RELEASED:
        return Step(before)
    return Step(rules._at_the_cut(before, facts, event.upto_ts))


def _emptied_at(before: Standing | None, event: e.Emptied, facts: Any) -> Step:
    return rules._emptied(before, replace(event, at_ts=event.at_ts + 1), facts)


def _released_anyhow(before: Standing | None, event: e.Released, _: Any) -> Step:
    assert before is not None, "held"
    return Step(Standing(Is.RELEASED, applied_ts=before.applied_ts))


def _below_keeps_source(before: Standing | None, event: e.SentBelow, facts: Any) -> Step:
    done = rules._sent_below(before, event, facts)
    known = before.source if before is not None else ""
    return Step(replace(done.standing, source=known) if done.standing is not None and known else done.standing)


def _below_anyway(before: Standing | None, event: e.SentBelow, facts: Any) -> Step:
    return Step(Standing(Is.RELEASED, applied_ts=facts.applied()))


def _back_whatever(before: Standing | None, event: e.SourceBack, facts: Any) -> Step:
    if before is None or before.state is not Is.RELEASED:
        return Step(before)
    return Step(rules._at_the_cut(before, facts, facts.cut_ts))


def _stalls_with_all(before: Standing | None, event: e.SourceStalls, facts: Any) -> Step:
    return Step(Standing(Is.RELEASED, applied_ts=facts.cut_ts, source=event.source))


def _caught_up_late(before: Standing | None, event: e.CaughtUp, facts: Any) -> Step:
    return rules._caught_up(before, event, replace(facts, late=tuple))


def _meets_waiting(before: Standing | None, event: e.SourceMeets, facts: Any) -> Step:
    return Step(before) if rules.is_in(before, Is.HELD, Is.RELEASED) else rules._source_meets(before, event, facts)


def _at_the_cut_ahead(_: Any, facts: Any, upto_ts: int) -> Standing:
    return rules._gone(upto_ts) if facts.dropped(upto_ts) else rules._rests(facts, upto_ts)


def _without_statements(facts: Any) -> Any:
    return replace(facts, reached=facts.applied)


_REACHES, _AHEAD = rules._reaches, rules._ahead
RULES: Final[dict[str, tuple[type, Callable[..., Step]]]] = {
    f"no {event.__name__}": (event, _stays) for event in rules.RULES
} | {
    "the last cause counts": (e.Refused, _refused_again),
    "at the cut without a look": (e.CutReached, _cut_at_once),
    "caught up anywhere": (e.CaughtUp, _caught_up_below),
    "emptied behind the version": (e.Emptied, _emptied_at),
    "a release forgets": (e.Released, _released_anyhow),
    "below, and with its source": (e.SentBelow, _below_keeps_source),
    "sent below though held": (e.SentBelow, _below_anyway),
    "any source back": (e.SourceBack, _back_whatever),
    "stalls with all": (e.SourceStalls, _stalls_with_all),
    "caught up, a source late": (e.CaughtUp, _caught_up_late),
    "a new source of who waits": (e.SourceMeets, _meets_waiting),
}
GUARDS: Final[dict[str, tuple[str, Callable[..., Any]]]] = {
    "reaches: always": ("_reaches", lambda *_: True),
    "reaches: silver ahead": ("_reaches", lambda event, facts: event.low_ts <= facts.mark() <= event.upto_ts),
    "reaches: a source late": (
        "_reaches",
        lambda event, facts: bool(facts.feeds()) and event.low_ts <= facts.mark() <= event.upto_ts
        and facts.applied() <= event.upto_ts and (facts.mark() < event.upto_ts or facts.written() >= facts.mark()),
    ),
    "reaches: emptied right behind": (
        "_reaches",
        lambda event, facts: bool(facts.feeds()) and not facts.late()
        and event.low_ts <= facts.mark() <= event.upto_ts and facts.applied() <= event.upto_ts,
    ),
    "reaches: a statement ahead": ("_reaches", lambda event, facts: _REACHES(event, _without_statements(facts))),
    "at the cut: silver ahead": ("_at_the_cut", _at_the_cut_ahead),
    "at the cut: a statement ahead": ("_ahead", lambda facts, cut_ts: _AHEAD(_without_statements(facts), cut_ts)),
    "dropped: it rests": ("_gone", lambda at_ts: Standing(Is.ACTIVE, applied_ts=at_ts)),
}  # fmt: skip
_FILLED: Final = asked.filled
_BEGINNING: Final = FromBronze.beginning
_CUT_FIRST: Final = (publishing.STAGES["main"][-1], *publishing.STAGES["main"][:-1])
_ROW_LAST: Final = (publishing.STAGES["tables"][-1], *publishing.STAGES["tables"][:-1])
# What the steps decide, as the model does it after them.
STEPS: Final[dict[str, tuple[Any, str, Any]]] = {
    "states first, then the cut": (publishing, "STAGES", publishing.STAGES | {"main": _CUT_FIRST}),
    "the row of a table that caught up first": (
        publishing, "STAGES", publishing.STAGES | {"tables": _ROW_LAST},
    ),
    "tables of a source that is back have rows": (publishing, "goes_back", lambda *_: set()),
    "a release during a window isn't its": (publishing, "is_unseen", lambda *_: False),
    "a window reaches what a try has written": (planning.Plan, "_reach", lambda _: 0),
    "nothing from before a statement that was done": (
        asked, "written", lambda _, state, table: state.tables[table].version,
    ),
    "what empties it above a cut ends its snapshot": (
        asked, "filled", lambda bounds, state, table, _: _FILLED(bounds, state, table, 1 << 62),
    ),
    "made anew above its mark": (FromBronze, "beginning", lambda bronze, _: _BEGINNING(bronze, None)),
    "a source joins where it was left": (asked, "joins_at", lambda state, _: state.cut),
    "who lacked rows when it was left": (asked, "left_at", lambda _, state, table: LeftAt(asked.mark(state, table))),
}  # fmt: skip
MUTATIONS: Final = (*RULES, *GUARDS, *STEPS)
# Where a mutation is looked for first: by most of these somebody waits for ever, which is looked for last.
WHERE: Final = {
    "no SilverOlder": "put back",
    "made anew above its mark": "put back, released",
    "no Selected": "joins",
    "no SourceStalls": "stall",
    "no SourceMeets": "stall",
    "any source back": "routed",
    "reaches: a source late": "stall",
    "at the cut: silver ahead": "joins",
    "reaches: a statement ahead": "half a window, marks",
    "at the cut: a statement ahead": "half a window, joins",
    "nothing from before a statement that was done": "half a window",
    "no FlowsIn": "routed",
    "no Released": "causes",
    "no CaughtUp": "causes",
    "no NotWritten": "fails",
    "no PauseOver": "fails",
    "no Answered": "causes",
    "no LoggedAgain": "unlogged",
    "no PartnerGoesOn": "rename, held",
    "no WaveBegins": "snapshot, emptied",
    "no Whole": "snapshot, emptied",
    "no SnapshotLost": "snapshot, emptied",
    "no CutReached": "stop",
    "no SourceBack": "stall",
    "tables of a source that is back have rows": "stall",
    "dropped: it rests": "stop",
    "no RowsGone": "rename, begun anew",
    "what empties it above a cut ends its snapshot": "snapshot, held",
    "a release forgets": "ask",
    "states first, then the cut": "joins",
    "a release during a window isn't its": "stop",
    "a window reaches what a try has written": "causes",
    "a source joins where it was left": "source joins",
    "who lacked rows when it was left": "joins, short",
    "no ShardsLack": "shards",
    "no ShardBegins": "shards, put back",
    "no SentBelow": "given back",
    "sent below though held": "joins, short",
    "the last cause counts": "joins, short",
    "below, and with its source": "given back, stall",
    "stalls with all": "stall twice",
    "caught up, a source late": "given back, stall",
    "a new source of who waits": "routed, given back",
}


@contextmanager
def without(name: str) -> Iterator[None]:
    """The rules with one of them, or a guard, replaced."""
    place, attribute, value = STEPS.get(name) or (rules, *GUARDS.get(name, ("RULES", None)))
    if value is None:
        event, rule = RULES[name]
        value = {**rules.RULES, event: rule}
    before = getattr(place, attribute)
    setattr(place, attribute, value)
    try:
        yield
    finally:
        setattr(place, attribute, before)


__all__ = ["LARGE", "MUTATIONS", "SMALL", "WHERE", "without"]
