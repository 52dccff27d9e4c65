"""Silver whose computed columns aren't computed from what it has.

In:  a silver table, as another writer left it.
Out: the rows with other values are counted, those without any too.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from tidegate.computed.row_expressions import ComputedColumn
from tidegate.verify.silver_side import Silver, SilverSide


def test_a_row_whose_value_can_not_be_had_has_another(tmp_path: Path) -> None:
    """An error would hide what else differs, and show the value."""
    rows = {"a": ["1", "2", "a secret", "another", None], "b": [1, 7, 3, None, None]}
    write_deltalake(tmp_path, pa.table(rows, schema=pa.schema({"a": pa.string(), "b": pa.int32()})))
    side = SilverSide()
    silver = Silver(str(tmp_path), 0, ())
    others = side.otherwise(silver, [ComputedColumn("b", "int", "a::INT"), ComputedColumn("a", "string", "a")])
    assert others == {"b": 3, "a": 0}
    side.close()
