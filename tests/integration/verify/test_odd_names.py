"""Tables whose names, or whose databases' names, have dots in them are like any other, for all that shows them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.integration.road.test_one_tables_trouble import checkpoint
from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate.actions.parked import tables_of
from tidegate.capture.standing import SourceAnswer, standing
from tidegate.lake import control
from tidegate.lake.cuts.lineage import applied_since
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.query.pinned import PinnedCut
from tidegate.segments.prewrites import Prewrite
from tidegate.tables import silver_path
from tidegate.tables.snapshot_tables import VERIFICATION
from tidegate.verify.recording import record
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify

pytestmark = pytest.mark.server


def test_a_database_with_a_dot_in_its_name_is_known_everywhere(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    dotted = f"{database}.do"
    road = Road(mariadb, tmp_path, include=f"{database}\\W\\w*.*")
    road.capture()
    mariadb.query(f"CREATE DATABASE `{dotted}`")
    try:
        for name in (f"`{dotted}`.t", f"`{dotted}`.`x.y`"):
            mariadb.query(f"CREATE TABLE {name} (id INT PRIMARY KEY)")
            mariadb.query(f"INSERT INTO {name} VALUES (1), (2)")
        road.capture()
        road.apply()
        assert road.assert_equal() == {"do.t": 2, "do.x.y": 2}
        report = verify(road.pipeline, {"one": road.info}, road.lake.root, {}, VerifyOptions(timeout_seconds=5))
        record(road.lake, report)
        pairs = {(dotted, "t"), (dotted, "x.y")}
        assert {(row["database"], row["table"]) for row in control.read(road.lake, VERIFICATION).to_pylist()} == pairs
        paths = {silver_path(*pair) for pair in pairs}
        assert {table.path for table in applied_since(road.pipeline, road.lake, 0).tables} == paths
        assert {table.rows for table in applied_since(road.pipeline, road.lake, 0).tables} == {2}
        prepared = Prewrite("one", "x", 1, 1, 1, (f"{dotted}.x.y",))
        assert tables_of(road.pipeline, prepared) == (f"{dotted}.x.y",)
        shutil.copytree(road.lake.uri(silver_path(dotted, "t")), road.lake.uri(silver_path(dotted, "t__rebuilt_7")))
        assert standing(road.pipeline, road.lake, lambda _: SourceAnswer()).rebuilt == (
            silver_path(dotted, "t__rebuilt_7"),
        )

        # One that can't be read is that table's trouble, though its name may be read in two ways.
        checkpoint(Path(road.lake.uri(silver_path(dotted, "x.y"))))
        lake = LakeFiles(road.lake.root)
        with PinnedCut.at(lake, "road") as cut:
            assert cut.polars(f"{dotted}.t").collect().height == 2
    finally:
        mariadb.query(f"DROP DATABASE `{dotted}`")
