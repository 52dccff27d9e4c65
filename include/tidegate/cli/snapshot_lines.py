"""The progress of snapshots, as lines for people.

In:  TableProgress of each table; why a source isn't read now, or a table's waves aren't taken; how far capture and
     apply are.
Out: lines: a row per table, the sum of the open ones, and below the waits and faults.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from tidegate.text_layout import columns, counted, paragraph

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidegate.snapshot.progress.events import TableProgress
    from tidegate.snapshot.progress.held_back import Place

_HEAD: Final = ("source", "table", "state", "rows", "about", "rows/s", "left", "waves", "waiting for apply")
_NUMBERS: Final = (3, 4, 5, 6, 7, 8)
# The order of tables, if not all get a line of their own.
_TURNS: Final = ("failed", "running", "paused", "ended", "requested", "cancelled", "done")


def progress_lines(
    snapshots: Sequence[TableProgress],
    busy: Mapping[str, str],
    others: Mapping[str, str],
    held: Mapping[Place, str],
    tables_max: int | None = None,
    *,
    now: float | None = None,
) -> list[str]:
    """snapshots: the last one of each table. busy: source -> why it isn't read now. others: source whose waves wait ->
    how far capture and apply are. held: held_back(). tables_max: further tables are only counted. now: Unix seconds;
    None: the time of this machine's clock.
    """
    now = time.time() if now is None else now
    first = list(snapshots)
    if tables_max is not None and len(first) > tables_max:
        first.sort(key=lambda table: _TURNS.index(table.state))
        del first[tables_max:]
    rows = [(table.source, ".".join(table.name), str(table.state), *_numbers(table, now)) for table in first]
    reads = [table for table in snapshots if table.state in ("requested", "running")]
    total = [_total(reads, now)] if len(reads) > 1 else []
    lines = columns([_HEAD, *rows, *total], right=_NUMBERS)
    if rest := Counter(str(table.state) for table in snapshots) - Counter(str(table.state) for table in first):
        lines.append(f"and {rest.total():,} more: {', '.join(f'{of:,} {state}' for state, of in rest.items())}")
    for source in sorted({table.source for table in snapshots if is_to_read(table)} & busy.keys()):
        lines += ["", *paragraph(f"{source} isn't read now:", f"{busy[source]}; it goes on by itself")]
    for source, text in others.items():
        of_source = [table for table in snapshots if table.source == source and (source, table.name) not in held]
        if waves := {token for table in of_source for token in table.waiting}:
            what = counted(len(waves), "wave waits", "waves wait")
            lines += ["", *paragraph(f"{what} for capture and apply of {source}:", text)]
    for (source, name), why in held.items():
        lines += ["", *paragraph(f"{'.'.join(name)} of {source} is held, and its waves wait for the end of that:", why)]
    for shown in first:
        if (shown.reason and not shown.state.is_over) or shown.state == "failed":
            lines += ["", *paragraph(f"{'.'.join(shown.name)} of {shown.source}:", shown.reason)]
    return lines


def is_to_read(table: TableProgress) -> bool:
    """Whether a reader still has work on the table."""
    return table.state in ("requested", "running") and bool(table.left)


def _numbers(table: TableProgress, now: float) -> tuple[str, ...]:
    from tidegate.snapshot.progress.forecast import rate, seconds_left  # pyarrow: not imported for a typo

    share, left = _share(table.rows, table.estimate), _time(seconds_left(table, now))
    if table.state.is_over:
        share, left = "-", "-"
    elif not table.left:
        share, left = "all read", "being applied"
    elif table.state == "paused":
        left = "-"
    pace = rate(table, now) if is_to_read(table) else table.rate
    return f"{table.rows:,}", share, f"{pace:,.0f}", left, str(table.waves), str(len(table.waiting))


def _total(reads: Sequence[TableProgress], now: float) -> tuple[str, ...]:
    """The snapshots in progress, as one."""
    from tidegate.snapshot.progress.forecast import forecast

    rows, whole = sum(table.rows for table in reads), forecast(reads, now)
    known = all(table.estimate for table in reads)
    share, left, pace = "all read", "being applied", "-"
    if whole is not None:
        share = _share(rows, sum(table.estimate for table in reads) if known else 0)
        left, pace = _time(whole.seconds_left), f"{whole.rate:,.0f}"
    return "", f"{len(reads)} tables that are open", "", f"{rows:,}", share, pace, left, "", ""


def _share(rows: int, estimate: int) -> str:
    return f"{min(99, 100 * rows // estimate)} %" if estimate else "-"


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min"
