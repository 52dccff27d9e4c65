"""When a pipeline's first cut was published is known as long as its lake is.

In:  a lake with cuts.
Out: a time.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

from tidegate import tables
from tidegate.delta.log import Change
from tidegate.delta.table.actions import remove
from tidegate.lake import control
from tidegate.lake.figures.status import first_cut_at
from tidegate.lake.files import LakeFiles


def publish(lake: LakeFiles, cut_ts: int) -> None:
    row = {"cut_ts": cut_ts, "table": "", "delta_version": -1, "applied_ts": cut_ts, "state": "active"}
    control.append(lake, tables.CUTS, [{**row, "published_at": datetime.now(UTC)}])


def test_the_time_of_the_first_cut_stays_when_its_row_has_gone(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    assert first_cut_at(lake) is None
    before = time.time()
    publish(lake, 1)
    after = time.time()
    time.sleep(0.01)
    publish(lake, 2)
    log = lake.log(tables.CUTS.path)
    first = next(file for file in log.state().files if file.bounds("cut_ts") == (1, 1))
    log.update(lambda _: Change([remove(first, data_change=True)], "FORGET"))
    assert control.read(lake, tables.CUTS)["cut_ts"].to_pylist() == [2]
    at = first_cut_at(LakeFiles(str(tmp_path)))
    assert at is not None
    assert before - 0.001 <= at <= after
