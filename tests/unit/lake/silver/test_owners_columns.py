"""Silver's columns after a statement: the source's as it has them, the owner's as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.table.actions import metadata, protocol
from tidegate.errors import SchemaMismatch
from tidegate.lake.silver.silver_tables import add_columns, create_silver, empty_silver, reshaped
from tidegate.merge.column import SilverColumn
from tidegate.merge.silver_sql import SilverShape

OLD = SilverShape((SilverColumn("id", "int"), SilverColumn("v", "int"), SilverColumn("gone", "string")), ("id",))
NEW = SilverShape((SilverColumn("id", "int"), SilverColumn("v", "bigint")), ("id",))
NOTE = SilverColumn("note", "string", "the owner's")
SOURCES = frozenset({"id", "v", "gone"})
_MAPPED = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "7"}


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    made = DeltaLog(str(tmp_path))
    create_silver(made, OLD)
    return made


def names(log: DeltaLog) -> list[str]:
    return [field["name"] for field in log.state().schema["fields"]]


def test_the_owners_columns_stay_and_those_that_left_the_source_go(log: DeltaLog) -> None:
    add_columns(log, [NOTE])
    before = log.state().schema["fields"][-1]
    log.commit(log.state(), Change(reshaped(log.state(), NEW, SOURCES), "REPLACE COLUMNS"))
    assert names(log) == ["id", "v", "_tg_commit_ts", "note"]
    assert log.state().schema["fields"][-1] == before
    empty_silver(log, ("rows", 2), OLD, frozenset({"id", "v"}))
    assert names(log) == ["id", "v", "gone", "_tg_commit_ts", "note"]


def test_of_columns_that_nobody_knows_none_stays(log: DeltaLog) -> None:
    add_columns(log, [NOTE])
    empty_silver(log, ("rows", 1), NEW)
    assert names(log) == ["id", "v", "_tg_commit_ts"]


@pytest.mark.parametrize("text", ["gone <> ''", "length(`gone`) > 1", "V > 0 AND GONE IS NOT NULL"])
def test_a_column_that_a_constraint_names_does_not_go(log: DeltaLog, text: str) -> None:
    state = log.state()
    configuration = {**state.configuration, "delta.constraints.own": text}
    state = log.commit(state, Change([{"metaData": {**state.metadata, "configuration": configuration}}], "ALTER"))
    with pytest.raises(SchemaMismatch, match=r"constraint own .* names column gone"):
        reshaped(state, NEW, SOURCES)
    assert reshaped(state, OLD, SOURCES)


@pytest.mark.parametrize("text", ["v <> 'gone'", "v > 0", "`v` < 5 -- ago"])
def test_a_constraint_on_other_columns_is_no_hindrance(log: DeltaLog, text: str) -> None:
    state = log.state()
    configuration = {**state.configuration, "delta.constraints.own": text}
    state = log.commit(state, Change([{"metaData": {**state.metadata, "configuration": configuration}}], "ALTER"))
    assert reshaped(state, NEW, SOURCES)


def test_a_column_that_comes_to_a_mapped_table_is_mapped(tmp_path: Path) -> None:
    log = DeltaLog(str(tmp_path))
    known = {"delta.columnMapping.id": 7, "delta.columnMapping.physicalName": "id"}
    field = {"name": "id", "type": "integer", "nullable": True, "metadata": known}
    made = [protocol(["columnMapping", "clustering", "domainMetadata"])]
    made.append(metadata({"type": "struct", "fields": [field]}, _MAPPED))
    log.commit(log.state(), Change(made, "CREATE TABLE"))
    add_columns(log, [NOTE])
    first, note = log.state().schema["fields"]
    assert first == field
    assert note["metadata"]["delta.columnMapping.id"] == 8
    assert note["metadata"]["delta.columnMapping.physicalName"].startswith("col-")
    assert log.state().configuration["delta.columnMapping.maxColumnId"] == "8"
    empty_silver(log, ("rows", 1), OLD, frozenset({"id"}))
    state = log.state()
    physical = {one["name"]: one["metadata"]["delta.columnMapping.physicalName"] for one in state.schema["fields"]}
    assert set(physical) == {"id", "v", "gone", "_tg_commit_ts", "note"}
    assert physical["note"] == note["metadata"]["delta.columnMapping.physicalName"]
    assert state.clustering_columns == (physical["id"],)
