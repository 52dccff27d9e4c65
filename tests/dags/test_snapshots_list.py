"""The page "tidegate" shows how far snapshots are."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

from tidegate.snapshot.chunks.spans import WHOLE
from tidegate.snapshot.progress.events import SnapshotState, TableProgress
from tidegate_airflow.page.snapshots_list import snapshots_list

NOW = 1_790_000_000.0
ONE = TableProgress(
    *("1", "s", "d", "<t>", SnapshotState.RUNNING, (WHOLE,)),
    rows=1500,
    waves=1,
    estimate=2000,
    began_at=datetime.fromtimestamp(NOW - 160, UTC),
    read_at=datetime.fromtimestamp(NOW - 10, UTC),
)


def cells(*going: TableProgress) -> list[list[str]]:
    rows = re.findall("<tr>(.*?)</tr>", snapshots_list(going, NOW))[1:]
    return [re.findall("<t[dh][^>]*>(.*?)</t[dh]>", row) for row in rows]


def test_a_table_is_shown_with_what_is_left_of_it() -> None:
    assert snapshots_list([], NOW) == ""
    assert cells(ONE) == [["d.&lt;t&gt; of s", "running", "1,500", "75 % of about 2,000", "10", "40.0 s"]]
    assert cells(replace(ONE, rows=2100))[0][3:] == ["99 % of about 2,000", "14", "0.0 s"], "an estimate"
    assert cells(replace(ONE, estimate=0))[0][3:] == ["1 key range left", "10", "-"]
    assert cells(replace(ONE, left=()))[0][3:] == ["all read", "10", "being applied"]


def test_all_of_them_have_one_end() -> None:
    other = replace(ONE, table="u", waves=0, rows=0, estimate=500)
    shown = snapshots_list([ONE, other], NOW)
    assert "2 tables are to be read: 1,500 rows so far of about 2,500, 10 rows/s. About 90.0 s left" in shown
    assert "done at 2026-09-21 14:14 UTC" in shown
    assert "isn't known yet" in snapshots_list([replace(other, estimate=0)], NOW).replace("&#x27;", "'")
    silent = snapshots_list([replace(ONE, read_at=datetime.fromtimestamp(NOW - 3600, UTC), began_at=ONE.began_at)], NOW)
    assert "isn&#x27;t known yet" in silent, "a clock that went back says no rate"
    paused = replace(ONE, state=SnapshotState.PAUSED)
    assert "to be read" not in snapshots_list([paused], NOW)
    assert cells(paused)[0][1:] == ["paused", "1,500", "75 % of about 2,000", "-", "when somebody resumes it"]


def test_of_rows_that_are_all_read_the_rest_of_the_way_is_said() -> None:
    read = replace(ONE, left=(), rows=2_000)
    said = "All 3,500 rows of 2 tables are read, and wait for apply"
    assert said in snapshots_list([read, replace(read, table="u", rows=1_500)], NOW)
    assert "to be read" not in snapshots_list([read], NOW)
    assert "are read" not in snapshots_list([replace(ONE, state=SnapshotState.PAUSED)], NOW)


def test_a_reader_that_slows_down_isnt_done_when_its_first_waves_said() -> None:
    """As where snapshot.bytes_per_second lets it sleep after a fast first wave."""
    fast = replace(ONE, rows=5_000, estimate=200_000)
    for silent, left in ((0, "39.0 s"), (1, "38.0 s"), (11, "7 min"), (50, "32 min")):
        going = replace(
            fast,
            began_at=datetime.fromtimestamp(NOW - silent - 1, UTC),
            read_at=datetime.fromtimestamp(NOW - silent, UTC),
        )
        assert cells(going)[0][5] == left, silent
        assert f"About {left} left" in snapshots_list([going], NOW)
    began, read = (datetime.fromtimestamp(NOW - ago, UTC) for ago in (121, 120))
    late = replace(going, began_at=began, read_at=read)
    assert "2 min ago: does a reader run?" in snapshots_list([late], NOW)
    assert "2 min ago: 2 waves wait for apply." in snapshots_list([replace(late, waiting=("w1", "w2"))], NOW)


def test_of_many_tables_those_that_are_read_come_first() -> None:
    waiting = [replace(ONE, table=f"a{n:03}", waves=0, rows=0) for n in range(60)]
    shown = cells(*waiting, ONE)
    assert (len(shown), shown[0][0], shown[1][0]) == (50, "d.&lt;t&gt; of s", "d.a000 of s")
    assert snapshots_list([*waiting, ONE], NOW).endswith("<p>and 11 more</p></section>")


def test_a_table_that_is_held_has_no_seconds_left() -> None:
    waits = replace(ONE, waiting=("w1",))
    assert "when the table is no longer held" in snapshots_list([waits], NOW, is_held=lambda _: True)
    assert "when the table" not in snapshots_list([ONE], NOW, is_held=lambda _: True), "no wave of it waits"
