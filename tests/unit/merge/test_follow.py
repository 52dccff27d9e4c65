"""Where a table goes on that the pipeline file keeps anew, or why it waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tidegate.merge.follow import Ground, LeftAt, follow
from tidegate.remedy import Needs
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.table_names import Physical

T = Physical("s", "d", "t")
HELD, DROPPED = VersionStatus.NEEDS_SNAPSHOT, VersionStatus.DROPPED


def versions(*given: tuple[int, str, VersionStatus]) -> list[TableVersion]:
    return [
        TableVersion("s", "d", "t", number, ts, "b.1", ts, kind, f"{kind} t", (), (), "utf8mb4", status)
        for number, (ts, kind, status) in enumerate(given, 1)
    ]


CREATED = (20, "create", VersionStatus.ACTIVE)
ALTERED = (30, "alter", VersionStatus.ACTIVE)
EMPTIED = (50, "truncate", VersionStatus.ACTIVE)
UNPROVEN = (40, "unfollowed", VersionStatus.UNPROVEN)
EMPTIED_UNPROVEN = (50, "truncate", VersionStatus.UNPROVEN)
AGAIN = (60, "create", VersionStatus.ACTIVE)
GONE = (60, "drop", DROPPED)
TAKEN = (40, "rename", VersionStatus.ACTIVE)
GONE_AGAIN = (80, "rename", DROPPED)
TAKEN_LATER = (70, "rename", VersionStatus.ACTIVE)
ALTERED_AGAIN = (60, "alter", VersionStatus.ACTIVE)
BASELINE = (0, "baseline", HELD)

# versions, where it was left (None: never followed), where bronze begins -> state and commit_ts
CASES: dict[str, tuple[Sequence[tuple[int, str, VersionStatus]], int | None, int, tuple[str, int] | None]] = {
    "new": ((CREATED, ALTERED), None, 0, ("released", 19)),
    "new, emptied since": ((BASELINE, EMPTIED), None, 30, ("released", 49)),
    "new, with rows from before": ((BASELINE, ALTERED), None, 0, ("held", 90)),
    "new, bronze begins later": ((CREATED,), None, 20, ("held", 90)),
    "new, renamed from another": ((CREATED, TAKEN), None, 0, ("held", 90)),
    "new, but gone": ((CREATED, GONE), None, 0, None),
    "new, created above the cut": (((95, "create", VersionStatus.ACTIVE),), None, 0, None),
    "new, with a statement that wasn't followed": ((CREATED, UNPROVEN), None, 0, ("held", 90)),
    "new, and emptied since": ((CREATED, UNPROVEN, EMPTIED_UNPROVEN), None, 0, ("held", 90)),
    "new, and made anew since": ((CREATED, UNPROVEN, EMPTIED_UNPROVEN, AGAIN), None, 0, ("released", 59)),
    "back, with a statement that wasn't followed": ((CREATED, UNPROVEN), 25, 0, ("held", 90)),
    "back": ((CREATED, ALTERED), 25, 0, ("released", 25)),
    "back, gone meanwhile": ((CREATED, GONE), 25, 0, ("released", 25)),
    "back, bronze begins later": ((CREATED,), 25, 26, ("held", 90)),
    "back, bronze begins later, emptied since": ((CREATED, EMPTIED), 25, 49, ("released", 49)),
    "back, bronze begins later, emptied before": ((CREATED, EMPTIED), 25, 50, ("held", 90)),
    "back, bronze begins later, altered and gone": ((CREATED, ALTERED, GONE), 25, 40, ("released", 59)),
    "back, bronze begins behind its end": ((CREATED, GONE), 25, 60, ("held", 90)),
    "back, gone then and now, bronze begins later": ((CREATED, GONE), 61, 80, ("released", 90)),
    "back, gone then and again, bronze begins later": (
        (CREATED, GONE, TAKEN_LATER, GONE_AGAIN),
        61,
        85,
        ("released", 90),
    ),
    "back, gone then, there now, bronze begins later": ((CREATED, GONE, TAKEN_LATER), 61, 85, ("held", 90)),
    "back, renamed meanwhile": ((CREATED, TAKEN), 25, 0, ("held", 90)),
    "back, not whole then": ((CREATED,), -25, 0, ("held", 90)),
    "back, not whole then, gone since": ((CREATED, GONE), -25, 0, ("released", 59)),
    "back, not whole then, emptied since": ((CREATED, EMPTIED, ALTERED_AGAIN), -25, 0, ("released", 49)),
    "back, not whole then, emptied before": ((CREATED, EMPTIED), -50, 0, ("held", 90)),
    "back, not whole then, gone before": ((CREATED, GONE), -70, 0, ("released", 59)),
    "back, not whole then, gone before, bronze begins later": ((CREATED, GONE), -70, 60, ("held", 90)),
    "back, not whole then, gone and another since": ((CREATED, GONE, TAKEN_LATER), -25, 0, ("held", 90)),
    "back, not whole then, gone where bronze has nothing": ((CREATED, GONE), -25, 60, ("held", 90)),
    "back, not whole then, emptied behind an unknown statement": (
        (CREATED, UNPROVEN, EMPTIED_UNPROVEN),
        -25,
        0,
        ("held", 90),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_joins_goes_on_where_its_rows_are_known_from(case: str) -> None:
    given, left_ts, begin, expected = CASES[case]
    left = {} if left_ts is None else {(T, "d.t"): LeftAt(abs(left_ts), left_ts >= 0)}
    ground = Ground(
        90, lambda _: versions(*given), left, lambda _: 90, lambda _: left_ts is not None, lambda _: True, {"s": begin}
    )
    found = follow({}, {T: "d.t"}, ground).get("d.t")
    assert (found and (found.state, found.commit_ts)) == expected
    assert follow({T: "d.t"}, {T: "d.t"}, ground) == {}
    assert follow({T: "d.t"}, {}, ground)["d.t"].state == "left"


@pytest.mark.parametrize(
    ("given", "gap_ts", "expected"),
    [
        ((CREATED, EMPTIED), 45, "held"),
        ((CREATED, EMPTIED), 55, "released"),  # from before the gap: its windows meet the gap
        ((CREATED, EMPTIED), 10, "released"),
        ((CREATED, EMPTIED, AGAIN), 45, "released"),
        ((CREATED, EMPTIED, AGAIN, (70, "truncate", VersionStatus.ACTIVE)), 45, "released"),
        ((BASELINE, EMPTIED), 45, "held"),
    ],
)
def test_behind_an_accepted_gap_that_may_hide_ddl_only_a_create_tells_columns(
    given: Sequence[tuple[int, str, VersionStatus]], gap_ts: int, expected: str
) -> None:
    ground = Ground(
        90, lambda _: versions(*given), {}, lambda _: 90, lambda _: False, lambda _: True, {"s": 0}, gaps={"s": gap_ts}
    )
    found = follow({}, {T: "d.t"}, ground)["d.t"]
    assert found.state == expected
    assert expected == "released" or found.needs is Needs.COLUMNS


def test_a_table_that_comes_back_when_it_is_gone_isn_t_to_be_emptied_at_the_source() -> None:
    ground = Ground(
        90,
        lambda _: versions(CREATED, GONE),
        {(T, "d.t"): LeftAt(25)},
        lambda _: 90,
        lambda _: True,
        lambda _: True,
        {"s": 60},
    )
    assert "it is gone at the source; leave it out" in follow({}, {T: "d.t"}, ground)["d.t"].reason
    short = replace(ground, left={(T, "d.t"): LeftAt(25, whole=False)})
    assert "it is gone at the source; leave it out" in follow({}, {T: "d.t"}, short)["d.t"].reason
    kept = replace(ground, begins={"s": 40}, emptied=lambda _: False)
    assert follow({}, {T: "d.t"}, kept)["d.t"].state == "held", "deleted rows from before the DROP stay"
    lost = replace(ground, begins={"s": 40}, gaps={"s": 45}, versions=lambda _: versions(CREATED, EMPTIED))
    assert follow({}, {T: "d.t"}, lost)["d.t"].state == "held", "nothing tells its columns"
    told = replace(lost, versions=lambda _: versions(CREATED, (48, "create", VersionStatus.ACTIVE), EMPTIED))
    assert (follow({}, {T: "d.t"}, told)["d.t"]).commit_ts == 49
    nothing = follow({}, {T: "d.t"}, replace(short, bare=lambda _: True))["d.t"]
    assert (nothing.state, nothing.commit_ts) == ("released", 90)


def test_a_shard_with_a_past_is_left_out_of_the_table_that_it_joins() -> None:
    other, late = Physical("s", "d", "one"), Physical("s", "d", "two")
    flows = {other: "d.all", late: "d.all"}
    ground = Ground(90, lambda _: versions(CREATED), {}, lambda _: 40, lambda _: True, lambda _: True, {"s": 0})
    found = follow({other: "d.all"}, flows, ground)["d.all"]
    assert (found.state, found.commit_ts, found.physical) == ("snapshot", 40, (late,))
    assert found.reason.startswith("d.all: d.two of s flows into it now, and what it held before isn't in silver until")
    third = Physical("s", "d", "three")
    both = follow({other: "d.all"}, {**flows, third: "d.all"}, ground)["d.all"]
    assert "d.three of s, d.two of s flow" in both.reason
    assert follow(flows, {other: "d.all"}, ground) == {}, "it waits for nobody"
