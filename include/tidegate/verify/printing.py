"""A verification's report for people.

In:  a Report.
Out: a line per table, below them why a table is held and the rows that differ, and last the verdict.
"""

from __future__ import annotations

from typing import Any

from tidegate.commit_ts import time_text
from tidegate.text_layout import columns, paragraph
from tidegate.verify.report import Outcome, Report, TableResult


def report_lines(report: Report) -> list[str]:
    """The whole report; hashes are in its JSON."""
    lines = [f"{report.pipeline} at cut {report.cut_ts} ({time_text(report.cut_ts)})"]
    head = ("table", "outcome", "rows, source", "rows, silver")
    lines += columns([head, *(_row(result) for result in report.tables)], right=(2, 3))
    for result in report.tables:
        if result.reason:
            lines += ["", *paragraph(f"{result.table} is {result.outcome}:", result.reason)]
        for difference in result.differences:
            lines += ["", f"{result.table} {_cells(difference.key)}"]
            for side, row in (("source", difference.source), ("silver", difference.silver)):
                lines.append(f"  {side}: {'no such row' if row is None else _cells(row)}")
    return [*lines, "", f"{report.verdict} ({report.seconds:.1f} s)"]


def _row(result: TableResult) -> tuple[str, ...]:
    """Rows of what wasn't compared are unknown, not none."""
    compared = result.outcome in (Outcome.EQUAL, Outcome.DIFFERENT)
    rows = (f"{result.source_rows:,}", f"{result.silver_rows:,}") if compared else ("-", "-")
    return (result.table, str(result.outcome), *rows)


def _cells(row: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in row.items())
