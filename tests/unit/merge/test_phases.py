"""Rows are applied with the columns in force at their commit_ts: a window is cut at each DDL."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tidegate.merge.phases import DdlPhase, RowsPhase, phases
from tidegate.schema.model.columns import Column, TableVersion, VersionStatus
from tidegate.schema.model.partitions import RowsMoved


def version(commit_ts: int, kind: str = "alter", status: VersionStatus = VersionStatus.ACTIVE) -> TableVersion:
    columns = (Column(1, "id", "int", nullable=False),)
    return TableVersion("s", "d", "t", 1, commit_ts, "f", 4, kind, "", columns, (1,), "utf8mb4", status)


def test_a_window_without_ddl_is_one_phase() -> None:
    assert phases(10, 20, [], rows_stay=False) == [RowsPhase(10, 20)]


def test_rows_of_the_ddl_s_own_transaction_come_after_it() -> None:
    change = (version(1), version(15))
    assert phases(10, 20, [change], rows_stay=False) == [
        RowsPhase(10, 14), DdlPhase(15, (change,)), RowsPhase(14, 20),
    ]  # fmt: skip


def test_nothing_before_a_truncate_is_done_at_all() -> None:
    altered, change = (version(1), version(12)), (version(12), version(15, "truncate"))
    assert phases(10, 20, [altered, change], rows_stay=False) == [DdlPhase(15, (change,)), RowsPhase(14, 20)]


def test_rows_that_a_partition_gave_away_are_written_before_a_truncate() -> None:
    away = replace(version(12), moved=RowsMoved("exchanged", ("p",), ("d", "u")))
    first, then = (version(1), away), (away, version(15, "truncate"))
    assert phases(10, 20, [first, then], rows_stay=False)[:2] == [RowsPhase(10, 11), DdlPhase(12, (first,))]


def test_rows_of_other_shards_before_one_shard_s_truncate_are_written() -> None:
    change = (version(1), version(15, "truncate"))
    assert phases(10, 20, [change], rows_stay=True)[0] == RowsPhase(10, 14)


def test_changes_outside_the_window_do_not_count() -> None:
    assert phases(10, 20, [(None, version(10)), (None, version(21))], rows_stay=False) == [RowsPhase(10, 20)]


@given(stamps=st.sets(st.integers(1, 60), max_size=8), after=st.integers(0, 40), width=st.integers(1, 30))
def test_phases_cover_the_window_without_gap_and_in_order(stamps: set[int], after: int, width: int) -> None:
    upto = after + width
    found = phases(after, upto, [(version(0), version(stamp)) for stamp in stamps], rows_stay=False)
    covered = sorted(
        ts for phase in found if isinstance(phase, RowsPhase) for ts in range(phase.after_ts + 1, phase.upto_ts + 1)
    )
    assert covered == list(range(after + 1, upto + 1))
    ends = [phase.upto_ts for phase in found]
    assert ends == sorted(ends)
    assert [p.upto_ts for p in found if isinstance(p, DdlPhase)] == sorted(s for s in stamps if after < s <= upto)


def test_rows_that_another_name_takes_over_are_written_first() -> None:
    away = (version(1), version(15, "rename", VersionStatus.DROPPED))
    again = (away[1], version(17, "create"))
    dropped = (again[1], version(18, "drop", VersionStatus.DROPPED))
    assert phases(10, 20, [away, again, dropped], rows_stay=False) == [
        RowsPhase(10, 14), DdlPhase(15, (away,)), DdlPhase(18, (dropped,)), RowsPhase(17, 20),
    ]  # fmt: skip


def test_rows_that_came_by_a_rename_and_were_truncated_need_not_come() -> None:
    came, emptied = (None, version(12, "rename")), (version(12, "rename"), version(15, "truncate"))
    assert phases(10, 20, [came, emptied], rows_stay=False) == [DdlPhase(15, (emptied,)), RowsPhase(14, 20)]
