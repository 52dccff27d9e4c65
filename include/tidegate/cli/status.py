"""`tidegate status PIPELINE`: how far the sources and the tables are, and whether anything is missing.

In:  a pipeline file; its lake (keys in the lake's connection, AIRFLOW_CONN_<ID>); its sources' connections: each is
     asked where its binlog ends; one without an answer is named.
Out: text or JSON on stdout; exit code 1 when a table is held, when the cut goes on without a source, when nothing of a
     source was ever captured into the lake, or with --max-lag when silver is further behind. The state of capture comes
     first. It is read from capture's own file on this machine, so it is shown even if the lake is down.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tidegate import pipelines
from tidegate.cli.lake import open_lake
from tidegate.connections import from_environment
from tidegate.errors import LakeUnavailable
from tidegate.home import EXIT_ERROR, state_folder
from tidegate.limits import (
    CAPTURE_KNOWN_SECONDS,
    CLOCK_SKEW_SECONDS_MAX,
    LATENCY_SUMMED_SECONDS,
    PURGE_SOON_SECONDS,
)
from tidegate.text_layout import age_text, columns, counted, paragraph, size_text

_UNSEEN_NAMED: Final = 5
_WAITING_SHOWN: Final = 20
_HELD_NAMED: Final = 8

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tidegate.capture.silence import LeasedWork, Silence
    from tidegate.capture.standing import CaptureStanding, SourceStanding
    from tidegate.capture.status_file import CaptureStatus
    from tidegate.lake.figures.status import TableStatus
    from tidegate.snapshot.progress.events import TableProgress


def status(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline, or path of its file")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs")] = False,
    max_lag: Annotated[float | None, typer.Option(help="Exit code 1 if the lag is larger, in seconds", min=0)] = None,
    state_dir: Annotated[Path | None, typer.Option(help="Folder of the value log. Default: .tidegate")] = None,
) -> None:
    """Show the lag of a pipeline, and the tables that wait."""
    from tidegate.capture import status_file
    from tidegate.lake.bronze import prewrites
    from tidegate.lake.figures import latency
    from tidegate.lake.figures.maintained import last_maintain
    from tidegate.lake.figures.timeline import timeline
    from tidegate.lake.format.version import format_of

    loaded, lake = open_lake(pipeline)
    statuses = status_file.read_all(loaded, state_dir or state_folder())
    if statuses and not as_json:
        print("\n".join(_capture_lines(statuses)), end="\n\n")
    try:
        now = time.time()
        view = pipelines.look(loaded, lake, pipelines.asking(loaded, lake, from_environment), now, None, state_dir)
        standing = view.standing
        assert standing is not None, "a lake that can't be read raises"
        markers = latency.recent(lake, LATENCY_SUMMED_SECONDS)
        past = timeline(lake, now, pipelines.RANGES["hour"], loaded.sources) if as_json else None
        if as_json:
            waiting, maintained = prewrites.waiting(lake), last_maintain(lake)
            view = replace(view, changes=pipelines.recent(loaded, lake), prewrites=waiting, maintained=maintained)
        layout = format_of(lake)
    except OSError as error:
        raise LakeUnavailable(f"can't be read: {error}", where=lake.root, remedy="check the lake's store") from error
    if as_json:
        view = replace(view, timeline=past.with_lag_now(standing.lag_seconds) if past else None)
        cells = pipelines.as_json(view) | {"capture": {name: asdict(capture) for name, capture in statuses.items()}}
        cells["format"] = {"version": layout.version, "upgraded": layout.is_ours, "release": layout.release}
        print(json.dumps(cells | {"latency": asdict(markers) if markers else None}))
    else:
        filling = {loaded.tables.logical(*table.name).name for table in view.snapshots}
        print("\n".join([*status_lines(standing, filling), *snapshot_lines(view.snapshots)]))
        if not layout.is_ours and layout.is_there:
            print("\n".join(["", *paragraph("the lake:", layout.told)]))
        if markers:
            print(f"\nCommit to visible, {markers.markers} markers of the last minutes: {markers}")
    late = max_lag is not None and (standing.lag_seconds is None or standing.lag_seconds > max_lag)
    empty = any(source.captured is None for source in standing.sources)
    raise typer.Exit(EXIT_ERROR if standing.held or standing.left_behind or standing.ahead or empty or late else 0)


def status_lines(standing: CaptureStanding, filling: Collection[str] = ()) -> list[str]:
    """All lines except those of this machine's capture. filling: tables that have lines by
    snapshot_lines.
    """
    from tidegate.capture.silence import LeasedWork
    from tidegate.capture.standing import UNSEEN_WORDS

    lines = paragraph("", _headline(standing), indent="")[1:]
    for source in standing.sources:
        lines += _source_lines(source, standing)
        down = standing.silence(LeasedWork.CAPTURE, source.source)
        lines += _down_lines(down, _uncaptured(source))
    down = standing.silence(LeasedWork.APPLY, standing.pipeline)
    lines += _down_lines(down, _unapplied(standing))
    lines += _skew_lines(standing)
    shown = [("table", "state", "behind")]
    shown += [(table.table, table.state, age_text(standing.seconds_behind(table))) for table in standing.tables]
    if standing.tables:
        lines += ["", *columns(shown)]
    if standing.unseen and standing.tables:
        named = ", ".join(standing.unseen[:_UNSEEN_NAMED]) + (", ..." if len(standing.unseen) > _UNSEEN_NAMED else "")
        text = f"and {len(standing.unseen)} more, not in silver yet: {named} ({UNSEEN_WORDS})"
        lines += paragraph("", text, indent="")[1:]
    for alike in _alike(standing.held):
        lines += ["", *held_lines(*alike)]
    lines += _waiting_lines(standing, filling)
    if standing.rebuilt:
        lines += ["", *paragraph("made by rebuild, and yours to remove:", ", ".join(standing.rebuilt))]
    return lines


def snapshot_lines(snapshots: Sequence[TableProgress]) -> list[str]:
    """Lines of the tables whose rows are being read."""
    lines: list[str] = []
    for snapshot in snapshots:
        parts = [f"{snapshot.state}; {snapshot.rows:,} rows of {counted(snapshot.waves, 'wave', 'waves')} are read"]
        parts += [f"{counted(len(snapshot.left), 'key range is', 'key ranges are')} left"] if snapshot.left else []
        parts += [f"{counted(len(snapshot.waiting), 'wave waits', 'waves wait')} for apply"] if snapshot.waiting else []
        if snapshot.refused:
            what = counted(len(snapshot.refused), "wave was refused and is", "waves were refused and are")
            parts.append(f"{what} read again, the last as {snapshot.refused[-1]}")
        lines += [
            "",
            *paragraph(f"snapshot of {snapshot.database}.{snapshot.table} of {snapshot.source}:", ", ".join(parts)),
        ]
    return lines


def _headline(standing: CaptureStanding) -> str:
    from tidegate.capture.silence import LeasedWork
    from tidegate.tables import State

    if not standing.cut_ts:
        captured = any(source.captured for source in standing.sources)
        runs = _runs(standing, LeasedWork.APPLY, standing.pipeline)
        asks = f": is apply running? Look at the DAG {standing.pipeline}__apply" if captured else ""
        asks = f"; apply {runs}, in its first window" if captured and runs else asks
        return f"{standing.pipeline}: nothing is applied yet{asks}"
    behind = "nothing is missing" if standing.nothing_missing else _behind(standing)
    if standing.ahead:
        behind = "its cut is in the future, and apply goes no further:"
        behind += f" the log of {standing.pipeline}__apply says why"
    held = f", but for {len(standing.held)} of {len(standing.tables)} tables, held" if standing.held else ""
    filled = sum(table.state is State.SNAPSHOT for table in standing.tables)
    lack = "table lacks rows until its snapshot ends", "tables lack rows until their snapshots end"
    held += f"; {counted(filled, *lack)}" if filled else ""
    return f"{standing.pipeline}: {behind}{held}; cut of {_time(standing.cut_ts)} ({standing.cut_ts})"


def _behind(standing: CaptureStanding) -> str:
    """The lag, as far as it is known, and its cause if capture can't end it."""
    age = age_text(standing.lag_seconds)
    if purged := [source.source for source in standing.sources if source.is_purged]:
        return f"{age} behind: the server of {', '.join(purged)} has purged the binlog that capture stopped in"
    down = [source.source for source in standing.sources if source.is_down]
    if down and not standing.unapplied_bytes:
        return f"complete up to {age} ago; whether more is missing isn't known: {', '.join(down)} doesn't answer"
    return f"{age} behind"


def _runs(standing: CaptureStanding, work: LeasedWork, of: str) -> str:
    """The host of a running job, and for how long it runs; "" if it doesn't."""
    holders = (each for each in standing.holders if (each.work, each.of) == (work, of))
    return next((f"runs on {each.host} for {age_text(time.time() - each.since)}" for each in holders), "")


def _source_lines(source: SourceStanding, standing: CaptureStanding) -> list[str]:
    from tidegate.capture.silence import LeasedWork

    captured, server, pipeline = source.captured, source.server, standing.pipeline
    if captured is None:
        text = source.lost or "the lake is new, nothing was ever captured into it"
        if not source.lost and (runs := _runs(standing, LeasedWork.CAPTURE, source.source)):
            text += f"; capture {runs}"
        elif not source.lost:
            text += f": is capture running? Look at the DAG {source.capture_dag}: is it paused, what does its log say?"
    else:
        place = f"captured to {captured.file}:{captured.end_pos}"
        gtid = f", GTID {captured.gtid_executed}" if captured.gtid_executed and captured.server_id else ""
        size = f", {captured.bytes / 1e6:.1f} MB in bronze"
        if source.nothing_missing:
            wrote = f"its last change was at {source.changed_at}"
            wrote = wrote if captured.max_commit_ts else "it has written nothing since capture began"
            state = f"all of it is captured{_from_host(source)}; {wrote}"
        elif source.nothing_missing is None:
            state = f"complete up to {age_text(source.lag_seconds)} ago"  # sources without an answer are named below
        else:
            which = server.host or "the server"
            state = f"{age_text(source.lag_seconds)} behind {which}, which is at {server.position}"
        text = f"{state}; {place}{gtid}{size}"
    lines = paragraph(f"source {source.source}:", text)
    if source.unheard:
        lines += paragraph("  unheard:", source.unheard, indent="    ")
    if source.is_purged:
        oldest = source.purge.oldest_file if source.purge else ""
        what = f"the server's oldest binlog file is {oldest}: if capture can't go on from its place, the log is lost"
        lines += paragraph("  purged:", what, indent="    ")
        way = f"`tidegate accept {pipeline} {source.source}` shows the loss: docs/runbooks/binlog-purged.md"
        lines += paragraph("", way, indent="  -> ")[1:]
    if source.behind_ts is not None:
        since = f"since {_time(source.behind_ts)}" if source.behind_ts else "from its beginning"
        what = f"the cut goes on without it {since}; its tables wait there, and catch up by"
        lines += paragraph("  left behind:", f"{what} themselves once capture of it goes on", indent="    ")
    if not server.error and abs(server.clock_ahead_seconds) > CLOCK_SKEW_SECONDS_MAX:
        way = "ahead of" if server.clock_ahead_seconds > 0 else "behind"
        lines.append(f"  its clock is {abs(server.clock_ahead_seconds):.1f} s {way} this machine's: use NTP")
    if server.error:
        lines += paragraph("  no answer:", server.error, indent="    ")
        if source.is_down:
            goes_on = "capture tries again by itself, and goes on once it answers: repair the server or the network"
            lines += paragraph("", goes_on, indent="  -> ")[1:]
    elif server.tables is not None and not server.tables:
        lines += paragraph("  no table:", "tables.include matches no table that the server shows us", indent="    ")
    elif captured is None and server.tables is not None:
        matching = counted(len(server.tables), "table matches", "tables match")
        lines.append(f"  {matching}; tidegate check says which of them will be held")
    return lines


def _from_host(source: SourceStanding) -> str:
    """The host, in brackets: after a failover a person wants to know it."""
    return f" from {source.server.host}" if source.server.host else ""


def _down_lines(silence: Silence | None, means: str) -> list[str]:
    """Lines about stopped work: since when, its meaning, the way out."""
    if silence is None:
        return []
    lines = paragraph("", f"{silence.text(time.time())}. {means}", indent="  ")[1:]
    return lines + paragraph("", silence.way_out, indent="  -> ")[1:]


def _uncaptured(source: SourceStanding) -> str:
    from tidegate.capture.purging import if_down

    waits = "Nothing waits at the server yet. " if source.nothing_missing else ""
    if source.behind_bytes and not waits:
        waits = f"{size_text(source.behind_bytes)} of binlog wait at the server. "
    if source.purge is None:
        return f"{waits}It isn't known when the source purges uncaptured log."
    return f"{waits}Lost if it stays down until tomorrow? {if_down(source.purge)}"


def _unapplied(standing: CaptureStanding) -> str:
    size = standing.unapplied_bytes
    waits = f"{size_text(size)} of bronze wait" if size else "Nothing waits yet"
    lag = age_text(standing.lag_seconds)
    return f"{waits}; silver is {lag} behind. Nothing is lost: bronze keeps it."


def _skew_lines(standing: CaptureStanding) -> list[str]:
    """Lines about clocks. With several sources the slowest clock decides when commits are visible."""
    if len(standing.sources) < 2 or any(source.server.error for source in standing.sources):
        return []
    text = f"clocks of the sources differ by {standing.skew_seconds:.1f} s"
    if standing.skew_seconds <= CLOCK_SKEW_SECONDS_MAX:
        return [text]
    what = f"{text}: commits of the one that is furthest ahead are visible that much later, and commits of two sources"
    return paragraph("", f"{what} are ordered wrongly by that; use NTP", indent="")[1:]


def held_lines(table: TableStatus, *others: TableStatus) -> list[str]:
    """Lines about a held table: why, since when, and the way out. others: tables whose lines differ
    only in the name.
    """
    since, text, way_out = _held_words(table)
    names = [each.table for each in (table, *others)]
    head = f"{names[0]} is held"
    if others:
        more = len(names) - _HELD_NAMED
        head = ", ".join(names[:_HELD_NAMED]) + (f" and {more} more" if more > 0 else "") + " are held"
        text, way_out = (words.replace(table.table, "<table>") for words in (text, way_out))
    lines = paragraph(f"{head}{f' since {since}' if since else ''}:", text)
    return lines + (paragraph("", way_out, indent="  -> ")[1:] if way_out else [])


def _held_words(table: TableStatus) -> tuple[str, str, str]:
    """(since when, why, the way out)."""
    place = f"{table.file}:{table.pos}"
    text = table.reason if not table.file or place in table.reason else f"{place}: {table.reason}"
    if table.ddl and table.ddl[:20] not in " ".join(table.reason.split()):
        text += f"; at: {table.ddl}"
    return table.since, text, table.way_out


def _alike(held: Sequence[TableStatus]) -> list[list[TableStatus]]:
    """Groups of tables with the same text: a lost log holds all tables of a source for one reason."""
    groups: dict[tuple[str, ...], list[TableStatus]] = {}
    for table in held:
        words = (each.replace(table.table, "<table>") for each in _held_words(table))
        groups.setdefault(tuple(words), []).append(table)
    return list(groups.values())


def _waiting_lines(standing: CaptureStanding, filling: Collection[str]) -> list[str]:
    """Lines of tables that wait without a person's help; if there are many, of the first ones."""
    from tidegate.tables import State

    words = {State.RELEASED: "is released, and waits", State.SNAPSHOT: "waits for its snapshot"}
    waiting = [table for table in standing.tables if table.state in words and table.table not in filling]
    waiting.sort(key=lambda table: table.state is State.SNAPSHOT)
    lines: list[str] = []
    for table in waiting[:_WAITING_SHOWN]:
        what = words[table.state]
        text = "; ".join(part for part in (table.reason, table.way_out) if part)
        lines += ["", *paragraph(f"{table.table} {what}:", text)]
    if len(waiting) > _WAITING_SHOWN:
        more = counted(len(waiting) - _WAITING_SHOWN, "more table waits", "more tables wait")
        lines += ["", f"and {more} likewise"]
    return lines


def _time(commit_ts: int) -> str:
    from tidegate.commit_ts import time_text

    return time_text(commit_ts)


def _capture_lines(statuses: dict[str, CaptureStatus]) -> list[str]:
    """Lines about capture on this machine. How long its disk lasts is shown only while the lake is
    behind.
    """
    from tidegate.capture.status_file import clock_text, disk_text, lasts_text
    from tidegate.mysql.history import retention

    lines = []
    for name, capture in statuses.items():
        behind = capture.behind_bytes > 0 or capture.state != "direct"
        parts = [f"seen {age_text(max(0.0, time.time() - capture.written_at))} ago"]
        if behind:
            parts.append(f"behind for {age_text(capture.written_at - capture.since)}: the lake lacks")
            parts[-1] += f" {capture.behind_bytes / 1e6:.1f} MB. {lasts_text(capture)}"
        else:
            parts.append(f"the lake has all of it; {disk_text(capture)}")
        parts += [text for text in (capture.reason if behind else "", capture.lake_error, clock_text(capture)) if text]
        fresh = time.time() - capture.written_at < CAPTURE_KNOWN_SECONDS  # else its source's lines name it
        left = capture.retention.seconds_left if capture.retention else None
        if fresh and capture.retention and left is not None and left < PURGE_SOON_SECONDS:
            parts.append(retention.purge_text(capture.retention))
        lines += paragraph(f"capture of {name} on this machine:", "; ".join(parts))
    return lines
