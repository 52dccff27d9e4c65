"""Every change of a TiDB's tables is in their changelogs exactly once, in commit order, whatever is killed when."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.changelogs import changes_of, played, silver_rows
from tests.kit.tidb.pumps import apply_upto, tidb_with_pumps
from tests.kit.tidb.replay.command import recorded_tables
from tests.kit.tidb.road import applied, lake_with, segments_of
from tests.kit.tidb.server import MISSING, PROGRAM
from tests.support.driver import killed
from tidegate.changelog.changelog_table import ROW_OPS
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.tables import SegmentKind

pytestmark = [pytest.mark.spark]

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "tidb"
LOGGED = ", changelog: ['*.*']"


def names_of(case: str) -> list[tuple[str, str]]:
    return [(one["db"].lower(), one["table"]) for one in recorded_tables(GOLDEN / case / "tables")]


def agrees(lake: LakeFiles, database: str, table: str) -> int:
    """Its changes lead to silver's rows; how many they are."""
    rows = changes_of(lake, database, table)
    assert "gap" not in {row["op"] for row in rows}, rows
    assert played(rows) == silver_rows(lake, database, table)
    return len(rows)


@pytest.mark.parametrize("case", ["p01_types", "p02_dml"])
def test_recorded_changes_of_every_type_and_key_lead_to_silvers_rows(
    case: str, spark: SparkSession, tmp_path: Path
) -> None:
    pipeline, lake = lake_with(tmp_path, segments_of(GOLDEN / case, 40), more=LOGGED)
    lines: list[str] = []
    applied(pipeline, lake, spark, lines)
    assert sum(agrees(lake, *name) for name in names_of(case)) > 20, lines


def test_a_bank_on_two_pumps_is_logged_once_through_kills(spark: SparkSession, tmp_path: Path) -> None:
    """Prewrites, commits and copies come to both, and wait below the window for each other."""
    segments = segments_of(GOLDEN / "p04_bank", 7)
    pipeline, lake = lake_with(tmp_path, {source: [] for source in segments}, more=LOGGED)
    points = ["apply_after_changelog", "delta_before_commit:1", "apply_after_merge", "apply_before_publish"]
    while any(segments.values()):
        for source, mine in segments.items():
            taken = mine[: max(len(mine) // 4, 3)]
            if taken:
                Bronze(lake, source).append(taken)
            del mine[: len(taken)]
        if points and any(one.kind is SegmentKind.TIDB for mine in segments.values() for one in mine[:1]):
            killed(spark, tmp_path / "road.yaml", points.pop())
        applied(pipeline, lake, spark, [])
    assert not points, "no window was left for these"
    started: dict[str, int] = {}
    for name in names_of("p04_bank"):
        assert agrees(lake, *name)
        for row in changes_of(lake, *name):
            if row["op"] in ROW_OPS:
                assert started.setdefault(row["gtid"], row["commit_ts"]) == row["commit_ts"] > int(row["gtid"])
                assert row["file"] in segments
                assert row["source"] == "pump_0"
    assert len(set(started.values())) == len(started) > 10


@pytest.mark.server
@pytest.mark.skipif(not PROGRAM.exists(), reason=MISSING)
def test_a_tidb_that_is_written_to_has_its_changes_logged(spark: SparkSession, tmp_path: Path) -> None:
    with tidb_with_pumps(tmp_path, pipeline="logged") as (pumps, tidb):
        text = pumps.file.read_text()
        pumps.file.write_text(text.replace("include: ['*.*']", "include: ['*.*'], changelog: ['shop.*']"))
        with tidb.connect() as connection, connection.cursor() as cursor:
            for statement in (
                "CREATE DATABASE shop",
                "CREATE TABLE shop.t (id BIGINT PRIMARY KEY, v VARCHAR(20))",
                "INSERT INTO shop.t VALUES (1, 'a'), (2, NULL)",
                "BEGIN",
                "UPDATE shop.t SET v = 'b' WHERE id = 1",
                "DELETE FROM shop.t WHERE id = 2",
                "COMMIT",
                "ALTER TABLE shop.t ADD COLUMN n INT DEFAULT 7",
                "UPDATE shop.t SET id = 3",
            ):
                cursor.execute(statement)
        tidb.settle()
        apply_upto(pumps, tidb, spark)
        lake = LakeFiles(str(pumps.lake))
        rows = changes_of(lake, "shop", "t")
        ops = ["begin", "create", "insert", "insert", "update", "delete", "alter", "delete", "insert"]
        assert [row["op"] for row in rows] == ops
        assert rows[4]["gtid"] == rows[5]["gtid"] != rows[2]["gtid"] == rows[3]["gtid"]
        assert (rows[4]["before"], rows[4]["after"]) == ({"id": 1, "v": "a"}, {"id": 1, "v": "b"})
        assert (rows[7]["before"], rows[8]["after"]) == ({"id": 1, "v": "b", "n": 7}, {"id": 3, "v": "b", "n": 7})
        assert played(rows[-1:]) == silver_rows(lake, "shop", "t")
