"""Forgetting cuts: every kept cut shows each table as before, whatever was published in whatever order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate import tables
from tidegate.lake.cuts import published as cuts_module
from tidegate.lake.cuts.kept_cuts import kept_rows, needed

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
KEEP = timedelta(hours=48)


def cuts(*published: tuple[float, dict[str, int]]) -> pa.Table:
    """published: (hours ago, table -> version) of each cut; cut_ts counts from 1."""
    rows = [
        {"cut_ts": number, "table": name, "delta_version": version, "applied_ts": number, "state": "active"}
        | {"published_at": NOW - timedelta(hours=hours)}
        for number, (hours, named) in enumerate(published, start=1)
        for name, version in {"": -1, **named}.items()
    ]
    return pa.Table.from_pylist(rows, schema=tables.CUTS.schema)


def with_ids(rows: pa.Table, ids: list[str | None]) -> pa.Table:
    """ids: of the rows that name a table, in turn."""
    turn = iter(ids * rows.num_rows)
    given = [next(turn) if row["table"] else None for row in rows.to_pylist()]
    return rows.set_column(rows.schema.get_field_index("silver_id"), "silver_id", pa.array(given, pa.string()))


def gone(rows: pa.Table, cut_ts: int) -> dict[str, bool]:
    """Of each table of a cut, whether its reader knows that silver was put back or made anew since."""
    anew = cuts_module._anew(rows, cut_ts)
    return {row["table"]: anew(row) for row in cuts_module._last(rows, cut_ts)}


def named(rows: pa.Table) -> list[int]:
    return [row["cut_ts"] for row in rows.to_pylist() if row["table"] == ""]


def view(rows: pa.Table, cut_ts: int) -> dict[str, int]:
    """What a reader of a cut takes: per table the newest row at or below it."""
    ordered = sorted(rows.to_pylist(), key=lambda row: (row["cut_ts"], row["published_at"]))
    return {row["table"]: row["delta_version"] for row in ordered if row["cut_ts"] <= cut_ts and row["table"]}


def test_a_cut_older_than_kept_goes_and_the_version_that_a_kept_one_resolves_to_stays() -> None:
    rows = cuts((100, {"a": 1, "b": 1}), (90, {"a": 2}), (10, {"a": 3}), (5, {"c": 1}))
    kept = kept_rows(rows, NOW, KEEP, 1)
    assert named(kept) == [3, 4]
    assert view(kept, 3) == {"a": 3, "b": 1}
    assert {name: of.versions for name, of in needed(kept).items()} == {"a": [3], "b": [1], "c": [1]}


def test_a_row_by_which_older_cuts_are_known_gone_stays_as_long_as_they_do() -> None:
    """Silver was put back to version 3, and has come further than the older cut's version since."""
    minute = 1 / 60
    rows = cuts((20, {"a": 10}), (10.5, {"a": 3}), (10.5 - minute / 4, {"a": 12}), (0.1, {"a": 14}))
    assert named(kept_rows(rows, NOW, KEEP, 60)) == [1, 3, 4]
    assert [gone(kept_rows(rows, NOW, KEEP, 60), cut) for cut in (1, 3)] == [{"a": True}, {"a": False}]
    later = kept_rows(rows, NOW + timedelta(hours=30), KEEP, 60)
    assert (named(later), later.num_rows) == ([3, 4], 4), "the older cut isn't kept any more"


def test_the_newest_cut_stays_however_old_it_is() -> None:
    assert named(kept_rows(cuts((900, {"a": 1}), (800, {"a": 2})), NOW, KEEP, 1)) == [2]


def test_of_older_cuts_one_a_minute_stays_and_all_of_the_last_hour() -> None:
    second = 1 / 3600
    old = [(10 + 0.25 / 60 - number * 2 * second, {"a": number}) for number in range(60)]  # two minutes
    young = [(0.5 - number * 2 * second, {"a": 100 + number}) for number in range(60)]
    kept = kept_rows(cuts(*old, *young), NOW, KEEP, 60)
    assert 2 <= len(named(kept)) - 60 <= 3
    assert named(kept)[-60:] == list(range(61, 121))


def test_rows_above_the_newest_cut_stay() -> None:
    rows = cuts((100, {"a": 1}), (1, {"a": 2}))
    half = rows.filter(pa.array([not (r["cut_ts"] == 2 and r["table"] == "") for r in rows.to_pylist()]))
    assert view(kept_rows(half, NOW, KEEP, 60), 2) == {"a": 2}


def test_a_table_is_gone_once_no_kept_cut_shows_it_as_anything_but_dropped() -> None:
    rows = cuts((100, {"a": 1, "b": 1, "c": -1}), (10, {"a": 2}), (5, {}))
    dropped = pc.and_(pc.equal(rows["table"], "a"), pc.equal(rows["delta_version"], 2))
    at = rows.schema.get_field_index("state")
    rows = rows.set_column(at, "state", pc.if_else(dropped, "dropped", rows["state"]))
    assert {name: of.gone for name, of in needed(rows).items()} == {"a": False, "b": False}
    kept = needed(kept_rows(rows, NOW, KEEP, 1))
    assert {name: (of.versions, of.gone) for name, of in kept.items()} == {"a": ([2], True), "b": ([1], False)}
    told = {(row["table"], row["cut_ts"], row["delta_version"]) for of in kept.values() if (row := of.newest)}
    assert told == {("a", 3, 2), ("b", 3, 1)}


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.floats(0, 200, allow_nan=False),
            st.dictionaries(st.sampled_from("abc"), st.integers(0, 9), max_size=3),
        ),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from([1, 60, 3600, 86400]),
    st.lists(st.sampled_from(["one", "two", None]), min_size=1, max_size=30),
)
def test_every_kept_cut_shows_what_it_showed(
    published: list[tuple[float, dict[str, int]]], thin: int, ids: list[str | None]
) -> None:
    rows = with_ids(cuts(*sorted(published, key=lambda cut: -cut[0])), ids)
    kept = kept_rows(rows, NOW, KEEP, thin)
    assert named(kept)[-1] == len(published)
    assert {number for number, (hours, _) in enumerate(sorted(published, key=lambda c: -c[0]), 1) if hours < 1} <= set(
        named(kept)
    )
    for cut in named(kept):
        assert view(kept, cut) == view(rows, cut)
        assert gone(kept, cut) == gone(rows, cut)
    assert kept_rows(kept, NOW, KEEP, thin).num_rows == kept.num_rows, "forgetting again forgets nothing more"
