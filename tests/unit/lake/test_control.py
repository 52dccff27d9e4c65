"""Control tables outlive the version of tidegate that made them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tidegate import tables
from tidegate.lake import control
from tidegate.lake.control import ControlTables
from tidegate.lake.files import LakeFiles

ROW = {"source": "s", "seq": 1, "cut_ts": 9, "payload_bytes": 3, "decoded_bytes": 3, "ignored_bytes": 0}
ROW |= {"quarantined_bytes": 0, "ignored_by_rule": "{}", "rows": 1}


def test_a_table_of_an_older_version_is_read_and_gets_the_new_column(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    fields = [field for field in tables.LEDGER.schema if field.name != "null_dates"]
    control.append(lake, dataclasses.replace(tables.LEDGER, schema=pa.schema(fields)), [ROW])
    assert control.read(lake, tables.LEDGER)["null_dates"].to_pylist() == [None]
    control.append(lake, tables.LEDGER, [ROW | {"seq": 2, "null_dates": 5}])
    rows = control.read(lake, tables.LEDGER, columns=["null_dates"], filters=[("seq", "=", 2)])
    assert rows.to_pydict() == {"null_dates": [5]}
    assert sorted(control.read(lake, tables.LEDGER)["seq"].to_pylist()) == [1, 2]


def test_tables_kept_open_take_in_what_others_wrote_and_stay_few_files(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    mine = ControlTables(lake)
    assert mine.version(tables.LEDGER) == -1
    for seq in range(130):
        mine.append(tables.LEDGER, [ROW | {"seq": seq, "null_dates": 0}], ("app", seq))
        if seq == 60:
            control.append(lake, tables.LEDGER, [ROW | {"seq": 1000, "null_dates": 0}])
    assert mine.version(tables.LEDGER) == control.version(lake, tables.LEDGER)
    mine.tidy()
    opened = DeltaTable(lake.uri(tables.LEDGER.path))
    assert len(opened.file_uris()) == 1
    mine.append(tables.LEDGER, [ROW | {"seq": 130, "null_dates": 0}], ("app", 130))
    rows = control.read(lake, tables.LEDGER, columns=["seq"])["seq"].to_pylist()
    assert sorted(rows) == [*range(131), 1000]
    assert control.application_version(lake, tables.LEDGER, "app") == 130


def test_an_append_that_another_process_made_first_is_not_made_again(tmp_path: Path) -> None:
    """What is held open is older than the other's commit: delta-rs refuses, and a second look finds it."""
    lake = LakeFiles(str(tmp_path))
    mine = ControlTables(lake)
    mine.append(tables.LEDGER, [ROW | {"seq": 1, "null_dates": 0}], ("app", 1))
    ControlTables(lake).append(tables.LEDGER, [ROW | {"seq": 2, "null_dates": 0}], ("app", 2))
    mine.append(tables.LEDGER, [ROW | {"seq": 2, "null_dates": 0}], ("app", 2))
    assert sorted(control.read(lake, tables.LEDGER)["seq"].to_pylist()) == [1, 2]


def test_the_last_row_of_each_table_is_found_with_few_rows_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long history of few tables, in many small files and in one large one."""
    lake = LakeFiles(str(tmp_path))
    rows = [_cut(cut_ts, f"d.t{cut_ts % 7}", version=cut_ts) for cut_ts in range(1, 3_001)]
    for begin in range(0, 300, 3):
        control.append(lake, tables.CUTS, rows[begin : begin + 3])
    control.append(lake, tables.CUTS, rows[300:])
    control.append(lake, tables.CUTS, [_cut(3_000, "d.t1", version=9)])  # published later, of the newest cut
    most = []

    def counted(parts: pa.Table, by: Sequence[str], order: Sequence[str]) -> pa.Table:
        most.append(parts.num_rows)
        return real(parts, by, order)

    real = control.last_of
    monkeypatch.setattr(control, "last_of", counted)
    monkeypatch.setattr(control, "_PART_ROWS", 100)
    monkeypatch.setattr(control, "_FOLDED_ROWS", 100)
    found = control.newest(lake, tables.CUTS, by=["table"], order=["cut_ts", "published_at"], columns=["delta_version"])
    assert sorted(found["delta_version"].to_pylist()) == sorted({9, *range(2_994, 3_001)} - {2_997})
    assert max(most) <= 2 * 100 + 7
    assert len(most) <= 33, "files of a few rows are looked at together"


def test_statistics_rule_out_files_from_both_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = LakeFiles(str(tmp_path))
    for cut_ts in range(1, 6):
        control.append(lake, tables.CUTS, [_cut(cut_ts, "", version=-1)])
    opened = []

    def noted(self: LakeFiles, path: str) -> Any:
        opened.append(path)
        return real(self, path)

    real = LakeFiles.open
    monkeypatch.setattr(LakeFiles, "open", noted)
    for filters, wanted in (
        ([("cut_ts", ">=", 4)], [4, 5]),
        ([("cut_ts", "<=", 2), ("table", "in", ["", "d.t"])], [1, 2]),
        ([("cut_ts", "=", 3)], [3]),
    ):
        opened.clear()
        found = control.read(lake, tables.CUTS, columns=["cut_ts"], filters=filters)["cut_ts"]
        assert sorted(found.to_pylist()) == wanted
        assert len(opened) == len(wanted)


def _cut(cut_ts: int, table: str, version: int) -> dict[str, Any]:
    row = {"cut_ts": cut_ts, "table": table, "delta_version": version, "applied_ts": cut_ts, "state": "active"}
    return row | {"published_at": datetime.now(UTC)}


def test_a_long_table_comes_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "_PART_ROWS", 100)
    lake = LakeFiles(str(tmp_path))
    assert list(control.pieces(lake, tables.CUTS)) == []
    control.append(lake, tables.CUTS, [_cut(cut_ts, f"d.t{cut_ts % 2}", version=1) for cut_ts in range(1_000)])
    found = list(control.pieces(lake, tables.CUTS, filters=[("table", "in", ["d.t1"])]))
    assert [piece.num_rows for piece in found] == [50] * 10
