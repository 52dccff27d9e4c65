"""Control tables outlive the version of tidegate that made them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
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
