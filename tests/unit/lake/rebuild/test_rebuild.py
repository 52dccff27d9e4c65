"""What a rebuild takes along, where it begins, and which moment is meant."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tidegate import config, tables
from tidegate.commit_ts import compose
from tidegate.errors import UsageError
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.rebuild.rebuild_lake import (
    OnlyTables,
    RebuildLake,
    begin_ts,
    moment,
    physical_tables,
    silver_version,
)
from tidegate.lake.rebuild.rebuilt_parents import TableBetween, begin_with_parents, cascade_parents, reshaped_at
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.partitions import SPLIT, RowsMoved
from tidegate.schema.model.unlogged import ForeignKey
from tidegate.table_names import Physical

ALL = config.Tables(include=("*.*",), routes=(config.Route(match=r"d.shard_\d", to="d.all"),))


def version(table: str, ids: list[int], *, at: int = 10, kind: str = "create", **more: Any) -> dict[str, Any]:
    columns = tuple(Column(number, f"c{number}", "int") for number in ids)
    return TableVersion("a", "d", table, 1, at, "f", 4, kind, "", columns, (), "utf8mb4", **more).to_row()


def history(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=tables.SCHEMA_HISTORY.schema)


def along(rows: pa.Table, table: str) -> set[str]:
    return {name[2] for name in physical_tables([rows[:4], rows[4:]], ALL, table, ["a"])}


def test_tables_that_gave_rows_by_renames_partitions_and_routes_come_along() -> None:
    rows = history(
        version("was", [1, 2]),
        version("now", [1, 2, 3], kind="rename"),
        version("later", [3], kind="rename"),
        version("stranger", [9]),
        version("shard_1", [20]),
        version("shard_2", [30]),
        version("moved_in", [30]),
        version("whole", [40]),
        version("piece", [50], moved=RowsMoved(SPLIT, ("p0",), ("d", "whole"))),
    )
    assert along(rows, "d.later") == {"was", "now", "later"}
    assert along(rows, "d.stranger") == {"stranger"}
    assert along(rows, "d.all") == {"shard_1", "shard_2", "moved_in"}
    assert along(rows, "d.piece") == along(rows, "d.whole") == {"whole", "piece"}
    assert along(rows, "d.nothing") == set()
    assert physical_tables([rows], ALL, "d.later", ["other"]) == set()


def test_parents_that_change_below_the_log_come_along_with_what_gave_them_rows() -> None:
    def keys(*parents: str) -> dict[str, Any]:
        return {"foreign_keys": tuple(ForeignKey(f"k_{name}", ("d", name), "CASCADE") for name in parents)}

    rows = history(
        version("top", [1]),
        version("top_before", [2]),
        version("middle_before", [3], **keys("top_before")),
        version("middle", [3], kind="rename", **keys("top")),
        version("root_before", [4]),
        version("root", [4], kind="rename"),
        version("below", [5], **keys("middle", "root")),
        version("beside", [6], **keys("root")),
    )
    above, between = cascade_parents(lambda: [rows[:3], rows[3:]], ALL, {table("below")})
    assert {name.table for name in above} == {"top", "top_before", "middle", "middle_before", "root"}
    both = TableBetween(frozenset({table("middle"), table("middle_before")}), frozenset({table("below")}))
    assert between == [both, both]
    above, between = cascade_parents(lambda: [rows], ALL, {table("beside")})
    assert ({name.table for name in above}, between) == ({"root"}, [])


def table(name: str) -> Physical:
    return Physical("a", "d", name)


def test_it_begins_where_each_parent_between_has_its_rows_before_its_children_begin() -> None:
    """C below p below q; x is made later, below q."""
    p = [version("p", [1], at=at, kind=kind) for at, kind in ((10, "create"), (60, "snapshot"), (90, "snapshot"))]
    q = [version("q", [2], at=at, kind=kind) for at, kind in ((5, "create"), (50, "truncate"), (70, "snapshot"))]

    def begun(begin: int, *, emptied: bool = True) -> int:
        between = [
            (TableBetween(frozenset({table("p")}), frozenset({table("c")})), p, emptied),
            (TableBetween(frozenset({table("q")}), frozenset({table("p"), table("x")})), q, emptied),
        ]
        return begin_with_parents(begin, 200, {table("c")}, between)

    assert [begun(at) for at in (99, 89, 88, 60, 59, 58, 9, 3)] == [69, 69, 49, 49, 49, 4, 4, 3]
    assert begun(99, emptied=False) == 4, "rows of the past stay over a snapshot"
    assert begin_with_parents(99, 200, {table("c")}, []) == 99


def test_a_ring_of_parents_begins_where_both_were_empty() -> None:
    p = [version("p", [1], at=at, kind=kind) for at, kind in ((10, "create"), (60, "snapshot"))]
    q = [version("q", [2], at=at, kind=kind) for at, kind in ((9, "create"), (50, "snapshot"))]
    ring = [
        (TableBetween(frozenset({table("p")}), frozenset({table("c"), table("q")})), p, True),
        (TableBetween(frozenset({table("q")}), frozenset({table("p")})), q, True),
    ]
    assert begin_with_parents(99, 200, {table("c")}, ring) == 8


def test_windows_that_follow_foreign_keys_end_where_rows_are_moved_or_columns_change() -> None:
    rows = [
        version("t", [1], at=50),
        version("t", [1], at=60, kind="alter"),
        version("t", [1, 2], at=70, kind="alter"),
        version("t", [1, 2], at=80, kind="rename"),
        version("u", [1, 2], at=80, kind="rename"),
        version("v", [3], at=90),
        version("v", [3], at=95, kind="alter", moved=RowsMoved(SPLIT, ("p0",), ("d", "u"))),
    ]
    assert reshaped_at(rows) == [70, 80, 95]


def test_it_begins_at_the_first_version_or_where_the_table_was_last_empty() -> None:
    rows = [
        version("t", [1], at=50),
        version("t", [1, 2], at=70, kind="alter"),
        version("t", [1], at=90, kind="truncate"),
    ]
    assert begin_ts(rows, 100, emptied=False) == 49
    assert begin_ts(rows, 100, emptied=True) == 89
    assert begin_ts(rows, 80, emptied=True) == 49
    assert begin_ts(rows, 40, emptied=True) is None


def test_a_moment_is_a_cut_a_time_or_where_a_held_table_stands(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    with pytest.raises(UsageError, match="no cut is published yet"):
        moment(lake, "d.t", "")
    noon = int(datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp() * 1000)
    cuts = [compose(noon - 5000), compose(noon, 7), compose(noon + 5000)]
    for number, cut in enumerate(cuts):
        row = {"cut_ts": cut, "applied_ts": cut, "state": "active", "published_at": datetime.now(UTC)}
        named = [{**row, "table": "", "delta_version": -1}]
        named += [{**row, "table": "d.t", "delta_version": number}] if number != 1 else []
        control.append(lake, tables.CUTS, named)
    assert moment(lake, "d.t", "") == cuts[2]
    assert moment(lake, "d.t", str(cuts[0] + 1)) == cuts[0] + 1
    assert moment(lake, "d.t", "2026-11-21T12:00:00") == cuts[1]
    assert moment(lake, "d.t", "2026-11-21T13:00:00.500+01:00") == cuts[1]
    assert moment(lake, "d.t", "2026-11-21T11:59:59.999") == cuts[0]
    assert moment(lake, "d.t", "2026-11-20") < cuts[0], "before the first cut: the time itself"
    for late in (str(cuts[2] + 1), "tomorrow"):
        with pytest.raises(UsageError, match=r"lies after the newest cut|neither a cut_ts nor a time"):
            moment(lake, "d.t", late)
    event = {"pipeline": "p", "table": "d.t", "reason": "r", "commit_ts": 77}
    control.append(lake, tables.TABLE_STATES, [{**event, "state": "held", "recorded_at": datetime.now(UTC)}])
    assert moment(lake, "d.t", "") == 77
    assert [silver_version(lake, "d.t", cut) for cut in (*cuts, cuts[0] + 1)] == [0, 0, 2, None]
    assert silver_version(lake, "d.x", cuts[2]) is None


def test_the_lake_of_a_rebuild_has_the_same_bronze_and_a_folder_of_its_own(tmp_path: Path) -> None:
    real = LakeFiles(str(tmp_path))
    mine = RebuildLake(real.root, {}, silver="silver/d/t", to="silver/d/t2", scratch="rebuild/x")
    for lake in (mine, pickle.loads(pickle.dumps(mine))):
        assert lake.uri("bronze/segments/a") == real.uri("bronze/segments/a")
        assert lake.uri("silver/d/t/f.parquet") == real.uri("silver/d/t2/f.parquet")
        assert lake.local("silver/d/t") == real.local("silver/d/t2")
        assert lake.uri("silver/d/t_other/f") == real.uri("rebuild/x/silver/d/t_other/f")
        assert lake.local("control/cuts") == real.local("rebuild/x/control/cuts")
        assert lake.spark_uri("staging/w") == real.spark_uri("rebuild/x/staging/w")
    stored = RebuildLake("s3://bucket/lake", {}, silver="silver/d/t", to="silver/d/t2", scratch="rebuild/x")
    assert stored.local("silver/d/t/f") == "lake/silver/d/t2/f"
    assert stored.local("bronze/segments") == "lake/bronze/segments"


def test_only_the_tables_of_a_rebuild_are_kept() -> None:
    only = OnlyTables(**ALL.model_dump(), only=frozenset({("d", "t")}))
    assert only.keeps("d", "t")
    assert not only.keeps("d", "u")
    assert not only.shadows("d", "_t_gho")
    assert only.logical("d", "shard_1") == ("d", "all", True)
