"""A verification's report for people.

In:  a Report.
Out: a rich table, and below it the rows that differ; the demo prints the same.
"""

from __future__ import annotations

from typing import Any, Final

from rich.console import Console
from rich.table import Table

from tidegate.verify.report import Outcome, Report

_COLOURS: Final = {
    Outcome.EQUAL: "green",
    Outcome.DIFFERENT: "red",
    Outcome.HELD: "yellow",
    Outcome.DROPPED: "dim",
}
_HASH_DIGITS: Final = 12


def report_table(report: Report) -> Table:
    """Per table: rows and hashes of both sides."""
    table = Table(
        "table",
        "",
        "rows, source",
        "rows, silver",
        "hash, source",
        "hash, silver",
        "why",
        title=f"{report.pipeline} at cut {report.cut_ts}",
    )
    for result in report.tables:
        colour = _COLOURS[result.outcome]
        table.add_row(
            result.table,
            f"[{colour}]{result.outcome}[/{colour}]",
            f"{result.source_rows:,}",
            f"{result.silver_rows:,}",
            result.source_hash[:_HASH_DIGITS],
            result.silver_hash[:_HASH_DIGITS],
            result.reason,
        )
    return table


def print_report(report: Report, console: Console | None = None) -> None:
    """The table, then each differing row with both sides."""
    console = console or Console()
    console.print(report_table(report))
    for result in report.tables:
        for difference in result.differences:
            console.print(f"{result.table} {_cells(difference.key)}", style="red", markup=False, highlight=False)
            for side, row in (("source", difference.source), ("silver", difference.silver)):
                text = "no such row" if row is None else _cells(row)
                console.print(f"  {side}: {text}", markup=False, highlight=False)
    word = "equal" if report.equal else "NOT equal"
    console.print(f"{len(report.tables)} tables {word}, {report.seconds:.1f} s", highlight=False)


def _cells(row: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in row.items())
