"""What a verification says to people."""

from __future__ import annotations

from tidegate.verify.columns.cells import cell
from tidegate.verify.printing import report_lines
from tidegate.verify.report import Outcome, Report, TableResult
from tidegate.verify.source_table import SourceTable
from tidegate.verify.under_way import difference


def test_of_a_row_that_both_sides_have_people_are_shown_the_columns_that_differ() -> None:
    day, moment = cell("d", "date", "date"), cell("m", "datetime", "datetime(6)")
    table = SourceTable("shop", "t", (cell("id", "int", "int"), day, moment), (), (0,))
    found = difference(table, (7, 19758, 1_000_001), (7, None, 1_000_001))
    gone = difference(table, (8, None, -1), None)
    result = TableResult("one", "shop.t", "shop.t", Outcome.DIFFERENT, different=3, seemed=9, differences=(found, gone))
    lines = report_lines(Report("shop", 1, {}, (result,)))
    assert lines[4:7] == ["shop.t id=7", "  source: d='2024-02-05'", "  silver: d=None"]
    assert "  source: id=8, d=None, m='1969-12-31 23:59:59.999999'" in lines
    assert "  silver: no such row" in lines
    assert "shop.t: 2 of 3 rows that differ are shown" in lines
    assert any(line.startswith("seemed: ") for line in lines)
