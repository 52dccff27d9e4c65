"""One pipeline: its state, its road as a picture, its history, its sources, snapshots and tables.

In:  a PipelineView, what was asked of its tables.
Out: HTML.
"""

from __future__ import annotations

import time
from html import escape
from typing import TYPE_CHECKING, Final

from tidegate.capture.health import health
from tidegate.commit_ts import time_text
from tidegate.pipelines import RANGES
from tidegate.tables import State
from tidegate.text_layout import age_text, counted
from tidegate_airflow.page.charts import chart
from tidegate_airflow.page.snapshots_list import snapshots_list
from tidegate_airflow.page.tables_list import TablesAsked, tables_list

if TYPE_CHECKING:
    from tidegate.capture.standing import CaptureStanding, SourceStanding
    from tidegate.lake.timeline import Timeline
    from tidegate.pipelines import PipelineView


_ARROW: Final = "<span class='arrow' aria-hidden='true'>&rarr;</span>"


def pipeline_view(view: PipelineView, asked: TablesAsked) -> str:
    """All of one pipeline."""
    state = health(view.standing)
    badge = f"<span class='badge {'good' if state.is_good else 'bad'}'>{state}</span>"
    head = f"<h2>{escape(view.pipeline.pipeline)} {badge}</h2><p>{escape(view.why)}</p>"
    if view.standing is None:
        return head
    parts = (_road(view, view.standing), _history(view.timeline, asked), snapshots_list(view.snapshots))
    return head + "".join(parts) + tables_list(view, asked) + _unseen(view.standing)


def _road(view: PipelineView, stands: CaptureStanding) -> str:
    """Source, bronze, silver: at each hop how far behind it is."""
    stops = "".join(map(_source, stands.sources))
    active = sum(table.state is State.ACTIVE for table in stands.tables)
    rate = f"{view.timeline.rows_a_second:,.1f} rows/s" if view.timeline is not None else ""
    at = f"complete through {escape(time_text(stands.cut_ts))}" if stands.cut_ts else "nothing is applied yet"
    skew = f"<p>Clocks of the sources differ by {stands.skew_seconds:.1f} s.</p>" if stands.skew_seconds >= 1 else ""
    return (
        f"<section aria-labelledby='road'><h3 id='road'>The road</h3><div class='road'><ul>{stops}</ul>{_ARROW}"
        f"<div class='stop'><b>Silver</b><span>{escape(age_text(stands.lag_seconds))} behind</span>"
        f"<span>{at}</span><span>{active:,} of {counted(len(stands.tables), 'table', 'tables')} current</span>"
        f"<span>{rate}</span></div></div>{skew}</section>"
    )


def _source(source: SourceStanding) -> str:
    captured, name = source.captured, escape(source.source)
    if source.server.error:
        place = f"<span class='bad'>not asked: {escape(source.server.error)}</span>"
    else:
        place = f"<span>its log ends at <code>{escape(source.server.position or '-')}</code></span>"
    if captured is None:
        bronze = "<span class='bad'>nothing is captured yet</span>"
    else:
        said = "nothing is missing" if source.nothing_missing else f"{age_text(source.lag_seconds)} behind"
        bronze = (
            f"<span>{escape(said)}</span><span>captured to <code>{escape(f'{captured.file}:{captured.end_pos}')}</code>"
            f"</span><span>{captured.bytes / 1e6:,.1f} MB in {counted(captured.segments, 'segment', 'segments')}</span>"
        )
    waits = "<span class='bad'>the cut goes on without it</span>" if source.behind_ts is not None else ""
    waits += f"<span class='bad'>{escape(source.unheard)}</span>" if source.unheard else ""
    return (
        f"<li><div class='stop'><b>Source {name}</b>{place}<span>last change {escape(source.changed_at)}</span></div>"
        f"{_ARROW}<div class='stop'><b>Bronze of {name}</b>{bronze}{waits}</div></li>"
    )


def _history(timeline: Timeline | None, asked: TablesAsked) -> str:
    if timeline is None:
        return ""
    current = {asked.span: " aria-current='true'"}
    links = " ".join(f"<a href='{escape(asked.link(span=span))}'{current.get(span, '')}>{span}</a>" for span in RANGES)
    seconds = timeline.step_seconds * len(timeline.lag)
    ends = (_clock(timeline.end - seconds, seconds), _clock(timeline.end, seconds))
    rates = [rows / timeline.step_seconds for rows in timeline.rows]
    volume = [size / timeline.step_seconds for size in timeline.payload_bytes]
    return (
        f"<section aria-labelledby='history'><h3 id='history'>History</h3><nav aria-label='Range'>Last {links}</nav>"
        f"<div class='charts'>{chart(timeline.lag, 'Lag of silver', age_text, ends)}"
        f"{chart(rates, 'Row changes a second', lambda value: f'{value:,.1f}', ends)}"
        f"{chart(volume, 'Binlog a second', _bytes, ends)}</div></section>"
    )


def _clock(seconds: float, of: float) -> str:
    return time.strftime("%H:%M" if of <= RANGES["day"] else "%m-%d %H:%M", time.gmtime(seconds)) + " UTC"


def _bytes(value: float) -> str:
    return f"{value / 1e6:,.2f} MB" if value >= 1e5 else f"{value / 1e3:,.1f} kB"


def _unseen(stands: CaptureStanding) -> str:
    if not stands.unseen:
        return ""
    names = ", ".join(stands.unseen[:20]) + (" ..." if len(stands.unseen) > 20 else "")
    have = counted(len(stands.unseen), "table has", "tables have")
    return f"<p>{have} had no change yet, and no snapshot: {escape(names)}.</p>"
