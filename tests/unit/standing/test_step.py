"""The rules of a table's standing, over every standing, event and ground that there are."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path

import pytest

from tests.unit.standing.life import CUT, NOW, PLACE, arrows, events, facts, grounds, standings, waits
from tidegate.errors import PastDamaged, PastUnlike, SchemaMismatch, StreamCorrupt, UnknownEvent, UnsupportedValue
from tidegate.remedy import JUDGE, RECREATE, REFILL, Needs, Remedy
from tidegate.schema.ddl.reader import DdlNotRead
from tidegate.standing import events as e
from tidegate.standing.causes import ENDS, Cause, Emptying, Word, cause_of
from tidegate.standing.standing import Standing
from tidegate.standing.step import RULES, pause, step
from tidegate.tables import State

ROOT = Path(__file__).resolve().parents[3]
GATES = (Cause.DDL_STOPS, Cause.DDL_ASKS)
EVERY = list(product(list(standings()), list(events()), list(grounds())))


def test_every_event_has_a_rule_and_every_cause_an_end() -> None:
    assert RULES.keys() == set(e.Event.__args__) == {type(event) for event in events()}
    assert ENDS.keys() == set(Cause)


def test_the_drawing_of_a_tables_life_is_what_the_rules_make() -> None:
    drawn = set()
    for line in (ROOT / "ARCHITECTURE.md").read_text().splitlines():
        if arrow := re.fullmatch(r"\| (\w+) → (\w+) \| ([A-Z][\w, ]+) \|.*", line):
            before, after, names = arrow.groups()
            drawn |= {(State(before), name, State(after)) for name in names.split(", ")}
    assert drawn == arrows()


def test_the_page_of_causes_is_the_table_of_causes() -> None:
    page = (ROOT / "docs/inside/standing.md").read_text()
    said = {}
    for line in page.splitlines():
        cells = [cell.strip(" `") for cell in line.strip("|").split("|")]
        if cells[0] in set(Cause):
            said[Cause(cells[0])] = tuple(cells[2:])
    wanted = {}
    for cause, ends in ENDS.items():
        others = [name for name in ("pause", "partner", "source") if getattr(ends, name)]
        snapshot = "yes" if ends.snapshot else "where it needs rows"
        wanted[cause] = (snapshot, str(ends.emptied), str(ends.word), ", ".join(others))
    assert said == wanted


def test_a_gate_stays_when_a_new_source_brings_rows_that_are_passed() -> None:
    for cause in GATES:
        met = step(waits(cause), e.SourceMeets("s2"), facts(position=lambda _source: 5)).standing
        assert met == replace(waits(cause), needs=Needs.ROWS)


def test_a_gate_is_passed_by_a_person_or_the_pipeline_file_alone() -> None:
    """A wave begins a held table only when a person has asked for it: nobody else does for a gate."""
    people = (e.Released, e.Selected, e.WaveBegins, e.ShardBegins)
    for before, event, ground in EVERY:
        if before is not None and before.state is State.HELD and before.cause in GATES:
            after = step(before, event, ground).standing
            assert isinstance(event, people) or (after is not None and after.cause is before.cause), event
            assert not before.lacks_rows or before.needs is not Needs.NOTHING


def test_no_rule_says_that_silver_has_more_than_is_proved() -> None:
    for before, event, ground in EVERY:
        after = step(before, event, ground).standing
        if after is None or after is before or isinstance(event, e.Selected):
            continue
        known = [before.applied_ts if before else 0, ground.applied(), CUT]
        known += [getattr(event, name, 0) or 0 for name in ("at_ts", "upto_ts", "low_ts")]
        assert after.applied_ts <= max(known), (before, event)


def test_what_happens_twice_changes_nothing_more() -> None:
    """A window that was killed meets the same again."""
    for before, event, ground in EVERY:
        once = step(before, event, ground).standing
        if isinstance(event, e.NotWritten | e.Released) or once is None:
            continue
        again = step(once, event, ground).standing
        assert again is not None
        assert again.state is once.state or isinstance(event, e.SourceMeets | e.CutReached), (before, event)
        assert again.cause is once.cause or isinstance(event, e.SourceMeets), (before, event)


def test_the_first_cause_counts_but_for_a_partners() -> None:
    for cause in Cause:
        before = waits(cause)
        after = step(before, e.Refused(Cause.NEEDS_ROWS, "later"), facts()).standing
        assert (after is before) == (cause is not Cause.WAITS_WITH)


def test_a_release_is_refused_where_what_is_missing_is_in_no_log() -> None:
    for cause in Cause:
        after = step(waits(cause), e.Released("a person"), facts()).standing
        assert after is not None
        assert (after.state is State.HELD) == (ENDS[cause].word is Word.NONE), cause


def test_what_a_table_is_known_for_outlives_all_that_holds_it() -> None:
    """A person isn't asked twice for one statement, and none is replayed before one that isn't followed yet."""
    known = Standing(State.RELEASED, "approved", applied_ts=10, approved_ts=15, unread=True)
    for event in events():
        held = step(known, event, facts()).standing
        if not isinstance(event, e.Refused | e.NotWritten | e.RowsGone):
            continue
        assert held is not None
        assert (held.state, held.approved_ts, held.is_unread) == (State.HELD, 15, True), event
        for end in (e.Released(), e.Answered(), e.PartnerGoesOn(), e.PauseOver(NOW)):
            again = step(held, end, facts()).standing
            assert again is not None
            assert (again.approved_ts, again.is_unread) == (15, True), (event, end)
    below = step(known, e.SentBelow("why"), facts()).standing
    assert below is not None
    assert (below.approved_ts, below.is_unread) == (15, True)
    unread = step(replace(known, unread=False), e.SentBelow("why", unread=True), facts()).standing
    assert unread is not None
    assert (unread.approved_ts, unread.is_unread) == (15, True)


@pytest.mark.parametrize("fault", [PastUnlike.__name__, PastDamaged.__name__])
def test_a_lost_past_stays_lost_while_the_table_is_left_out_or_loses_rows_too(fault: str) -> None:
    """Else a snapshot would begin by itself, and take it: bronze has that past, and no person gave it up."""
    cause = cause_of(fault)
    lost = Standing(State.HELD, "why", cause, 10, fault=fault, needs=Needs.ROWS)
    left = step(lost, e.Selected(State.LEFT, 10, "the pipeline file"), facts()).standing
    assert left is not None
    more = (
        (lost, e.RowsGone("a table whose rows it takes lacks some", PLACE)),
        (left, e.Selected(State.HELD, 10, "the pipeline file")),
        (left, e.FlowsIn("s1", "d.t of s1")),
        (left, e.SourceMeets("s2")),
    )
    for before, event in more:
        held = step(before, event, facts()).standing
        assert held is not None
        assert held.lacks_past, event
    for event in (e.WaveBegins("a", 30), e.Emptied(30)):
        after = step(lost, event, facts()).standing
        assert after is not None
        assert not after.past_lost
    again = step(left, e.Selected(State.RELEASED, 10, "the pipeline file"), facts()).standing
    assert again is not None
    assert not again.past_lost


def test_what_joins_a_table_may_bring_statements_that_nobody_has_approved() -> None:
    known = Standing(State.RELEASED, "approved", applied_ts=10, approved_ts=15, unread=True)
    for state in (State.RELEASED, State.HELD):
        joined = step(known, e.Selected(state, 5, "the pipeline file"), facts()).standing
        assert joined is not None
        assert (joined.approved_ts, joined.is_unread) == (0, True)


def test_what_was_not_read_counts_no_more_behind_what_empties_the_table() -> None:
    held = replace(waits(Cause.MISMATCH), approved_ts=40, unread=True)
    emptied = step(held, e.Emptied(20), facts()).standing
    assert emptied is not None
    assert (emptied.state, emptied.approved_ts, emptied.is_unread) == (State.RELEASED, 40, False)


def test_a_table_whose_snapshot_ends_at_a_cut_that_silver_is_ahead_of_waits_for_the_cut() -> None:
    fills = Standing(State.SNAPSHOT, "fills", applied_ts=10, snapshot="a")
    for applied, state, at_ts in ((CUT, State.ACTIVE, CUT), (40, State.RELEASED, 40)):
        whole = step(fills, e.Whole(CUT), facts(applied)).standing
        assert whole is not None
        assert (whole.state, whole.applied_ts) == (state, at_ts)


@pytest.mark.parametrize(
    ("event", "state"),
    [
        (e.CaughtUp(CUT), State.RELEASED),
        (e.SourceBack("s1"), State.RELEASED),
        (e.Whole(CUT), State.SNAPSHOT),
        (e.CutReached(CUT, 30), State.RELEASED),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_table_waits_for_the_cut_of_a_statement_that_a_killed_window_has_followed(
    event: e.Event, state: State
) -> None:
    """Silver has its rows up to the cut, and lost them again by a statement above: at the cut it had some."""
    source = "s1" if isinstance(event, e.SourceBack) else ""
    before = Standing(state, "goes on", applied_ts=CUT, source=source, snapshot="a" * (state is State.SNAPSHOT))
    waits = step(before, event, facts(CUT, reached=lambda: 40)).standing
    assert waits is not None
    assert (waits.state, waits.applied_ts) == (State.RELEASED, CUT)
    goes_on = step(waits, e.CutReached(CUT, 40), facts(CUT, reached=lambda: 40)).standing
    assert goes_on is not None
    assert goes_on.state is State.ACTIVE


def test_an_approval_reaches_up_to_its_statement() -> None:
    for cause, approved_ts in ((Cause.DDL_ASKS, PLACE.at_ts), (Cause.DDL_STOPS, 8)):
        released = step(replace(waits(cause), approved_ts=8), e.Released(), facts()).standing
        assert released is not None
        assert released.approved_ts == approved_ts


def test_rows_that_go_while_a_table_waits_at_a_gate_are_wanting_once_a_person_has_opened_it() -> None:
    lacking = step(waits(Cause.DDL_STOPS), e.RowsGone("gone", PLACE), facts()).standing
    assert lacking is not None
    assert (lacking.cause, lacking.needs, lacking.lacks_rows) == (Cause.DDL_STOPS, Needs.ROWS, False)
    opened = step(lacking, e.Released(), facts()).standing
    assert opened is not None
    assert (opened.state, opened.cause, opened.lacks_rows) == (State.HELD, Cause.NEEDS_ROWS, True)


def test_a_table_that_could_not_be_written_is_tried_after_longer_pauses_and_counts_until_a_person_released_it() -> None:
    standing, ground, now = None, facts(), NOW
    for times in range(1, 12):
        held = step(standing, e.NotWritten("disk full"), ground).standing
        assert held is not None
        assert (held.cause, held.times) == (Cause.WRITE_FAILED, times)
        held = waits_since(held)
        assert step(held, e.PauseOver(now + pause(times) - timedelta(seconds=1)), ground).standing is held
        standing = step(held, e.PauseOver(now + pause(times)), ground).standing
        assert standing is not None
        assert (standing.state, standing.times) == (State.RELEASED, times)
    assert pause(11) == timedelta(days=1)
    by_hand = step(held, e.Released(), ground).standing
    assert by_hand is not None
    assert step(by_hand, e.NotWritten("again"), ground).standing.times == 1


def waits_since(standing: Standing) -> Standing:
    return Standing(State.HELD, standing.reason, standing.cause, 10, times=standing.times, since=NOW)


@pytest.mark.parametrize("cause", list(Cause))
def test_emptying_ends_what_the_table_of_causes_says(cause: Cause) -> None:
    standing = waits(cause)
    ends = ENDS[cause].emptied
    behind = PLACE.at_ts + 1
    assert standing.ends_by_emptying(behind, first=True, rows_stay=False) == (ends is not Emptying.NEVER)
    assert standing.ends_by_emptying(behind, first=True, rows_stay=True) == (ends is Emptying.ENDS)
    assert not standing.ends_by_emptying(PLACE.at_ts, first=True, rows_stay=False), "it came before the trouble"
    lacks = replace(standing, needs=Needs.ROWS, applied_ts=PLACE.at_ts - 2)
    gone = [
        replace(lacks, applied_ts=PLACE.at_ts - back).ends_by_emptying(
            PLACE.at_ts, first=True, rows_stay=False, gone=True
        )
        for back in (2, 1)
    ]
    assert gone == [ends is not Emptying.NEVER, False], "the trouble was of what is gone, and that is tried once"


def test_an_error_says_by_a_value_what_its_table_needs() -> None:
    lost = UnsupportedValue("odd", where="d.t", remedy=REFILL.after("report it"))
    assert (lost.needs, lost.line) == (Needs.ROWS, "d.t: odd; report it")
    assert str(lost).startswith("d.t: odd; report it; a snapshot reads it anew")
    again = type(lost)(lost.what, where="elsewhere", remedy=lost.remedy)
    assert again.needs is Needs.ROWS, "who names it anew keeps it"
    assert (RECREATE.needs, JUDGE.needs, Remedy("x").needs) == (Needs.COLUMNS, Needs.JUDGEMENT, Needs.NOTHING)
    with pytest.raises(TypeError):
        f"{REFILL}"


def test_a_class_of_exceptions_is_a_cause() -> None:
    assert cause_of(SchemaMismatch.__name__) is Cause.MISMATCH
    assert {cause_of(kind.__name__) for kind in (UnknownEvent, StreamCorrupt)} == {Cause.EVENT_NOT_READ}
    assert cause_of(DdlNotRead.__name__) is Cause.DDL_NOT_READ
    assert cause_of("KeyError") is Cause.FAULT


def test_whoever_begins_anew_has_no_rows_to_give() -> None:
    for before, event, ground in EVERY:
        done = step(before, event, ground)
        assert done.takers_lack == (isinstance(event, e.WaveBegins) and done.standing is not before), event
