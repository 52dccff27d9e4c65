"""Complete hours: never too early, never taken back, and named as soon as they are so.

In:  histories of cuts, held tables and snapshots; lakes with cuts.
Out: the hours that are complete, beside a count by hand.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.seeds import many
from tidegate import tables
from tidegate.commit_ts import compose
from tidegate.config import Completeness, Tables
from tidegate.config.table_keys.tables import Route
from tidegate.lake import control
from tidegate.lake.figures.complete_hours import (
    ALL_TABLES,
    NewHours,
    complete_hours,
    hour_of,
    hours_before,
    partition_key,
    read_complete_hours,
    read_verified_hours,
)
from tidegate.lake.figures.status import TableStatus
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.followed import CATCHING_UP, FollowedChange, Selection, rows_of
from tidegate.lake.standing.held import to_row
from tidegate.standing.causes import Cause
from tidegate.standing.events import Event, FlowsIn, NotWritten, Refused, SentBelow, SilverOlder
from tidegate.standing.standing import Standing
from tidegate.standing.step import fills, step
from tidegate.tables import State
from tidegate.tables.snapshot_tables import VERIFICATION

HOUR_MS = 3_600_000
EIGHT = hour_of("2026-11-26T08:00:00")


def at(hour: int, ms: int = 0) -> int:
    return compose(hour * HOUR_MS + ms)


def status(name: str, state: State = State.ACTIVE, applied_ts: int = 0) -> TableStatus:
    return TableStatus(name, state, applied_ts, 1, "")


def test_an_hour_is_complete_when_no_commit_of_it_can_come_any_more() -> None:
    assert hours_before(at(EIGHT + 1) - 1) == EIGHT + 1, "08:00 to 09:00 is whole"
    assert hours_before(at(EIGHT + 1) - 2) == EIGHT, "a commit of 08:59:59.999 may come still"
    assert hours_before(at(EIGHT, HOUR_MS - 1)) == EIGHT
    assert hours_before(0) == 0


def test_a_partition_is_named_by_the_beginning_of_its_hour() -> None:
    assert partition_key(EIGHT) == "2026-11-26T08:00:00"
    assert hour_of(partition_key(EIGHT)) == EIGHT
    with pytest.raises(ValueError, match="does not match"):
        hour_of("2026-11-26")


def test_airflows_own_mappers_read_the_name_of_a_partition() -> None:
    from airflow.partition_mappers.temporal import StartOfDayMapper

    assert StartOfDayMapper().to_downstream(partition_key(EIGHT)) == "2026-11-26"


def test_what_waits_has_no_further_hour_and_all_tables_wait_with_it() -> None:
    known = [
        status("s.follows"),
        status("s.held", State.HELD, at(EIGHT - 3)),
        status("s.catches_up", State.RELEASED, at(EIGHT - 1)),
        status("s.lacks_rows", State.SNAPSHOT),
        status("s.dropped", State.DROPPED),
        status("s.left", State.LEFT),
    ]
    names = [*(table.table for table in known), "s.unknown"]
    hours = complete_hours(known, names, at(EIGHT))
    assert hours == dict.fromkeys([*names, ALL_TABLES], 0) | {"s.follows": EIGHT, "s.dropped": EIGHT}
    go_on = [table for table in known if not table.state.waits and table.state is not State.SNAPSHOT]
    assert complete_hours(go_on, [], at(EIGHT)) == {ALL_TABLES: EIGHT}
    assert complete_hours([status("s.left", State.LEFT)], [], at(EIGHT)) == {ALL_TABLES: EIGHT}


NOTHING: Any = SimpleNamespace(name="s.a", cut_ts=at(EIGHT), applied=lambda: at(EIGHT), mark=lambda: at(EIGHT))
FILLS = fills("one", at(EIGHT - 5))
LEFT = Standing(State.LEFT, applied_ts=at(EIGHT - 5))


@pytest.mark.parametrize(
    ("before", "event"),
    [
        (FILLS, Refused(Cause.DDL_STOPS, "the pipeline file stops it")),
        (FILLS, NotWritten("no room")),
        (FILLS, SentBelow("it catches up")),
        (LEFT, FlowsIn("eu", "s.b")),
    ],
)
def test_what_waits_and_lacks_rows_has_no_hour_of_its_place_in_the_log(
    lake: Lake, before: Standing, event: Event
) -> None:
    """Half filled by a snapshot, or left long ago: it is published with applied_ts at the cut."""
    after = step(before, event, NOTHING).standing
    assert after is not None
    assert (after.state.waits, after.applied_ts in (0, at(EIGHT))) == (True, True)
    lake.stands("s.a", after)
    lake.cut(at(EIGHT), "s.a", "s.b")
    assert read_complete_hours(lake.files, ["s.a", "s.b"]) == {"s.a": 0, "s.b": EIGHT, ALL_TABLES: 0}


def test_a_source_that_is_behind_may_bring_tables_and_shards(lake: Lake) -> None:
    """Nobody has met them yet, so no table waits by name."""
    lake.cut(at(EIGHT), "s.all", "s.b")
    lake.follow(1, FollowedChange("us", CATCHING_UP, at(EIGHT - 9)))
    watched = news(lake, "s.all", "s.b")
    assert watched.look() == {"hours": {"s.all": 0, "s.b": EIGHT, ALL_TABLES: 0}}
    lake.follow(2, FollowedChange("us", "followed", at(EIGHT)))
    assert watched.look() == {"hours": dict.fromkeys(["s.all", "s.b", ALL_TABLES], EIGHT)}, "it is back"


@pytest.mark.parametrize(
    ("to", "targets", "others"),
    [
        ("shop.all", ["shop.all"], ["shop.all2", "shop_all", "x.shop.all"]),
        (r"shop.\1_all", ["shop.a_all"], ["shop.a", "shop2.a_all"]),
        (r"\g<db>.all", ["eu.all"], ["eu.all_"]),
    ],
)
def test_which_tables_a_route_may_fill(to: str, targets: list[str], others: list[str]) -> None:
    routed = Tables(include=("*.*",), routes=(Route(match="(?P<db>eu.*).(x)", to=to),))
    assert [routed.is_target(name) for name in (*targets, *others)] == [True] * len(targets) + [False] * len(others)


@pytest.mark.parametrize("seed", range(many(2, 20)))
def test_over_many_days_no_hour_is_named_before_its_last_commit_is_applied(seed: int) -> None:
    """2,500 days each: cuts of random lengths, tables that are held, catch up and lack rows at random."""
    dice = random.Random(seed)
    names = ["s.a", "s.b", "s.c"]
    applied = dict.fromkeys(names, 0)
    states = dict.fromkeys(names, State.ACTIVE)
    emitted = dict.fromkeys([*names, ALL_TABLES], 0)
    now_ms = cut = 0
    while now_ms < 2_500 * 24 * HOUR_MS:
        now_ms += dice.choice((1, 977, 60_000, 1_200_000, HOUR_MS, 3 * HOUR_MS))
        cut = compose(now_ms, dice.randrange(1 << 18)) - dice.randrange(2)
        for name in names:
            if dice.random() < 0.05:
                states[name] = dice.choice([*list(State)[:3], State.SNAPSHOT, State.ACTIVE, State.ACTIVE])
            if states[name] is State.RELEASED:
                applied[name] = min(cut, applied[name] + dice.randrange(compose(2 * HOUR_MS)))
            elif not states[name].waits:
                applied[name] = cut
        shown = [status(name, states[name], applied[name]) for name in names]
        hours = complete_hours(shown, names, cut)
        for name in names:
            if states[name].waits or states[name] is State.SNAPSHOT:
                assert hours[name] == 0
            else:
                assert compose(hours[name] * HOUR_MS) <= applied[name] + 1, "every commit of them is in silver"
                assert compose((hours[name] + 1) * HOUR_MS) > applied[name] + 1, "and no whole hour is left out"
            emitted[name] = max(emitted[name], hours[name])
        assert hours[ALL_TABLES] <= min(hours[name] for name in names)
    assert min(emitted[name] for name in names) > 2_400 * 24


class Lake:
    """A lake whose cuts and states a test writes."""

    def __init__(self, folder: Path) -> None:
        self.files = LakeFiles(str(folder))

    def cut(self, cut_ts: int, *names: str) -> None:
        now = datetime.now(UTC)
        rows = [
            {"cut_ts": cut_ts, "table": name, "delta_version": 1, "applied_ts": cut_ts, "state": "active"}
            | {"published_at": now}
            for name in ("", *names)
        ]
        control.append(self.files, tables.CUTS, rows)

    def stands(self, table: str, standing: Standing | None) -> None:
        assert standing is not None
        control.append(self.files, tables.TABLE_STATES, [to_row(standing, "p", table, datetime.now(UTC))])

    def follow(self, number: int, change: FollowedChange) -> None:
        routes = (Route(match="s.all_.*", to="s.all"),)
        selection = Selection(frozenset({"eu", "us"}), Tables(include=("s.*",), routes=routes)) if number == 1 else None
        control.append(self.files, tables.FOLLOWED, rows_of(number, "p", [change], selection, 0))

    def verdict(self, table: str, outcome: str, through: int) -> None:
        row = dict.fromkeys(VERIFICATION.schema.names) | {
            "source": "eu", "database": "s", "table": table, "silver": f"s.{table}", "chunk": 0,
            "outcome": outcome, "verified_through": through, "recorded_at": datetime.now(UTC),
        }  # fmt: skip
        empty = {
            field.name: 0 if str(field.type).startswith("int") else ""
            for field in VERIFICATION.schema
            if not field.nullable
        }
        control.append(self.files, VERIFICATION, [empty | {k: v for k, v in row.items() if v is not None}])


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setattr("tidegate.lake.figures.complete_hours.time.time", lambda: (EIGHT + 2) * 3600.0 + 5)
    return Lake(tmp_path)


def news(lake: Lake, *names: str, kept: dict[str, int] | None = None, verified: bool = False) -> NewHours:
    watched = NewHours(names, verified=verified, kept=kept)
    watched.open(lake.files.root, {})
    return watched


def test_each_further_hour_is_news_once(lake: Lake) -> None:
    lake.cut(at(EIGHT, 60_000), "s.a")
    watched = news(lake, "s.a")
    assert watched.look() == {"hours": {"s.a": EIGHT, ALL_TABLES: EIGHT}}
    lake.cut(at(EIGHT, 120_000), "s.a")
    assert watched.look() is None
    lake.cut(at(EIGHT + 1), "s.a")
    assert watched.look() == {"hours": {"s.a": EIGHT + 1, ALL_TABLES: EIGHT + 1}}
    assert news(lake, "s.a", kept=watched.kept).look() is None, "what was fired is kept"


def test_a_table_that_waited_for_a_while_is_news_again(lake: Lake) -> None:
    """The run that was to add its hour may have looked meanwhile, and a quiet pipeline has no other one for an hour."""
    lake.cut(at(EIGHT), "s.a")
    watched = news(lake, "s.a")
    assert watched.look() == {"hours": {"s.a": EIGHT, ALL_TABLES: EIGHT}}
    lake.stands("s.a", step(None, Refused(Cause.DDL_STOPS, "the pipeline file stops it"), NOTHING).standing)
    assert watched.look() is None
    lake.stands("s.a", Standing(State.ACTIVE))
    assert watched.look() == {"hours": {"s.a": EIGHT, ALL_TABLES: EIGHT}}
    assert watched.look() is None


def test_an_hour_that_goes_on_by_our_clock_is_not_complete(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source's clock, or a changefeed, may be ahead."""
    clock = [(EIGHT * 3600.0) + 3590]
    monkeypatch.setattr("tidegate.lake.figures.complete_hours.time.time", lambda: clock[0])
    lake.cut(at(EIGHT + 500), "s.a")
    watched = news(lake, "s.a")
    assert watched.look() == {"hours": {"s.a": EIGHT, ALL_TABLES: EIGHT}}
    assert watched.look() is None
    clock[0] += 20
    assert watched.look() == {"hours": {"s.a": EIGHT + 1, ALL_TABLES: EIGHT + 1}}


@pytest.mark.parametrize("part", [{"tables": ("s.a",)}, {"verified": True}, {"hourly": True, "verified": True}])
def test_a_setting_without_effect_is_refused(part: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"have an effect|name some"):
        Completeness(**part)


def test_a_look_reads_nothing_while_nothing_can_have_come(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr("tidegate.lake.figures.status.cut_ts", lambda _: read.append("cut") or at(EIGHT, 60_000))
    monkeypatch.setattr("tidegate.lake.figures.status.table_statuses", lambda _: read.append("tables") or [])
    lake.cut(at(EIGHT), "s.a")
    watched = news(lake, "s.a")
    watched.look()
    read.clear()
    watched.look()
    assert read == [], "no commit was made"
    lake.cut(at(EIGHT, 60_000), "s.a")
    watched.look()
    assert read == ["cut"], "the cut is in the same hour"
    monkeypatch.setattr("tidegate.lake.figures.complete_hours.time.time", lambda: EIGHT * 3600.0 + 1800)
    lake.cut(at(EIGHT, 120_000), "s.a")
    watched.look()
    assert read == ["cut"], "the clock is in the hour that the cut is in"


def test_verified_hours_are_those_of_tables_that_are_equal(lake: Lake) -> None:
    lake.verdict("a", "equal", at(EIGHT))
    lake.verdict("b", "different", at(EIGHT))
    lake.cut(at(EIGHT), "s.a", "s.b")
    assert read_verified_hours(lake.files, ["s.a", "s.b", "s.c"]) == {"s.a": EIGHT, "s.b": 0, "s.c": 0}
    fired = news(lake, "s.a", "s.b", verified=True).look()
    assert fired is not None
    assert (fired["hours"]["verified s.a"], fired["hours"]["verified s.b"]) == (EIGHT, 0)


def test_an_hour_that_was_verified_is_not_added_while_silver_is_older_again(lake: Lake) -> None:
    """It was swapped for a rebuilt table, or restored, before the run that adds the hour had its turn."""
    lake.cut(at(EIGHT + 1), "s.a")
    lake.verdict("a", "equal", at(EIGHT))
    lake.stands("s.a", step(None, SilverOlder(at(EIGHT - 5), "it was rebuilt"), NOTHING).standing)
    assert read_verified_hours(lake.files, ["s.a"], ["s.*"]) == {"s.a": 0}
    watched = news(lake, "s.a", verified=True)
    assert watched.look() is None
    lake.stands("s.a", Standing(State.ACTIVE))
    assert watched.look() == {"hours": {"s.a": EIGHT + 1, ALL_TABLES: EIGHT + 1, "verified s.a": EIGHT}}


def test_patterns_take_in_tables_as_they_come_to_silver(lake: Lake) -> None:
    lake.cut(at(EIGHT), "s.pay_a", "s.other", "s.dotted.pay")
    watched = NewHours(["s.other"], verified=False, include=["s.pay.*", r"s\.dotted.pay"])
    watched.open(lake.files.root, {})
    names = ["s.pay_a", "s.other", "s.dotted.pay"]
    assert watched.look() == {"hours": dict.fromkeys([*names, ALL_TABLES], EIGHT)}
    lake.cut(at(EIGHT + 1), "s.pay_b", "s.more")
    assert watched.look() == {"hours": dict.fromkeys([*names, "s.pay_b", ALL_TABLES], EIGHT + 1)}
    lake.verdict("pay_a", "equal", at(EIGHT))
    assert read_verified_hours(lake.files, [], ["s.*"]) == {"s.pay_a": EIGHT}


@pytest.mark.parametrize("names", [["orders"], ["shop.*"], ["shop."], ["shop.a", "shop.a"]])
def test_tables_are_named_one_by_one(names: list[str]) -> None:
    with pytest.raises(ValueError, match=r"no table of silver|twice"):
        Completeness(hourly=True, tables=tuple(names))
