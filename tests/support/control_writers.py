"""Processes that write to one control table at the same time.

In:  the lake; what each of them does.
Out: appends_and_compacts(), races(): what runs in a process of its own.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from typing import Any

import pyarrow as pa

from tidegate import tables
from tidegate.errors import CommitConflict
from tidegate.lake.control import ControlTables, application_version, load, pack
from tidegate.lake.control.upkeep import compact, rewrite
from tidegate.lake.files import LakeFiles

PARTS = ("appends", "first", "second")


def _row(cut_ts: int) -> dict[str, Any]:
    now = datetime.now(UTC)
    return {"cut_ts": cut_ts, "table": "", "delta_version": -1, "applied_ts": 0, "state": "active", "published_at": now}


def appends_and_compacts(lake: LakeFiles, start: int) -> None:
    """A dozen rows behind start, of which the fifth is removed again."""
    mine = ControlTables(lake)
    for number in range(12):
        mine.append(tables.CUTS, [_row(start + number + 1)])
        mine._appends[tables.CUTS.path] = 1 << 10
        mine.tidy()
        if number % 3 == 0:
            compact(lake, tables.CUTS, files_min=2)
            rewrite(lake, tables.CUTS, _without_fifths)


def _without_fifths(rows: pa.Table) -> pa.Table:
    return rows.filter([cut % 100 != 5 for cut in rows["cut_ts"].to_pylist()])


def races(pipe: Connection, lake: LakeFiles, part: str, times: int) -> None:
    """One appends, two compact until its last row is there; tells how often it gave way."""
    mine, lost = ControlTables(lake), 0
    pipe.send("ready")
    pipe.recv()
    for number in range(1, times + 1) if part == "appends" else ():
        mine.append(tables.CUTS, [_row(number)], ("appends", number))
    while application_version(lake, tables.CUTS, "appends") != times:
        try:
            pack(lake, tables.CUTS, load(lake, tables.CUTS), smaller_bytes=1 << 20)
        except CommitConflict:
            lost += 1
        time.sleep(0.01)
    pipe.send(lost)
