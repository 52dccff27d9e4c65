"""Streams recorded from a real TiDB go through bronze and apply, and silver is what TiDB's own SELECT said."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.tidb_road import applied, compared, lake_with, segments_of
from tidegate.cli.tidb_replay import recorded_tables

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
