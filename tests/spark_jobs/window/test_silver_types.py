"""Types of silver's columns that another writer changed hold their table; those of tidegate and of Delta's own widening
don't.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.window.shape.silver_types import check_types
from tests.spark_jobs.merge.test_silver_writer import UP, Shop
from tidegate import tables
from tidegate.delta.log import Change
from tidegate.delta.table.state import TableState
from tidegate.errors import SchemaMismatch
from tidegate.lake.silver.silver_tables import new_silver
from tidegate.merge.past import HISTORY, SOFT_DELETE
from tidegate.merge.silver_sql import SilverColumn, SilverShape
from tidegate.remedy import Needs
from tidegate.standing.causes import Cause

KEYED = SilverShape(
    (SilverColumn("id", "int"), SilverColumn("v", "bigint"), SilverColumn("l", "array<float>")), ("id",)
)
WIDENED = {"delta.typeChanges": [{"fromType": "long", "toType": "decimal(20,0)"}]}
FILE = {"add": {"path": "f", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}}


def retyped(state: TableState, name: str, kind: Any, said: dict[str, Any] | None = None) -> dict[str, Any]:
    """The metaData action of another writer."""
    fields = [
        field | {"type": kind, "metadata": said or {}} if field["name"] == name else field
        for field in state.schema["fields"]
    ]
    return {"metaData": state.metadata | {"schemaString": json.dumps({"type": "struct", "fields": fields})}}


@pytest.mark.parametrize(
    ("shape", "name", "kind", "said", "needs"),
    [
        (KEYED, "v", "string", None, Needs.ROWS),
        (KEYED, "v", "integer", None, Needs.ROWS),
        (KEYED, "v", "decimal(20,0)", None, Needs.ROWS),
        (KEYED, "v", "decimal(20,0)", WIDENED, None),
        (KEYED, "v", "long", None, None),
        (KEYED, "v", {"type": "struct", "fields": []}, None, Needs.ROWS),
        (KEYED, "l", {"type": "array", "elementType": "float", "containsNull": False}, None, None),
        (KEYED, "l", {"type": "array", "elementType": "double", "containsNull": True}, None, Needs.ROWS),
        (KEYED, tables.COMMIT_TS, "string", None, Needs.ROWS),
        (replace(KEYED, key=()), tables.OCCURRENCE, "string", None, Needs.ROWS),
        (replace(KEYED, past=SOFT_DELETE), "v", "string", None, Needs.NOTHING),
        (replace(KEYED, past=SOFT_DELETE), tables.DELETED, "string", None, Needs.NOTHING),
        (replace(KEYED, past=HISTORY), tables.VALID_TO, "timestamp", None, Needs.NOTHING),
        (replace(KEYED, routed=True), "v", "string", None, Needs.ROWS),
        (replace(KEYED, routed=True, past=SOFT_DELETE), "v", "string", None, Needs.ROWS),
        (replace(KEYED, routed=True), "v", "decimal(20,0)", None, None),
    ],
)
def test_a_type_that_nothing_explains_is_named_with_what_ends_it(
    shape: SilverShape, name: str, kind: Any, said: dict[str, Any] | None, needs: Needs | None
) -> None:
    """needs: None where the type is legal."""
    state = new_silver(shape)
    state = state.after(1, [retyped(state, name, kind, said), FILE])
    due = {column.name for column in shape.columns}
    check_types(shape, state, ())
    if needs is None:
        check_types(shape, state, due)
        return
    with pytest.raises(SchemaMismatch, match=f"column {name} ") as raised:
        check_types(shape, state, due)
    assert raised.value.needs is needs


def test_a_retyped_table_is_held_before_a_value_is_written_and_the_others_go_on(tmp_path: Path) -> None:
    it = Shop(None, tmp_path, "positional")
    it.ddl(10, "CREATE TABLE t (id INT PRIMARY KEY, v BIGINT)")
    it.ddl(11, "CREATE TABLE u (id INT PRIMARY KEY, v BIGINT)")
    rows = [(12, UP, {"id": 1, "v": 1})]
    it.apply(0, 15, {"t": rows, "u": rows})
    log = it.app.lake.log(tables.silver_path("d", "t"))
    version = log.update(lambda read: Change([retyped(read, "v", "string")], "ALTER")).version
    more = [(16, UP, {"id": 2, "v": 2})]
    held = it.apply(15, 20, {"t": more, "u": more}).held
    assert {name: (standing.cause, standing.needs) for name, standing in held.items()} == {
        "d.t": (Cause.MISMATCH, Needs.ROWS)
    }
    assert log.state().version == version
    assert sum(file.live_rows or 0 for file in it.app.lake.log(tables.silver_path("d", "u")).state().files) == 2
