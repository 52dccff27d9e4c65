"""Streams recorded from a real TiDB go through bronze and apply, and silver is what TiDB's own SELECT said."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.tidb_road import applied, compared, lake_with, segments_of
from tidegate.cli.tidb_replay import recorded_tables
from tidegate.lake.bronze import Bronze

pytestmark = [pytest.mark.spark]

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "tidb"
CASES = (
    "p01_types", "p02_dml", "p03_txn", "p04_bank", "p07_charset", "p08_generated", "p09_orphan", "p10_big", "p11_fake",
)  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_recorded_stream_is_in_silver_as_select_said(case: str, spark: SparkSession, tmp_path: Path) -> None:
    pipeline, lake = lake_with(tmp_path, segments_of(GOLDEN / case, 40))
    lines: list[str] = []
    app = applied(pipeline, lake, spark, lines)
    found = {f"{one['db']}.{one['table']}": compared(app, one) for one in recorded_tables(GOLDEN / case / "tables")}
    assert {name: said for name, said in found.items() if said and not said.startswith("held")} == {}, lines


def test_what_waits_for_its_commit_comes_in_the_window_of_that(spark: SparkSession, tmp_path: Path) -> None:
    """Each step of bronze is applied by an application of its own, so many prewrites lie below the window."""
    case = GOLDEN / "p04_bank"
    segments = segments_of(case, 7)
    pipeline, lake = lake_with(tmp_path, {source: [] for source in segments})
    lines: list[str] = []
    while any(segments.values()):
        for source, mine in segments.items():
            Bronze(lake, source).append(mine[:3])
            del mine[:3]
        app = applied(pipeline, lake, spark, lines)
    assert len([line for line in lines if " 0 changes" not in line]) > 4
    assert {one["table"]: compared(app, one) for one in recorded_tables(case / "tables")} == {"acc": "", "jrn": ""}
