"""Control tables outlive the version of tidegate that made them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa

from tidegate import tables
from tidegate.lake import control
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
