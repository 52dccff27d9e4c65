"""Waiting for a cut: what a source had written is found in bronze by looking at what came since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.opened import opened
from tests.support.segments import segment
from tidegate import tables
from tidegate.delta.log import Change
from tidegate.errors import VerifyError
from tidegate.lake import control
from tidegate.lake.bronze.captured_places import Visible
from tidegate.lake.bronze.log import BronzeFile
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.cuts.published import Cut
from tidegate.lake.files import LakeFiles
from tidegate.tables import SegmentFlag
from tidegate.verify import cut as verify_cut
from tidegate.verify.cut import LakeReader

__all__ = ["opened"]  # a fixture

HERE = (1, "uuid")


def capture(lake: LakeFiles, *seqs: int, server_id: int = 1) -> None:
    """Segment n ends at binlog.000001:100n, its transactions at resolved_ts 10n + 5; a file for each."""
    bronze = Bronze(lake, "one")
    for seq in seqs:
        mine = replace(segment(seq), start_pos=100 * seq - 100, end_pos=100 * seq, server_id=server_id)
        bronze.append([replace(mine, flags=SegmentFlag(0))])


def publish(lake: LakeFiles, cut_ts: int, **versions: int) -> None:
    rows = [
        {"cut_ts": cut_ts, "table": name, "delta_version": version, "applied_ts": cut_ts, "state": "active"}
        | {"published_at": datetime.now(UTC)}
        for name, version in {"": -1, **versions}.items()
    ]
    control.append(lake, tables.CUTS, rows)


def test_of_bronze_s_log_each_look_reads_only_what_came_since_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, reader = LakeFiles(str(tmp_path)), LakeReader(str(tmp_path), {}, "p", {"one": HERE})
    capture(lake, *range(1, 9))
    read: list[str] = []
    real = BronzeFile.of

    def noted(add: Mapping[str, Any]) -> BronzeFile:
        read.append(add["path"])
        return real(add)

    monkeypatch.setattr(BronzeFile, "of", noted)
    counts = []
    for seq in (9, 10, 11):
        read.clear()
        assert reader.covered_by("one", "binlog.000001", 1950) is None
        counts.append(len(read))
        capture(lake, seq)
    assert counts == [8, 1, 1]


def test_without_positions_the_newest_cut_is_the_one(tmp_path: Path) -> None:
    lake, reader = LakeFiles(str(tmp_path)), LakeReader(str(tmp_path), {}, "p", {})
    with pytest.raises(VerifyError, match="there is no cut, not any"):
        reader.wait({}, 0)
    publish(lake, 7, **{"a.b": 1})
    publish(lake, 9, **{"a.b": 2})
    found = reader.wait({}, 0)
    assert (found.cut_ts, versions(found)) == (9, {"a.b": 2})


def test_what_a_wait_is_for_is_told_once_before_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_cut, "VERIFY_TOLD_SECONDS", 0.0)
    lake, reader = LakeFiles(str(tmp_path)), LakeReader(str(tmp_path), {}, "p", {"one": HERE})
    lines: list[str] = []
    with pytest.raises(VerifyError, match="not captured"):
        reader.wait({"one": ("binlog.000001", 200)}, 0.6, lines.append)
    assert lines == ["waits until capture of one has landed binlog.000001:200 in the lake, up to 0.6 s"]
    lines.clear()
    capture(lake, 1, 2)
    publish(lake, 1, **{"d.a": 1})
    with pytest.raises(VerifyError, match="not 25"):
        reader.wait({"one": ("binlog.000001", 200)}, 0.6, lines.append)
    assert len(lines) == 1
    assert lines[0].startswith("waits until apply has come to 1970-")


def test_a_read_at_a_timestamp_sees_all_up_to_it(tmp_path: Path) -> None:
    reader = LakeReader(str(tmp_path), {}, "p", {"one": HERE})
    assert reader.visible_ts("one", Visible("", 0, at_ts=77)) == 77


def versions(cut: Cut) -> dict[str, int]:
    return {name: table.version for name, table in cut.tables.items()}


def test_each_look_at_bronze_opens_only_what_came_since_the_last(tmp_path: Path, opened: list[str]) -> None:
    lake, reader = LakeFiles(str(tmp_path)), LakeReader(str(tmp_path), {}, "p", {"one": HERE})
    assert reader.covered_by("one", "binlog.000001", 1) is None
    capture(lake, *range(1, 9))
    opened.clear()
    assert reader.covered_by("one", "binlog.000001", 950) is None
    assert len(opened) == 1, "what the server wrote before lies lower"
    assert reader.covered_by("one", "binlog.000001", 950) is None
    assert len(opened) == 1
    capture(lake, 9, 10, 11)
    opened.clear()
    assert reader.covered_by("one", "binlog.000001", 950) == 105
    assert len(opened) == 3
    assert reader.covered_by("two", "binlog.000001", 950) is None


def test_positions_of_a_server_before_a_failover_say_nothing(tmp_path: Path, opened: list[str]) -> None:
    lake, reader = LakeFiles(str(tmp_path)), LakeReader(str(tmp_path), {}, "p", {"one": (2, "uuid")})
    capture(lake, *range(1, 5), server_id=1)
    opened.clear()
    assert reader.covered_by("one", "binlog.000001", 50) is None
    assert len(opened) == 1
    assert reader.covered_by("one", "binlog.000001", 50) is None
    assert len(opened) == 1
    capture(lake, 5, 6, server_id=2)
    assert reader.covered_by("one", "binlog.000001", 50) == 55


def test_a_clone_with_the_same_server_id_is_another_server(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    capture(lake, 1)
    clone = LakeReader(str(tmp_path), {}, "p", {"one": (1, "another")})
    assert clone.covered_by("one", "binlog.000001", 50) is None
    assert clone.visible_ts("one", Visible("binlog.000001", 950)) == 0


@pytest.mark.parametrize("packed", [False, True])
def test_places_of_a_log_before_it_was_reset_cover_nothing(tmp_path: Path, packed: bool) -> None:
    """Segments 1 to 8 are of the log before; 9, at its place 100, is of the new one."""
    lake, reader = LakeFiles(str(tmp_path)), LakeReader(str(tmp_path), {}, "p", {"one": HERE})
    before = [replace(segment(seq), start_pos=100 * seq - 100, end_pos=100 * seq) for seq in range(1, 9)]
    after = replace(segment(9), start_pos=0, end_pos=100)
    runs = [[*before, after]] if packed else [before, [after]]
    for run in runs:
        Bronze(lake, "one").append([replace(one, server_id=1, flags=SegmentFlag(0)) for one in run])
    assert reader.covered_by("one", "binlog.000001", 50) == 95, "not what the old one had at that place"
    assert reader.covered_by("one", "binlog.000001", 300) is None, "the new log hasn't come so far"


def test_a_cut_is_read_once_it_is_there_and_shows_the_newest_row_of_each_table(
    tmp_path: Path, opened: list[str]
) -> None:
    lake, reader = LakeFiles(str(tmp_path)), LakeReader(str(tmp_path), {}, "p", {"one": HERE})
    assert reader.newest_cut() is None
    capture(lake, 1, 2)
    for cut_ts in range(1, 15):
        publish(lake, cut_ts, **{"d.a": cut_ts, "d.b": 1})
    opened.clear()
    with pytest.raises(VerifyError, match=r"the newest cut is 14 \(1970-.*\), not 25 \(1970-.*\), after"):
        reader.wait({"one": ("binlog.000001", 200)}, 0)
    assert not [path for path in opened if path.startswith(tables.CUTS.path)]
    publish(lake, 25, **{"d.a": 30})
    publish(lake, 25, **{"d.a": 31})
    found = reader.wait({"one": ("binlog.000001", 200)}, 0)
    assert (found.cut_ts, versions(found)) == (25, {"d.a": 31, "d.b": 1})


def test_of_a_table_the_version_counts_that_people_made_and_not_applys_next(tmp_path: Path) -> None:
    reader = LakeReader(str(tmp_path), {}, "p", {"one": HERE})
    path = tables.silver_path("d", "t")
    write_deltalake(reader.lake.uri(path), pa.table({"id": [1, 2, 3]}))
    there = DeltaTable(reader.lake.uri(path))
    assert reader.version_found(path, 0) == 0
    there.delete("id = 1")
    there.optimize.compact()
    assert reader.version_found(path, 0) == there.version() > 0
    log, before = reader.lake.log(path), there.version()
    log.commit(log.state(), Change([], "OPTIMIZE"))  # tidegate's own, of which no row is another
    log.commit(log.state(), Change([], "WRITE", {tables.app_id("p", "d.t"): 7}))
    there.update_incremental()
    there.delete("id = 2")
    assert reader.version_found(path, 0) == before + 1, "apply's next window is of the next cut, and what is behind it"
    assert reader.version_found(path, before + 2) == before + 3
