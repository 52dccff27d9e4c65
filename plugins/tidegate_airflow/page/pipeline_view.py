"""One pipeline: its state, its road as a picture, its history, its sources, snapshots and tables.

In:  a PipelineView, what was asked of its tables.
Out: HTML.
"""

from __future__ import annotations

import time
from html import escape
from typing import TYPE_CHECKING, Final

from tidegate.capture.chaser import ChaserState
from tidegate.capture.health import Health, Hop, health, rests, slowest
from tidegate.capture.purging import if_down
from tidegate.capture.silence import LeasedWork
from tidegate.capture.standing import UNSEEN_WORDS
from tidegate.capture.status_file import disk_text, lasts_text
from tidegate.commit_ts import time_text
from tidegate.limits import CLOCK_SKEW_SECONDS_MAX, HOUR_NAMED_TABLES_MAX, LAKE_RATE_SECONDS, PURGE_SOON_SECONDS
from tidegate.metrics.hours import ALL, overdue, overdue_words, table_shown, unknown
from tidegate.metrics.rules import is_low
from tidegate.pipelines import RANGES
from tidegate.tables import State
from tidegate.text_layout import age_text, counted, rate_text, sentence, size_text
from tidegate_airflow.page.act_view import before_act
from tidegate_airflow.page.care_list import maintenance, prewrites_list
from tidegate_airflow.page.charts import chart
from tidegate_airflow.page.layout import breakable, wide_table
from tidegate_airflow.page.overview import verification
from tidegate_airflow.page.snapshots_list import snapshots_list
from tidegate_airflow.page.table_view import what_changed
from tidegate_airflow.page.tables_list import WORDS, TablesAsked, buttons_link, table_page, tables_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidegate.capture.standing import CaptureStanding, SourceStanding
    from tidegate.capture.status_file import CaptureStatus
    from tidegate.lake.figures.status import TableStatus
    from tidegate.lake.figures.timeline import Timeline
    from tidegate.metrics.disks import Disk
    from tidegate.pipelines import PipelineView


_WAITING_SHOWN: Final = 5
_ARROW: Final = "<span class='arrow' aria-hidden='true'>&rarr;</span>"


def pipeline_view(
    view: PipelineView,
    asked: TablesAsked,
    disks: Mapping[str, Disk | None] | None = None,
    *,
    can_act: bool = False,
    answer: str = "",
) -> str:
    """All of one pipeline. disks: by name, of this machine. can_act: whether the user may edit its apply DAG. answer:
    the way to the questions of Airflow.
    """
    state = view.health
    badge = f"<span class='badge {'good' if state.is_good else 'bad'}'>{state}</span>"
    head = (
        f"<nav><a href='../'>All pipelines</a></nav><h2>{escape(view.pipeline.pipeline)} {badge}</h2>"
        f"<p>{escape(view.why)}</p><p class='soft'>As of {view.clock}</p>{before_act(view)}"
    )
    if view.standing is None:
        return head
    held, logical = {table.table for table in view.standing.held}, view.pipeline.tables.logical
    parts = (
        _waiting(view, view.standing, answer, can_act=can_act),
        _road(view, view.standing),
        _safety(view, view.standing, disks or {}),
        _history(view.timeline, asked, len(view.standing.sources)),
        _changes(view),
        prewrites_list(view),
        snapshots_list(
            view.snapshots,
            view.at,
            lambda each: table_page(view, logical(*each.name).name),
            lambda each: logical(*each.name).name in held,
        ),
    )
    tables = tables_list(view, asked, can_act=can_act) + _unseen(view.standing)
    return head + "".join(parts) + tables + maintenance(view)


def _waiting(view: PipelineView, stands: CaptureStanding, answer: str, *, can_act: bool) -> str:
    """Stopped work, and the first waiting tables, held ones before others; "" without any. Those at
    one place of the log are one line.

    can_act: a held table gets a link to its buttons.
    """
    stopped = "".join(
        f"<li>{escape(sentence(f'{each.work} of {each.of} has stopped'))} What ends it: {escape(each.way_out)}</li>"
        for each in stands.silences
    )
    waits = sorted((table for table in stands.tables if table.state.waits), key=lambda of: of.state is not State.HELD)
    places: dict[tuple[str, ...], list[TableStatus]] = {}
    for table in waits:
        place = (table.source, table.file, str(table.pos), table.cause)
        places.setdefault((table.state, *(place if table.file else (table.table,))), []).append(table)
    named = list(places.values())[:_WAITING_SHOWN]
    lines = (
        f"<li><a href='{escape(table_page(view, table.table))}'>{escape(table.table)}</a>"
        f"{f' and {len(others):,} more at the same place are' if others else ' is'} {WORDS[table.state]}."
        + (f" What ends it: {escape(table.way_out)}" if table.way_out else "")
        + f"{buttons_link(view, table) * can_act}</li>"
        for table, *others in named
    )
    left = len(waits) - sum(map(len, named))
    more = f"<li>and {left:,} more, in the list of tables below</li>" if left > 0 else ""
    shown = f"{stopped}{''.join(lines)}{more}" + f"<li>{answer}</li>" * bool(answer)
    return f"<ul aria-label='What waits'>{shown}</ul>" if shown else ""


def _road(view: PipelineView, stands: CaptureStanding) -> str:
    """Source, capture, bronze, apply, silver: the lag, the rate and the backlog of each hop."""
    stops = "".join(_source(source, stands, view) for source in stands.sources)
    active = sum(table.state is State.ACTIVE for table in stands.tables)
    behind = f"<span>{escape(age_text(stands.lag_seconds))} behind</span>" if stands.cut_ts else ""
    at = f"complete through {escape(time_text(stands.cut_ts))}" if stands.cut_ts else "nothing is applied yet"
    going = (
        f"{active:,} of {counted(len(stands.tables), 'table', 'tables')} active" if stands.tables else "no table yet"
    )
    skew = f"<p>Clocks of the sources differ by {stands.skew_seconds:.1f} s.</p>" if stands.skew_seconds >= 1 else ""
    return (
        f"<section aria-labelledby='road'><h3 id='road'>The road</h3><div class='road'><ul>{stops}</ul>{_ARROW}"
        f"{_apply(view, stands)}{_ARROW}"
        f"<div class='stop'><b>Silver</b>{behind}<span>{at}</span><span>{going}</span></div></div>{skew}</section>"
    )


def _apply(view: PipelineView, stands: CaptureStanding) -> str:
    waits = stands.unapplied_bytes
    lines = [f"{size_text(waits)} wait" if waits else "nothing waits"]
    if (past := view.timeline) is not None:
        lines.append(f"{rate_text(past.rows_a_second)} rows/s, {size_text(past.bytes_a_second)}/s")
        if windows := [seconds for seconds in past.window_seconds if seconds is not None]:
            lines.append(f"a cut each {age_text(windows[-1])} at most")
    spans = f"<span>{'</span><span>'.join(map(escape, lines))}</span>"
    spans += _down(stands, LeasedWork.APPLY, stands.pipeline, view.at)
    return f"<div class='stop hop{' slow' * _is_slowest(stands, Hop.APPLY)}'><b>Apply</b>{spans}</div>"


def _down(stands: CaptureStanding, work: LeasedWork, of: str, now: float) -> str:
    """Stopped work; "" while it goes on."""
    silence = stands.silence(work, of)
    if silence is None:
        return ""
    return f"<span class='bad'>{escape(sentence(silence.text(now)))}</span>"


def _is_slowest(stands: CaptureStanding, hop: Hop, source: str = "") -> bool:
    """Whether silver is behind because of it."""
    at = slowest(stands) if health(stands) is Health.BEHIND else None
    return at is not None and (at.hop, at.source) == (hop, source)


def _source(source: SourceStanding, stands: CaptureStanding, view: PipelineView) -> str:
    captured, name = source.captured, escape(source.source)
    if source.server.error:
        place = f"<span class='bad'>no answer: {breakable(source.server.error)}</span>"
    else:
        ahead = source.server.clock_ahead_seconds
        place = f"<span>{breakable(source.server.host)}</span>" if source.server.host else ""
        place += f"<span>its log ends at <code>{breakable(source.server.position or '-')}</code></span>"
        place += f"<span class='bad'>its clock is {ahead:+.1f} s off</span>" * (abs(ahead) > CLOCK_SKEW_SECONDS_MAX)
    waits = "<span class='bad'>the cut goes on without it</span>" if source.behind_ts is not None else ""
    waits += f"<span class='bad'>{escape(source.unheard)}</span>" if source.unheard else ""
    tries = "<span>capture tries again by itself</span>" * source.is_down
    tries += "<span class='bad'>its place in the binlog is purged at the server</span>" * source.is_purged
    if captured is None:
        said = source.lost or f"nothing was ever captured: does {source.capture_dag} run?"
        stops = f"{_ARROW}<div class='stop'><b>Bronze of {name}</b><span class='bad'>{escape(said)}</span></div>"
    else:
        lag = f"{'at most ' * rests(source, stands)}{age_text(source.lag_seconds)} behind"
        said = "all of it is captured" if source.nothing_missing else lag
        left = f"<span>{size_text(source.behind_bytes)} of binlog wait</span>" if source.behind_bytes else ""
        heard = age_text(max(0.0, view.at - captured.heard_at)) if captured.heard_at else "-"
        slow = " slow" * _is_slowest(stands, Hop.CAPTURE, source.source)
        down = _down(stands, LeasedWork.CAPTURE, source.source, view.at)
        disk = _rate(view.captures.get(source.source), view.at) + _disk(view.captures.get(source.source))
        size = f"{size_text(captured.bytes)} in {counted(captured.segments, 'segment', 'segments')}"
        stops = (
            f"{_ARROW}<div class='stop hop{slow}'><b>Capture</b><span>{escape(said)}</span>{left}"
            f"<span>last segment {escape(heard)} ago</span>{tries}{disk}{down}</div>"
            f"{_ARROW}<div class='stop'><b>Bronze of {name}</b>"
            f"<span>captured to <code>{breakable(f'{captured.file}:{captured.end_pos}')}</code></span>"
            f"<span>{size}</span>{waits}</div>"
        )
    return (
        f"<li><div class='stop'><b>Source {name}</b>{place}"
        f"<span>last captured change {escape(source.changed_at)}</span></div>{stops}</li>"
    )


def _rate(capture: CaptureStatus | None, now: float) -> str:
    """Binlog read a second; "" for a capture elsewhere, and for one that doesn't run."""
    if capture is None or now - capture.written_at > LAKE_RATE_SECONDS:
        return ""
    return f"<span>reads {escape(size_text(capture.bytes_per_second))}/s</span>"


def _disk(capture: CaptureStatus | None) -> str:
    """The value log on this machine's disk; "" for a capture elsewhere."""
    if capture is None:
        return ""
    if capture.state is ChaserState.DIRECT:
        return f"<span>{escape(disk_text(capture))}</span>"
    words = f"the lake lacks {size_text(capture.behind_bytes)}. {lasts_text(capture)}"
    return f"<span class='bad'>{escape(words)}</span>"


def _safety(view: PipelineView, stands: CaptureStanding, disks: Mapping[str, Disk | None]) -> str:
    """Two questions of every evening: is it verified, and are changes lost if capture is down until tomorrow? And what
    may stop it.
    """
    several = len(stands.sources) > 1
    lines = []
    for source in stands.sources:
        who = f"{escape(source.source)}: " if several else ""
        said = if_down(source.purge) if source.purge else "Not known: the source doesn't say when it purges."
        left = source.purge.seconds_left if source.purge else None
        bad = left is not None and left < PURGE_SOON_SECONDS
        lines.append(f"<span{' class=bad' * bad}>{who}{escape(said)}</span>")
    verified = verification(view)
    name = escape(stands.pipeline)
    if stands.tables and not view.verified:
        verified += f": <code>tidegate verify {name}</code>, or unpause <code>{name}__verify</code>"
    hours, room = _hours(view, stands), _low_disks(view, disks)
    return (
        "<section aria-labelledby='safety'><h3 id='safety'>Safety</h3><dl>"
        f"<dt>Lost if capture stays down until tomorrow</dt><dd>{'<br>'.join(lines)}</dd>"
        f"<dt>Last verification</dt><dd>{verified}<br>{_when_verified(view)}</dd>"
        f"{f'<dt>Hours for other DAGs</dt><dd>{hours}</dd>' * bool(hours)}"
        f"{f'<dt>Disks of this Airflow server</dt><dd>{room}</dd>' * bool(room)}</dl></section>"
    )


def _low_disks(view: PipelineView, disks: Mapping[str, Disk | None]) -> str:
    """Those nearly full, and those that don't answer; "" without any."""
    lines = [
        f"The disk of {name} doesn't answer: its mount hangs, or is stale."
        if disk is None
        else f"The disk of {name} has {size_text(disk.free)} left of {size_text(disk.total)}: make room at"
        f" {disk.folder}. A full disk stops what writes to it, and loses nothing."
        for name, disk in disks.items()
        if disk is None or is_low(disk, view.pipeline)
    ]
    return "<br>".join(f"<span class='bad'>{escape(line)}</span>" for line in lines)


def _when_verified(view: PipelineView) -> str:
    hours = view.pipeline.verify.each_table_hours
    if hours:
        return f"Each table once in {hours} h, by <code>{escape(view.pipeline.pipeline)}__verify</code>."
    alert = "" if hours is None else ", and no alert says when it is old"
    key = "isn't set" if hours is None else "is 0"
    return f"Only by hand{alert}: <code>verify.each_table_hours</code> {key}."


def _hours(view: PipelineView, stands: CaptureStanding) -> str:
    """The hours of `completeness`, and the tables they wait for; "" without hours."""
    figures = list(overdue(view))
    if not figures:
        return ""
    outside = len(stands.unseen)
    aside = f", and not for {counted(outside, 'table that isn', 'tables that aren')}'t in silver" * bool(outside)
    waits = f"{stands.pipeline}__complete waits for {counted(len(stands.alive), 'table', 'tables')} of silver{aside}"
    none = [f"no hour of {table_shown(name)} yet: {words}" for name, words in unknown(view).items()]
    late, words = [(name, seconds) for name, seconds in figures if seconds], overdue_words(view)
    lines = (
        f"an hour of {table_shown(name)} is over for {age_text(seconds)} and isn't complete"
        + (f": {words[name]}" if name in words else "")
        for name, seconds in sorted(late, key=lambda each: each[0] != ALL)[:HOUR_NAMED_TABLES_MAX]
    )
    shown = [*map(escape, none), *(f"<span class='bad'>{escape(line)}</span>" for line in lines)]
    return "<br>".join([*(shown or ["every hour that is over is complete"]), escape(waits)])


def _history(timeline: Timeline | None, asked: TablesAsked, sources: int) -> str:
    if timeline is None:
        return ""
    current = {asked.span: " aria-current='true'"}
    links = " ".join(f"<a href='{escape(asked.link(span=span))}'{current.get(span, '')}>{span}</a>" for span in RANGES)
    seconds = timeline.step_seconds * len(timeline.lag)
    ends = (_clock(timeline.end - seconds, seconds), _clock(timeline.end, seconds))
    rates = [rows / timeline.step_seconds for rows in timeline.rows]
    volume = [size / timeline.step_seconds for size in timeline.payload_bytes]
    windows = chart(timeline.window_seconds, "Longest time between two cuts", _short_age, ends)
    of_all = " of all sources" * (sources > 1)
    cpu = chart(timeline.capture_cpu, f"CPU of capture{of_all}", _cores, ends)
    cpu += chart(timeline.apply_cpu, "CPU of apply", _cores, ends)
    return (
        f"<section aria-labelledby='history'><h3 id='history'>History</h3><nav aria-label='Range'>Last {links}</nav>"
        f"<div class='charts'>{chart(timeline.lag, 'Lag of silver', _short_age, ends)}"
        f"{chart(rates, 'Row changes a second', rate_text, ends)}"
        f"{chart(volume, 'Binlog a second', size_text, ends)}{windows}{cpu}</div>"
        "</section>"
    )


def _changes(view: PipelineView) -> str:
    """The newest changes of columns, and the effect of each on silver."""
    if not view.changes:
        return ""
    rows = []
    for name, change in view.changes:
        table = f"<a href='{escape(table_page(view, name))}'>{escape(name)}</a>"
        rows.append(
            (escape(time_text(change.version.commit_ts)), table, *what_changed(change), view.in_silver(name, change))
        )
    heads = ("When", "Table", "What changed", "Statement", "In silver")
    shown = wide_table("Schema changes", heads, rows)
    return f"<section aria-labelledby='changes'><h3 id='changes'>Last schema changes</h3>{shown}</section>"


def _short_age(seconds: float) -> str:
    """The age of a peak as text; never "0" for a peak that shows."""
    return f"{seconds * 1000:.2g} ms" if 0 < seconds < 0.05 else age_text(seconds)


def _cores(seconds: float) -> str:
    """CPU seconds a second."""
    return f"{seconds:.0%} of a core" if seconds < 1 else f"{seconds:.1f} cores"


def _clock(seconds: float, of: float) -> str:
    return time.strftime("%H:%M" if of <= RANGES["day"] else "%m-%d %H:%M", time.gmtime(seconds)) + " UTC"


def _unseen(stands: CaptureStanding) -> str:
    if not stands.unseen:
        return ""
    names = ", ".join(stands.unseen[:20]) + (" ..." if len(stands.unseen) > 20 else "")
    count = counted(len(stands.unseen), "table isn't", "tables aren't")
    return f"<p>{count} in silver yet: {escape(names)} ({UNSEEN_WORDS}).</p>"
