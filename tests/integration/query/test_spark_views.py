"""A cut as views of a Spark session: each shows its own table, or there is none.

In:  tables that differ by a column; cuts made by hand.
Out: the columns that the views show.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tidegate.errors import QueryRefused
from tidegate.lake.cuts.published import Cut, CutTable
from tidegate.lake.files import LakeFiles
from tidegate.lake.silver.silver_tables import create_silver
from tidegate.merge.column import SilverColumn
from tidegate.merge.silver_sql import SilverShape
from tidegate.query.pinned import PinnedCut
from tidegate.tables import silver_path

pytestmark = pytest.mark.spark


def made(lake: LakeFiles, *tables: str, missing: tuple[str, ...] = ()) -> PinnedCut:
    """A cut of these tables of database `d`. Each has a column of its name, made as need be."""
    of = {}
    for table in tables:
        path = silver_path("d", table)
        create_silver(
            lake.log(path), SilverShape((SilverColumn("id", "int"), SilverColumn(f"of_{table}", "int")), ("id",))
        )
        of[f"d.{table}"] = CutTable(f"d.{table}", "d", table, path, lake.log(path).state().version)
    return PinnedCut(lake, "p", Cut(1, datetime.now(UTC), of, dict.fromkeys(missing, "held"), frozenset(), {}))


def shown(spark: SparkSession, name: str) -> str:
    columns: list[str] = spark.sql(f"SELECT * FROM `{name}`").columns
    return columns[1]


def test_names_that_spark_cannot_tell_apart_have_no_view(spark: SparkSession, tmp_path: Path) -> None:
    cut = made(LakeFiles(str(tmp_path)), "orders", "Orders", "lines")
    assert cut.spark_views(spark) == ["d.lines"]
    assert shown(spark, "d.lines") == "of_lines"
    with pytest.raises(AnalysisException, match="NOT_FOUND"):
        shown(spark, "d.orders")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert cut.spark_views(spark) == ["d.orders", "d.Orders", "d.lines"]
        assert [shown(spark, f"d.{name}") for name in ("orders", "Orders")] == ["of_orders", "of_Orders"]
    finally:
        spark.conf.set("spark.sql.caseSensitive", "false")


def test_a_table_that_a_later_cut_lacks_shows_no_rows_of_the_earlier_one(spark: SparkSession, tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    assert made(lake, "orders", "lines").spark_views(spark) == ["d.orders", "d.lines"]
    assert made(lake, "lines", missing=("d.orders",)).spark_views(spark) == ["d.lines"]
    with pytest.raises(AnalysisException, match="NOT_FOUND"):
        shown(spark, "d.orders")


def test_a_table_that_is_not_complete_is_not_shown_as_another_one_of_nearly_its_name(tmp_path: Path) -> None:
    cut = made(LakeFiles(str(tmp_path)), "orders", "lines", missing=("d.Orders",))
    assert cut.unclear == {"d.orders": "DuckDB can't tell it from d.Orders"}
    with pytest.raises(QueryRefused, match=r"can't tell it from|isn't complete"):
        cut.sql('SELECT * FROM d."Orders"')
    assert cut.sql("SELECT * FROM d.lines").fetchall() == []
