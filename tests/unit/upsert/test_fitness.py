"""What a live file says, and which tables aren't written by position."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from tests.support.table_states import table_state
from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import TableState
from tidegate.upsert.fitness import why_not

COLUMN = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
PROPERTIES = {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "50"}
FEATURES = frozenset({"deletionVectors", "clustering", "domainMetadata", "appendOnly", "invariants", "timestampNtz"})
ELSEWHERE = {"path": "s3://other/f.parquet", "size": 1}
FINE = table_state([COLUMN], PROPERTIES, features=FEATURES)


def with_property(name: str, value: str = "true") -> TableState:
    return table_state([COLUMN], {**PROPERTIES, name: value}, features=FEATURES)


def with_column(**changes: Any) -> TableState:
    return table_state([COLUMN, {**COLUMN, "name": "c", **changes}], PROPERTIES, features=FEATURES)


def test_a_table_as_tidegate_makes_it_is_written_by_position() -> None:
    assert why_not(FINE) is None


@pytest.mark.parametrize(
    ("snapshot", "phrase"),
    [
        (with_property("delta.enableChangeDataFeed"), "change data feed"),
        (with_property("delta.enableRowTracking"), "row tracking"),
        (with_property("delta.appendOnly"), "append-only"),
        (with_property("delta.columnMapping.mode", "name"), "column mapping"),
        (with_property("delta.constraints.positive", "id > 0"), "CHECK constraint"),
        (with_property("delta.enableDeletionVectors", "false"), "deletion vectors are off"),
        (with_property("delta.enableIcebergCompatV2"), "Iceberg"),
        (with_property("delta.universalFormat.enabledFormats", "iceberg"), "another format"),
        (table_state([COLUMN], PROPERTIES, features=FEATURES - {"deletionVectors"}), "deletion vectors are off"),
        (table_state([COLUMN], PROPERTIES, features=FEATURES | {"somethingNew"}), "somethingNew"),
        (with_column(metadata={"delta.generationExpression": "id"}), "column c is generated"),
        (with_column(metadata={"delta.identity.start": 1}), "column c is generated"),
        (with_column(metadata={"delta.invariants": "{}"}), "column c"),
        (with_column(metadata={"delta.typeChanges": []}), "was widened"),
        (with_column(metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(4)"}), "column c"),
        (with_column(type={"type": "map"}), "type map"),
        (with_column(type="variant"), "type variant"),
        (
            table_state([COLUMN], PROPERTIES, features=FEATURES, files=[{"path": "s3://other/f.parquet", "size": 1}]),
            "files of another table",
        ),
    ],
)
def test_what_a_positional_write_would_break_goes_by_merge(snapshot: TableState, phrase: str) -> None:
    assert phrase in (why_not(snapshot) or "")


def test_a_file_tells_its_rows_and_bounds_and_travels() -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "x" * 20, "offset": 1, "sizeInBytes": 40, "cardinality": 3}
    stats = '{"numRecords":10,"minValues":{"id":1},"maxValues":{"id":9,"c":2}}'
    file = LiveFile(
        {"path": "a%20b", "size": 5, "partitionValues": {"p": None}, "stats": stats, "deletionVector": vector}
    )
    for copy in (file, pickle.loads(pickle.dumps(file))):
        assert (copy.local_path, copy.size, copy.rows, copy.live_rows) == ("a b", 5, 10, 7)
        assert (copy.bounds("id"), copy.bounds("c")) == ((1, 9), None)
        assert copy == file
    bare = LiveFile({"path": "f", "size": 5})
    assert (bare.rows, bare.live_rows, bare.bounds("id"), bare.deletion_vector) == (None, None, None, None)
