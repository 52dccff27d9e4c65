"""`tidegate snapshot start|restart|run|pause|resume|cancel|status PIPELINE [TABLE...]`: rows read by SELECT.

In:  a pipeline file; its sources' connections, whose accounts may write `tidegate.watermark`; capture and apply, which
     run meanwhile: each wave of rows is taken by apply before the reader may end.
Out: requests and events in control/snapshots, rows in bronze/chunks, marks at the source; lines on stderr meanwhile.
     Ctrl-C ends behind the wave that is being read, with 130; `run` goes on. Exit code 1 when a table wasn't read.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tidegate import pipelines
from tidegate.cli.lake import open_lake
from tidegate.config import named_tables
from tidegate.connections import from_environment
from tidegate.errors import LeaseHeld
from tidegate.home import EXIT_ERROR, EXIT_INTERRUPTED
from tidegate.limits import SNAPSHOT_WAITING_SECONDS
from tidegate.text_layout import columns, paragraph

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tidegate.config import Pipeline
    from tidegate.snapshot.progress.events import EventKind, SnapshotState, TableProgress
    from tidegate.snapshot.work import SnapshotWork

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Read rows from before capture, without locks.")

_NAMED_MAX: Final = 10

PipelineName = Annotated[str, typer.Argument(help="Pipeline: its name, or its file", metavar="PIPELINE")]
Tables = Annotated[
    list[str] | None,
    typer.Argument(
        help="Tables as in silver: database.table, or patterns as in tables.include; all when empty",
        metavar="[TABLE]...",
    ),
]


@app.command("start")
def start(pipeline: PipelineName, table: Tables = None) -> None:
    """Ask for tables (without names: all that wait for a snapshot), and read them until they are marked."""
    loaded, work = _work(pipeline)
    new = work.request(table or ())
    typer.echo(f"{len(new)} tables are asked for; what is asked for and not read yet goes on", err=True)
    _read(loaded, work)


@app.command("run")
def run(
    pipeline: PipelineName,
    *,
    follow: Annotated[bool, typer.Option("--follow", help="Go on until Ctrl-C: read what comes to wait")] = False,
) -> None:
    """Go on with what was asked for; with snapshot.mode auto ask for what waits, too."""
    from tidegate.snapshot.work import is_read

    loaded, work = _work(pipeline)
    _end_on_signals(work)
    work.ask()
    if not follow:
        _read(loaded, work)
    held = ""
    while not work.stop.is_set():
        try:
            if work.open() or work.ask():
                _tell_left(loaded, [one for one in work.read() if not is_read(one)])
                held = ""
        except LeaseHeld as error:  # `start` in another terminal: what it leaves is read afterwards
            if not held:
                typer.echo(f"{error}; this one waits", err=True)
            held = str(error)
        work.stop.wait(SNAPSHOT_WAITING_SECONDS)
    raise typer.Exit(EXIT_INTERRUPTED)


@app.command("restart")
def restart(pipeline: PipelineName, table: Tables = None) -> None:
    """Read tables from their beginning again (without names: all whose last snapshot isn't done)."""
    from tidegate.snapshot.progress.events import EventKind, SnapshotState
    from tidegate.snapshot.progress.requests import tell_tables, told
    from tidegate.snapshot.work import logical_name, newest

    loaded, work = _work(pipeline)
    last = newest(told(work.lake, loaded.pipeline))
    found = [one for one in last if one.state is not SnapshotState.DONE]
    if table:
        named = named_tables(
            table,
            {logical_name(loaded, one) for one in last},
            where=loaded.pipeline,
            lacks="{} had no snapshot",
            remedy="tidegate snapshot start begins one",
        )
        found = [one for one in last if logical_name(loaded, one) in named]
    if not found:
        typer.echo("no snapshot is to be begun again: each table's last one is done")
        return
    is_open = [one for one in found if not one.state.is_over]
    tell_tables(work.lake, loaded.pipeline, is_open, EventKind.CANCELLED, "it is begun from its start again")
    new = work.request(sorted({logical_name(loaded, one) for one in found}))
    typer.echo(f"{len(new)} tables are asked for from their beginning", err=True)
    _read(loaded, work)


@app.command("pause")
def pause(pipeline: PipelineName, table: Tables = None) -> None:
    """Stop reading behind the wave that is being read, until resumed."""
    from tidegate.snapshot.progress.events import EventKind, SnapshotState

    _tell(pipeline, table or (), EventKind.PAUSED, (SnapshotState.REQUESTED, SnapshotState.RUNNING))


@app.command("resume")
def resume(pipeline: PipelineName, table: Tables = None) -> None:
    """Let what is paused be gone on with, by `run` or `start`."""
    from tidegate.snapshot.progress.events import EventKind, SnapshotState

    _tell(pipeline, table or (), EventKind.RESUMED, (SnapshotState.PAUSED,))


@app.command("cancel")
def cancel(pipeline: PipelineName, table: Tables = None) -> None:
    """Give snapshots up: a table that lacks rows then is held."""
    from tidegate.snapshot.progress.events import EventKind, SnapshotState

    states = (SnapshotState.REQUESTED, SnapshotState.RUNNING, SnapshotState.PAUSED, SnapshotState.ENDED)
    _tell(pipeline, table or (), EventKind.CANCELLED, states)


@app.command("status")
def status(
    pipeline: PipelineName,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Show it anew until nothing is open")] = False,
) -> None:
    """How far each table's last snapshot is; exit code 1 when one failed."""
    from tidegate.snapshot.progress.events import SnapshotState
    from tidegate.snapshot.progress.requests import Told
    from tidegate.snapshot.work import newest

    loaded, lake = open_lake(pipeline)
    told = Told(lake, loaded.pipeline)
    found = newest(told.tables())
    if follow and not as_json:
        from rich.live import Live
        from rich.text import Text

        with Live(Text("\n".join(_lines(found, told.busy()))), auto_refresh=False) as shown:
            while any(not one.state.is_over for one in found):
                time.sleep(SNAPSHOT_WAITING_SECONDS)
                found = newest(told.tables())
                shown.update(Text("\n".join(_lines(found, told.busy()))), refresh=True)
    elif as_json:
        busy = told.busy()
        print(json.dumps([_cells(one, busy) for one in found], ensure_ascii=False))
    elif not found:
        print("no snapshot was asked for")
    else:
        print("\n".join(_lines(found, told.busy())))
    raise typer.Exit(EXIT_ERROR if any(one.state is SnapshotState.FAILED for one in found) else 0)


def _work(pipeline: str) -> tuple[Pipeline, SnapshotWork]:
    loaded, lake = open_lake(pipeline)
    for source in loaded.owners:
        if not loaded.lacks_snapshots(source):
            pipelines.sql_info(loaded, source, from_environment)  # a missing one is better told now

    from tidegate.snapshot.work import SnapshotWork  # numba, pyarrow: a second, not waited for to hear of a typo

    work = SnapshotWork(
        loaded,
        lake,
        lambda source: pipelines.sql_info(loaded, source, from_environment, lake),
        lambda line: typer.echo(line, err=True),
        replica_of=lambda source: pipelines.replica_info(loaded, source, from_environment),
    )
    return loaded, work


def _end_on_signals(work: SnapshotWork) -> None:
    stop: threading.Event = work.stop
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())


def _read(loaded: Pipeline, work: SnapshotWork) -> None:
    from tidegate.snapshot.work import is_read

    _end_on_signals(work)
    found = work.read()
    left = [one for one in found if not is_read(one)]
    if work.stop.is_set() and left:
        typer.echo(f"stopped; {len(left)} tables are left: tidegate snapshot run {loaded.pipeline} goes on", err=True)
        raise typer.Exit(EXIT_INTERRUPTED)
    _tell_left(loaded, left)
    rows = sum(one.rows for one in found)
    typer.echo(f"{len(found) - len(left)} tables are read, {rows:,} rows; each is whole when apply has come to its end")
    raise typer.Exit(EXIT_ERROR if left else 0)


def _tell_left(loaded: Pipeline, left: Collection[TableProgress]) -> None:
    from tidegate.snapshot.work import logical_name

    for one in left:
        why = f": {one.reason}" if one.reason else ""
        typer.echo(f"{logical_name(loaded, one)} of {one.source} is {one.state}{why}", err=True)


def _tell(pipeline: str, names: Collection[str], kind: EventKind, states: Collection[SnapshotState]) -> None:
    from tidegate.snapshot.progress.requests import tell_tables, told
    from tidegate.snapshot.work import logical_name

    loaded, lake = open_lake(pipeline)
    fit = [one for one in told(lake, loaded.pipeline) if one.state in states]
    known = sorted({logical_name(loaded, one) for one in fit})
    more = f" and {len(known) - _NAMED_MAX} more" if len(known) > _NAMED_MAX else ""
    named = named_tables(
        names,
        known,
        where=loaded.pipeline,
        lacks=f"{{}} has no snapshot that can be {kind}",
        remedy=f"tables with one: {', '.join(known[:_NAMED_MAX]) or 'none'}{more}",
    )
    found = [one for one in fit if not names or logical_name(loaded, one) in named]
    if found:
        tell_tables(lake, loaded.pipeline, found, kind)
    typer.echo(f"{kind}: {', '.join(logical_name(loaded, one) for one in found) or 'no table'}")


def _cells(one: TableProgress, busy: Mapping[str, str]) -> dict[str, object]:
    return {
        "snapshot": one.snapshot,
        "source": one.source,
        "database": one.database,
        "table": one.table,
        "state": str(one.state),
        "rows": one.rows,
        "bytes": one.bytes,
        "estimate": one.estimate,
        "rows_per_second": round(one.rate, 1),
        "waves": one.waves,
        "waiting": len(one.waiting),
        "refused": list(one.refused),
        "reason": one.reason,
        "source_is_busy": busy.get(one.source, "") if _is_to_read(one) else "",
    }


def _outlook(rows: int, estimate: int, rate: float, *, is_open: bool) -> tuple[str, str]:
    """Share of the estimate, and the time that the rest takes at this rate; "-" for what isn't known."""
    if not is_open:
        return "-", "-"
    share = f"{min(99, 100 * rows // estimate)} %" if estimate else "-"
    seconds = max(0, estimate - rows) / rate if estimate and rate else None
    return share, "-" if seconds is None else f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min"


def _is_to_read(one: TableProgress) -> bool:
    return one.state in ("requested", "running") and bool(one.left)


def _lines(found: Sequence[TableProgress], busy: Mapping[str, str]) -> list[str]:
    """busy: why a source isn't read now."""
    shown = [("source", "table", "state", "rows", "about", "rows/s", "left", "waves", "waiting for apply")]
    for one in found:
        share, left = _outlook(one.rows, one.estimate, one.rate, is_open=bool(one.left) and not one.state.is_over)
        cells = (f"{one.rows:,}", share, f"{one.rate:,.0f}", left, str(one.waves), str(len(one.waiting)))
        shown.append((one.source, ".".join(one.name), str(one.state), *cells))
    reads = [one for one in found if one.state in ("requested", "running")]
    if len(reads) > 1:  # what is read now, as one
        begun = [one for one in reads if one.waves]
        rows, seconds = sum(one.rows for one in reads), 0.0
        if begun:
            last = max(one.read_at for one in begun)
            seconds = (last - min(one.began_at for one in begun)).total_seconds()
        rate = rows / seconds if seconds > 0 else 0.0
        known = all(one.estimate for one in reads)
        share, left = _outlook(rows, sum(one.estimate for one in reads) if known else 0, rate, is_open=True)
        shown.append(("", f"{len(reads)} tables that are open", "", f"{rows:,}", share, f"{rate:,.0f}", left, "", ""))
    lines = columns(shown, right=(3, 4, 5, 6, 7, 8))
    for source in sorted({one.source for one in found if _is_to_read(one)} & busy.keys()):
        lines += ["", *paragraph(f"{source} isn't read now:", f"{busy[source]}; it goes on by itself")]
    for one in found:
        if (one.reason and not one.state.is_over) or one.state == "failed":
            lines += ["", *paragraph(f"{'.'.join(one.name)} of {one.source}:", one.reason)]
    return lines
