"""How far snapshots are, as a part of the page.

In:  TableProgress of the tables whose snapshot isn't over.
Out: HTML.
"""

from __future__ import annotations

import time
from html import escape
from typing import TYPE_CHECKING, Final

from tidegate.limits import SNAPSHOT_SILENT_SECONDS
from tidegate.snapshot.progress.events import SnapshotState
from tidegate.snapshot.progress.forecast import Forecast, forecast, rate, seconds_left
from tidegate.text_layout import age_text, counted
from tidegate_airflow.page.layout import wide_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tidegate.snapshot.progress.events import TableProgress

_SHOWN: Final = 50
_HEADS: Final = ("Snapshot of", "State", "Rows read", "Share", "Rows/s", "Time left")


def snapshots_list(
    going: Sequence[TableProgress],
    now: float,
    page_of: Callable[[TableProgress], str] = lambda _: "",
    is_held: Callable[[TableProgress], bool] = lambda _: False,
) -> str:
    """A row per table; tables with rows already read come first; "" without any. now: Unix seconds. page_of: link to a
    table's page. is_held: whether the table is held for another cause than its rows.
    """
    if not going:
        return ""
    shown = sorted(going, key=lambda table: (not table.waves, table.source, table.name))[:_SHOWN]
    rows = (_cells(table, now, page_of(table), held=bool(table.waiting) and is_held(table)) for table in shown)
    more = f"<p>and {len(going) - len(shown):,} more</p>" if len(going) > len(shown) else ""
    whole = forecast(going, now)
    words = _when(whole, going, now) if whole else _all_read(going)
    when = f"<p>{escape(words)}</p>" if words else ""
    return (
        f"<section aria-labelledby='snapshots'><h3 id='snapshots'>Snapshots</h3>{when}"
        f"{wide_table('List of snapshots', _HEADS, rows)}{more}</section>"
    )


def _when(whole: Forecast, going: Sequence[TableProgress], now: float) -> str:
    """When all of them will be done, and what a silent reader waits for."""
    read = f"{counted(whole.tables, 'table is', 'tables are')} to be read: {whole.rows:,} rows so far"
    read += f" of about {whole.estimate:,}" if whole.seconds_left is not None else ""
    done_at = whole.done_at(now)
    if done_at is None:
        return f"{read}. It isn't known yet when they will be done."
    silent = now - whole.read_at
    waves = len({token for table in going for token in table.waiting})
    waits = f"{counted(waves, 'wave waits', 'waves wait')} for apply." if waves else "does a reader run?"
    asks = f" The last rows came {age_text(silent)} ago: {waits}" if silent > SNAPSHOT_SILENT_SECONDS else ""
    return f"{read}, {whole.rate:,.0f} rows/s. About {age_text(done_at - now)} left, done at {_clock(done_at)}.{asks}"


def progress_words(table: TableProgress, now: float) -> str:
    """The progress of one table and the end of its reading, in a line."""
    words = f"{table.state}, {table.rows:,}"
    if not table.left:
        return f"{words} rows are read: all, and they wait for apply's next windows"
    words += f" of about {table.estimate:,} rows are read" if table.estimate else " rows are read"
    if (seconds := seconds_left(table, now)) is None:
        return words
    return f"{words}; about {age_text(seconds)} left, done at {_clock(now + seconds)}"


def _clock(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


def _all_read(going: Sequence[TableProgress]) -> str:
    """The rest of the way of wholly read tables; "" without any."""
    read = [table for table in going if not table.left]
    if not read:
        return ""
    rows = sum(table.rows for table in read)
    return f"All {rows:,} rows of {counted(len(read), 'table', 'tables')} are read, and wait for apply's next windows."


def _cells(table: TableProgress, now: float, page: str, *, held: bool) -> tuple[str, ...]:
    state, share, left = str(table.state), f"{counted(len(table.left), 'key range', 'key ranges')} left", "-"
    if not table.left:
        share, left = "all read", "being applied"
    elif table.estimate:
        share = f"{min(99, 100 * table.rows // table.estimate)} % of about {table.estimate:,}"
    if (seconds := seconds_left(table, now)) is not None:
        left = age_text(seconds)
    speed = f"{rate(table, now):,.0f}"
    if table.state is SnapshotState.PAUSED:
        speed, left = "-", "when somebody resumes it"
    if held:
        left = "when the table is no longer held"
    cells = (state, f"{table.rows:,}", share, speed, left)
    name = escape(".".join(table.name))
    linked = f"<a href='{escape(page)}'>{name}</a>" if page else name
    return (f"{linked} of {escape(table.source)}", *map(escape, cells))
