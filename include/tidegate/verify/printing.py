"""A verification's report for people.

In:  a Report.
Out: a line per table, below them the reasons of holds and some of the different rows, each with its differences, and
     last the verdict. `seemed`: keys with a change between the first reads of both sides, or a difference; `differ`:
     different rows.
"""

from __future__ import annotations

from typing import Any, Final

from tidegate.commit_ts import time_text
from tidegate.text_layout import columns, paragraph
from tidegate.verify.report import Difference, Outcome, Report, TableResult

_SEEMED: Final = (
    "seemed: keys that weren't the same when both sides were first read, perhaps since they changed in between;"
    " each was read again until it was certain"
)


def report_lines(report: Report) -> list[str]:
    """The whole report; hashes are in its JSON."""
    lines = [f"{report.pipeline} at cut {report.cut_ts} ({time_text(report.cut_ts)})"]
    head = ("table", "outcome", "source rows", "silver rows", "seemed", "differ")
    lines += columns([head, *(_row(result) for result in report.tables)], right=(2, 3, 4, 5))
    for result in report.tables:
        if result.reason:
            is_what = result.outcome if result.outcome is Outcome.WAITS else f"is {result.outcome}"
            lines += ["", *paragraph(f"{result.table} {is_what}:", _why(result))]
        for difference in result.differences:
            lines += ["", f"{result.table} {_cells(difference.key)}"]
            lines += _sides(difference)
        if 0 < len(result.differences) < result.different:
            lines += [
                "",
                f"{result.table}: {len(result.differences)} of {result.different:,} rows that differ are shown",
            ]
    if any(result.seemed for result in report.tables):
        lines += ["", _SEEMED]
    return [*lines, "", f"{report.verdict} ({report.seconds:.1f} s)"]


def _sides(difference: Difference) -> list[str]:
    """The different columns of a row that both have."""
    rows = {"source": difference.source, "silver": difference.silver}
    if difference.source is not None and difference.silver is not None:
        other = difference.silver
        names = [name for name, value in difference.source.items() if name not in other or other[name] != value]
        rows = {side: {name: row[name] for name in names if name in row} for side, row in rows.items() if row}
    return [f"  {side}: {'no such row' if row is None else _cells(row)}" for side, row in rows.items()]


def _row(result: TableResult) -> tuple[str, ...]:
    """Rows of what wasn't compared are unknown, not none."""
    if not result.outcome.is_verdict:
        return (result.table, str(result.outcome), "-", "-", "-", "-")
    counts = (result.source_rows, result.silver_rows, result.seemed, result.different)
    return (result.table, str(result.outcome), *(f"{count:,}" for count in counts))


def _why(result: TableResult) -> str:
    return f"{result.unsettled:,} {result.reason}" if result.unsettled else result.reason


def _cells(row: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in row.items())
