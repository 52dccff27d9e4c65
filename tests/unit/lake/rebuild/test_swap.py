"""What one commit makes of a live table: the rebuilt one's files, columns and progress, and nothing else of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.table.actions import add
from tidegate.errors import DeltaUnsupported, LakeRefused
from tidegate.lake.rebuild.swap import mark_rebuilt, rebuilt_ts, swapped
from tidegate.lake.silver.as_published import own_ts
from tidegate.lake.silver.silver_tables import add_columns, create_silver
from tidegate.merge.column import SilverColumn
from tidegate.merge.silver_sql import SilverShape

APP = "tidegate/shop/d.t"
SHAPE = SilverShape((SilverColumn("id", "int"), SilverColumn("v", "int")), ("id",))


def filled(place: Path, *stamps: int, shape: SilverShape = SHAPE) -> DeltaLog:
    log = DeltaLog(str(place))
    create_silver(log, shape)
    for at_ts in stamps:
        body = {"path": f"{place.name}{at_ts}", "partitionValues": {}, "size": 1, "modificationTime": 1}
        log.commit(log.state(), Change([add(body, data_change=True)], "UPSERT", {APP: at_ts}))
    return log


@pytest.fixture
def rebuilt(tmp_path: Path) -> DeltaLog:
    log = filled(tmp_path / "r", 50, 90)
    mark_rebuilt(log, APP, 100)
    return log


def test_one_commit_and_the_same_table(tmp_path: Path, rebuilt: DeltaLog) -> None:
    live = filled(tmp_path / "l", 50, 120)
    live.update(lambda _: Change([], "ADD COLUMNS", {f"{APP}/ddl": 110, "somebody's": 7}))
    before = live.state()
    after = live.update(lambda read: swapped(read, rebuilt.state(), APP, (), {}))
    assert after.version == before.version + 1
    assert after.table_id == before.table_id
    assert {file.path for file in after.files} == {"r50", "r90"}
    assert own_ts(after, APP) == after.transaction(APP) == 100, "also of DDL that is to come again"
    assert after.transaction("somebody's") == 7
    assert DeltaLog(live.place).state().schema == rebuilt.state().schema
    again = live.update(lambda read: swapped(read, rebuilt.state(), APP, (), {}))
    assert again.version == after.version, "done once"


def test_columns_are_those_of_the_rebuilt_one_and_nobodys_are_lost(tmp_path: Path, rebuilt: DeltaLog) -> None:
    live = filled(tmp_path / "l", 50)
    add_columns(live, [SilverColumn("later", "int")])
    with pytest.raises(LakeRefused, match="column later"):
        swapped(live.state(), rebuilt.state(), APP, (), {})
    after = live.update(lambda read: swapped(read, rebuilt.state(), APP, ("later",), {}))
    assert [field["name"] for field in after.schema["fields"]] == ["id", "v", "_tg_commit_ts"]
    assert after.clustering_columns == ("id",)


def test_an_owners_column_is_not_lost_to_a_computed_one_of_its_name(tmp_path: Path) -> None:
    rule = SilverColumn("later", "int", computed="by a rule")
    again = filled(tmp_path / "r", 50, shape=SilverShape((*SHAPE.columns, rule), ("id",)))
    mark_rebuilt(again, APP, 100)
    live = filled(tmp_path / "l", 50)
    add_columns(live, [SilverColumn("later", "int")])
    with pytest.raises(LakeRefused, match="column later isn't the source's"):
        swapped(live.state(), again.state(), APP, (), {})
    assert swapped(live.state(), again.state(), APP, ("later",), {}) is not None, "it was the source's"
    other = SilverShape((*SHAPE.columns, SilverColumn("later", "int", computed="by another")), ("id",))
    assert swapped(filled(tmp_path / "o", 50, shape=other).state(), again.state(), APP, (), {}) is not None


def test_clustering_comes_with_it(tmp_path: Path, rebuilt: DeltaLog) -> None:
    other = SilverShape((SilverColumn("id", "int"), SilverColumn("v", "int")), ("v",))
    live = filled(tmp_path / "l", 50, shape=other)
    assert live.state().clustering_columns == ("v",)
    assert live.update(lambda read: swapped(read, rebuilt.state(), APP, (), {})).clustering_columns == ("id",)


def test_what_the_table_asks_of_a_writer_is_kept(tmp_path: Path, rebuilt: DeltaLog) -> None:
    live = filled(tmp_path / "l", 50)
    metadata = live.state().metadata
    checks = {**metadata["configuration"], "delta.constraints.few": "v < 9"}
    live.update(lambda _: Change([{"metaData": {**metadata, "configuration": checks}}], "SET TBLPROPERTIES"))
    with pytest.raises(DeltaUnsupported, match="constraints"):
        live.update(lambda read: swapped(read, rebuilt.state(), APP, (), {}))


def test_a_rebuilt_table_says_that_it_is_whole(tmp_path: Path, rebuilt: DeltaLog) -> None:
    assert rebuilt_ts(rebuilt.state(), APP) == 100
    version = rebuilt.state().version
    mark_rebuilt(rebuilt, APP, 100)
    assert rebuilt.state().version == version
    assert rebuilt_ts(filled(tmp_path / "killed", 50).state(), APP) == 0
