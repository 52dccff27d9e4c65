"""The demo's proof: per table, rows and a hash over all of them, at the source and in silver.

In:  a verification's report (tidegate.verify shares no code with capture and apply); the measured lag.
Out: a table on the console.
"""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.table import Table

from tidegate.commit_ts import time_text
from tidegate.verify.report import Outcome, Report, TableResult

_COLOURS: Final = {
    Outcome.EQUAL: "green",
    Outcome.DIFFERENT: "bold red",
    Outcome.UNSETTLED: "bold yellow",
    Outcome.HELD: "bold yellow",
    Outcome.WAITS: "bold yellow",
    Outcome.UNVERIFIED: "bold yellow",
    Outcome.DROPPED: "dim",
}
_HASH_DIGITS: Final = 12


def show(report: Report, lag: str, console: Console) -> None:
    """Print it; differing rows below the table."""
    places = ", ".join(f"{source} at {place}" for source, place in report.positions.items())
    at = f"At {time_text(report.cut_ts)} of the source's commits ({places}):"
    table = Table("table", title=at, title_justify="left")
    for name in ("rows, source", "rows, silver"):
        table.add_column(name, justify="right")
    for name in ("hash, source", "hash, silver", ""):
        table.add_column(name)
    for result in report.tables:
        table.add_row(*_cells(result))
    console.print(table)
    for result in report.tables:
        for difference in result.differences:
            console.print(
                f"{result.table} {difference.key}: source {difference.source}, silver {difference.silver}", markup=False
            )
    verdict = (
        "[green]silver equals the source[/green]"
        if report.equal and report.complete
        else f"[bold red]silver is not the source: {report.verdict}[/bold red]"
    )
    console.print(f"{verdict}, compared in {report.seconds:.1f} s. Lag while the shop was open: {lag}.")


def _cells(result: TableResult) -> tuple[str, ...]:
    colour = _COLOURS[result.outcome]
    said = result.reason if result.outcome is Outcome.DROPPED else f"{result.outcome} {result.reason}"
    shown = f"[{colour}]{said.strip()}[/{colour}]"
    if not result.outcome.is_verdict:
        return result.table, "", "", "", "", shown
    return (
        result.table,
        str(result.source_rows),
        str(result.silver_rows),
        result.source_hash[:_HASH_DIGITS],
        result.silver_hash[:_HASH_DIGITS],
        shown,
    )
