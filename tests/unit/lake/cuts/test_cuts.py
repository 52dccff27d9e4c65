"""A cut that is read shows every table at one commit_ts, names what isn't complete, and says when it can't be had."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tidegate import tables
from tidegate.commit_ts import compose
from tidegate.errors import CutForgotten, CutNotYet, UsageError
from tidegate.lake import control
from tidegate.lake.control.upkeep import rewrite
from tidegate.lake.cuts import published
from tidegate.lake.cuts.kept_cuts import kept_rows
from tidegate.lake.cuts.published import cut_at, instant, known_cuts
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.held import to_row
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.tables import State

BEGIN = datetime(2026, 11, 22, 8, tzinfo=UTC)


class Lake:
    """A lake's cuts and states, a second apart."""

    def __init__(self, folder: Path) -> None:
        self.files = LakeFiles(str(folder))
        self._now = BEGIN

    def _tick(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now

    def publish(self, cut_ts: int, *, new: bool = True, **versions: int | tuple[int, str]) -> None:
        now, rows = self._tick(), list[dict[str, Any]]()
        for name, told in {**({"": -1} if new else {}), **versions}.items():
            version, state = told if isinstance(told, tuple) else (told, "active")
            table = name and f"shop.{name}"
            rows.append(
                {"cut_ts": cut_ts, "table": table, "delta_version": version, "state": state}
                | {"applied_ts": cut_ts, "published_at": now}
            )
        control.append(self.files, tables.CUTS, rows)

    def say(self, name: str, state: State, commit_ts: int = 0) -> None:
        cause = Cause.FAULT if state is State.HELD else None
        told = Standing(state, f"{name} is {state}", cause, commit_ts)
        control.append(self.files, tables.TABLE_STATES, [to_row(told, "p", f"shop.{name}", self._tick())])

    def seen(self, at: int | None = None) -> dict[str, int]:
        return {table.table: table.version for table in cut_at(self.files, "p", at).tables.values()}

    def missing(self, at: int | None = None) -> set[str]:
        return {name.removeprefix("shop.") for name in cut_at(self.files, "p", at).missing}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def test_a_table_without_a_change_is_at_its_earlier_version(lake: Lake) -> None:
    lake.publish(10, a=1, b=1)
    lake.publish(20, a=2)
    assert lake.seen() == {"a": 2, "b": 1}
    assert lake.seen(19) == {"a": 1, "b": 1}
    assert cut_at(lake.files, "p", 19).cut_ts == 10


def test_versions_of_a_log_that_was_put_back_or_made_anew_since_are_no_versions_of_older_cuts(lake: Lake) -> None:
    lake.publish(10, a=5, b=5, c=5, d=1)
    lake.publish(20, a=6, b=6, c=6)
    lake.publish(20, new=False, a=2, b=-1)  # an older copy of a, and b is lost
    lake.publish(30, a=7, b=7, c=7, d=2)
    assert lake.seen() == {"a": 7, "b": 7, "c": 7, "d": 2}
    assert (lake.seen(10), lake.missing(10)) == ({"c": 5, "d": 1}, {"a", "b"})


def test_another_tables_log_has_no_versions_of_older_cuts(lake: Lake) -> None:
    def row(cut_ts: int, version: int, silver_id: str | None) -> dict[str, Any]:
        now = BEGIN + timedelta(seconds=cut_ts)
        told = {"cut_ts": cut_ts, "table": "shop.a", "delta_version": version, "state": "active", "applied_ts": cut_ts}
        return told | {"published_at": now, "silver_id": silver_id}

    for cut_ts, name in ((10, None), (20, "one"), (30, "two")):
        lake.publish(cut_ts)
        control.append(lake.files, tables.CUTS, [row(cut_ts, cut_ts, name)])
    assert lake.seen() == {"a": 30}
    assert (lake.seen(20), lake.missing(20)) == ({}, {"a"})
    assert lake.seen(10) == {"a": 10}, "an older release said nothing of it"


def test_between_two_kept_cuts_the_earlier_one_is_read_whole(lake: Lake) -> None:
    """Rows of a forgotten cut are left for one table and not for the other: together they were never so."""
    lake.publish(10, a=1, b=1)
    lake.publish(20, a=2)
    lake.publish(30, b=3)
    now = BEGIN + timedelta(hours=2)
    rewrite(lake.files, tables.CUTS, lambda rows: kept_rows(rows, now, timedelta(hours=3), 1))
    rewrite(lake.files, tables.CUTS, lambda rows: rows.filter([row != (20, "") for row in _keys(rows)]))
    assert known_cuts(lake.files) == [10, 30]
    assert lake.seen(25) == {"a": 1, "b": 1}
    assert lake.seen(30) == {"a": 2, "b": 3}


def _keys(rows: Any) -> list[tuple[int, str]]:
    return list(zip(rows["cut_ts"].to_pylist(), rows["table"].to_pylist(), strict=True))


def test_a_held_table_is_named_with_its_reason_and_a_dropped_one_is_gone(lake: Lake) -> None:
    lake.publish(10, a=1, b=1, c=1)
    lake.say("b", State.HELD, 15)
    lake.say("c", State.DROPPED, 20)
    lake.publish(20, a=2, b=(1, "held"), c=(2, "dropped"))
    cut = cut_at(lake.files, "p")
    assert set(cut.tables) == {"shop.a"}
    assert cut.dropped == {"shop.c"}
    assert "b is held" in cut.missing["shop.b"]
    assert lake.seen(10) == {"a": 1, "b": 1, "c": 1}


def test_a_table_of_a_source_that_is_left_behind_is_missing_though_no_cut_names_it_again(lake: Lake) -> None:
    lake.publish(10, a=1, b=1)
    lake.say("b", State.RELEASED, 10)
    lake.publish(20, a=2)
    assert lake.missing() == {"b"}
    assert lake.missing(10) == set()
    lake.publish(20, new=False, b=4)
    assert lake.seen() == {"a": 2, "b": 4}


def test_a_table_that_left_the_pipeline_is_missing_from_then_on_and_back_when_it_goes_on(lake: Lake) -> None:
    lake.publish(10, a=1, b=1)
    lake.say("b", State.LEFT, 10)
    lake.publish(20, a=2)
    lake.say("b", State.ACTIVE, 20)
    lake.publish(30, a=3, b=2)
    assert lake.missing(20) == {"b"}
    assert lake.missing(10) == lake.missing() == set()
    assert lake.seen() == {"a": 3, "b": 2}


def test_a_table_that_is_whole_at_the_next_cut_only_isnt_in_this_one(lake: Lake) -> None:
    lake.publish(10, a=1, b=1)
    lake.publish(20, a=2, b=(2, "held"))
    lake.say("b", State.ACTIVE, 30)  # recorded, then killed before cut 30 was there
    assert lake.missing() == {"b"}


def test_a_table_that_waited_without_a_row_of_it_is_behind_until_the_next_cut(lake: Lake) -> None:
    """Apply was killed behind the hold and before its cut; the table is whole at a cut that isn't published yet."""
    lake.publish(10, a=1, b=1)
    lake.say("b", State.HELD, 15)
    lake.publish(20, a=2)
    lake.say("b", State.RELEASED, 15)
    lake.say("b", State.ACTIVE, 30)
    assert (lake.seen(), lake.missing()) == ({"a": 2}, {"b"})
    lake.publish(30, a=3, b=2)
    assert (lake.seen(), lake.missing()) == ({"a": 3, "b": 2}, set())


def test_a_table_whose_snapshot_ends_with_the_next_cut_lacks_rows_at_this_one(lake: Lake) -> None:
    lake.publish(10, a=1, b=(1, "snapshot"))
    lake.say("b", State.ACTIVE, 20)
    assert lake.missing() == {"b"}
    lake.publish(20, a=2, b=2)
    assert lake.missing() == set()


def test_a_table_that_is_gone_at_the_next_cut_is_there_in_this_one(lake: Lake) -> None:
    lake.publish(10, a=1, b=1)
    lake.say("b", State.DROPPED, 20)  # recorded, then killed before cut 20 was there
    assert lake.seen() == {"a": 1, "b": 1}
    lake.publish(20, a=2)
    assert lake.seen() == {"a": 2}


def test_a_table_that_catches_up_while_the_cut_is_looked_at_is_read_as_it_is_now(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.publish(20, a=2, b=(1, "held"))
    lake.say("b", State.RELEASED, 10)
    states = published._told

    def meanwhile(*asked: Any) -> Any:
        lake.publish(20, new=False, b=4)
        lake.say("b", State.ACTIVE, 20)
        return states(*asked)

    monkeypatch.setattr(published, "_told", meanwhile)
    assert lake.seen() == {"a": 2, "b": 4}, "not as it was when it was held"


def test_a_table_whose_snapshot_runs_lacks_rows_and_one_without_silver_is_no_table(lake: Lake) -> None:
    lake.say("b", State.SNAPSHOT, 0)
    lake.say("c", State.HELD, 0)
    lake.publish(10, a=1, b=(1, "snapshot"), d=-1)
    assert lake.seen() == {"a": 1}
    assert lake.missing() == {"b", "c"}


def test_what_isnt_there_yet_and_what_is_no_longer_there_are_told_apart(lake: Lake) -> None:
    with pytest.raises(CutNotYet, match="no cut is published yet"):
        lake.seen()
    lake.publish(compose(1000), a=1)
    with pytest.raises(CutNotYet, match="silver is complete up to"):
        lake.seen(compose(2000))
    with pytest.raises(CutForgotten, match=f"the oldest one is {compose(1000)}"):
        lake.seen(5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("470809785139462143", 470809785139462143),
        ("1970-01-01T00:00:01", compose(1001) - 1),
        ("1970-01-01 01:00:01.250+01:00", compose(1251) - 1),
        ("2026-11-22", compose(int(datetime(2026, 11, 22, tzinfo=UTC).timestamp() * 1000) + 1) - 1),
    ],
)
def test_a_time_is_the_last_commit_ts_in_its_millisecond(text: str, expected: int) -> None:
    assert instant(text) == expected


def test_what_is_neither_a_cut_nor_a_time_is_refused() -> None:
    with pytest.raises(UsageError, match="neither a cut nor a time"):
        instant("yesterday")
