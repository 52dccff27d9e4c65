"""The page "tidegate" shows how far snapshots are."""

from __future__ import annotations

import re
from dataclasses import replace

from tidegate.snapshot.chunks.spans import WHOLE
from tidegate.snapshot.progress.events import SnapshotState, TableProgress
from tidegate_airflow.page.snapshots_list import snapshots_list

ONE = TableProgress("1", "s", "d", "<t>", SnapshotState.RUNNING, (WHOLE,), rows=1500, waves=1, estimate=2000)


def cells(*going: TableProgress) -> list[list[str]]:
    return [re.findall("<td>(.*?)</td>", row) for row in re.findall("<tr>(.*?)</tr>", snapshots_list(going))[1:]]


def test_a_table_is_shown_with_what_is_left_of_it() -> None:
    assert snapshots_list([]) == ""
    assert cells(ONE) == [["d.&lt;t&gt; of s", "running", "1,500", "about 25 %"]]
    assert cells(replace(ONE, rows=2100))[0][3] == "about 1 %", "an estimate"
    assert cells(replace(ONE, estimate=0))[0][3] == "1 key range"
    assert cells(replace(ONE, left=()))[0][3] == "all read, being applied"


def test_of_many_tables_those_that_are_read_come_first() -> None:
    waiting = [replace(ONE, table=f"a{n:03}", waves=0, rows=0) for n in range(60)]
    shown = cells(*waiting, ONE)
    assert (len(shown), shown[0][0], shown[1][0]) == (50, "d.&lt;t&gt; of s", "d.a000 of s")
    assert snapshots_list([*waiting, ONE]).endswith("<p>and 11 more</p></section>")
