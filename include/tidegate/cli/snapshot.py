"""`tidegate snapshot start|restart|run|pause|resume|cancel|status PIPELINE [TABLE...]`: rows read by SELECT.

In:  a pipeline file; its sources' connections, whose accounts may write `tidegate.watermark`; capture and apply, which
     run meanwhile: each wave of rows is taken by apply before the reader may end.
Out: requests and events in control/snapshots, rows in bronze/chunks, marks at the source; lines on stderr meanwhile.
     Ctrl-C ends after the wave that is being read, with 130; `run` goes on, and with --follow it goes on by itself
     where source or lake were down. Exit code 1 when a table wasn't read.
"""

from __future__ import annotations

import json
import shutil
import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tidegate import pipelines
from tidegate.cli.lake import open_desk, open_lake
from tidegate.cli.snapshot_lines import is_to_read, progress_lines
from tidegate.cli.stop_signals import set_by_signals
from tidegate.errors import LeaseHeld, Transient, UsageError
from tidegate.home import EXIT_ERROR, EXIT_INTERRUPTED
from tidegate.limits import SNAPSHOT_FOLLOW_AGAIN_SECONDS, SNAPSHOT_WAITING_SECONDS
from tidegate.text_layout import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tidegate.config import Pipeline
    from tidegate.snapshot.progress.events import TableProgress
    from tidegate.snapshot.work import SnapshotWork

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Read existing rows, without locks.")

# The sections that a reader needs. Of `apply` it needs zero_dates: a snapshot must treat zero dates
# as apply does.
_PARTS_READ: Final = ("snapshot", "apply")
# Lines of a screen that aren't tables: head, sum, the count of hidden tables, the waits.
_SCREEN_OTHERS: Final = 9

PipelineName = Annotated[str, typer.Argument(help="Name of the pipeline, or path of its file", metavar="PIPELINE")]
Tables = Annotated[
    list[str] | None,
    typer.Argument(
        help="Tables as in silver: database.table, or patterns as in tables.include. Default: all",
        metavar="[TABLE]...",
    ),
]


@app.command("start")
def start(pipeline: PipelineName, table: Tables = None) -> None:
    """Request snapshots of tables (default: all that wait for one), and read them to their end marks."""
    desk = open_desk(pipeline)
    from tidegate.actions import snapshot_words  # numba, pyarrow: a second; a typo is reported before that

    work = snapshot_words.work_of(desk, _tell)
    _tell(snapshot_words.start(desk, work, table or ()))
    _read(desk.pipeline, work, beside_another=True)


@app.command("run")
def run(
    pipeline: PipelineName,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", help="Continue until Ctrl-C: also read tables that come to wait")
    ] = False,
) -> None:
    """Read the requested tables. With snapshot.mode auto also request the tables that wait."""
    from tidegate.snapshot.work import is_read

    loaded, work = _work(pipeline)
    set_by_signals(work.stop)
    if not follow:
        work.ask()
        _read(loaded, work)
    said, watch = "", pipelines.FileWatch(pipelines.find(pipeline), loaded, *_PARTS_READ)
    while not work.stop.is_set():
        wait = SNAPSHOT_WAITING_SECONDS
        if watch.has_changed():
            stop = work.stop  # a signal may come meanwhile
            loaded, work = _work(pipeline)
            work.stop = stop
            watch = pipelines.FileWatch(pipelines.find(pipeline), loaded, *_PARTS_READ)
        try:
            if work.open() or work.ask():
                _tell_left(loaded, [progress for progress in work.read() if not is_read(progress)])
                said = ""
        except Transient as error:
            # Another `start` runs: its remaining tables are read afterwards. Or source or lake are down for a while.
            held = isinstance(error, LeaseHeld)
            wait = wait if held else SNAPSHOT_FOLLOW_AGAIN_SECONDS
            goes_on = "this one waits" if held else f"tried again every {wait:g} s until it passes"
            kind = type(error).__name__
            if kind != said:
                typer.echo(f"{error}; {goes_on}", err=True)
            said = kind
        work.stop.wait(wait)
    raise typer.Exit(EXIT_INTERRUPTED)


@app.command("restart")
def restart(pipeline: PipelineName, table: Tables = None) -> None:
    """Read tables from the beginning again (default: all with an unfinished snapshot)."""
    desk = open_desk(pipeline)
    from tidegate.actions import snapshot_words

    work = snapshot_words.work_of(desk, _tell)
    line = snapshot_words.restart(desk, work, table or ())
    if not line:
        typer.echo("no snapshot is to be begun again: each table's last one is done")
        return
    _tell(line)
    _read(desk.pipeline, work, beside_another=True)


@app.command("pause")
def pause(pipeline: PipelineName, table: Tables = None) -> None:
    """Stop reading after the present wave, until `resume`."""
    _say(pipeline, "pause", table or ())


@app.command("resume")
def resume(pipeline: PipelineName, table: Tables = None) -> None:
    """End a pause: `run` or `start` continues the snapshots."""
    _say(pipeline, "resume", table or ())


@app.command("cancel")
def cancel(pipeline: PipelineName, table: Tables = None) -> None:
    """Give snapshots up. A table that lacks rows is then held."""
    _say(pipeline, "cancel", table or ())


@app.command("status")
def status(
    pipeline: PipelineName,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Refresh until nothing is open")] = False,
) -> None:
    """Show the progress of each table's last snapshot. Exit code 1 if one failed."""
    if as_json and follow:
        raise UsageError("--follow has no form as JSON", remedy="give one of them")
    from tidegate.snapshot.progress.events import SnapshotState
    from tidegate.snapshot.progress.held_back import held_back
    from tidegate.snapshot.progress.requests import Told
    from tidegate.snapshot.work import newest, where_others_are

    loaded, lake = open_lake(pipeline)
    requests = Told(lake, loaded.pipeline)
    last = newest(requests.tables())

    def lines(tables_max: int | None = None) -> str:
        waits = sorted({progress.source for progress in last if progress.waiting})
        others = {source: where_others_are(lake, source) for source in waits}
        held = held_back(loaded, lake, last)
        return "\n".join(progress_lines(last, requests.busy(), others, held, tables_max))

    if follow:
        from rich.live import Live
        from rich.text import Text

        with Live(Text(""), auto_refresh=False, vertical_overflow="visible") as shown:
            while any(not progress.state.is_over for progress in last):
                shown.update(Text(lines(_tables_that_fit())), refresh=True)
                time.sleep(SNAPSHOT_WAITING_SECONDS)
                last = newest(requests.tables())
            shown.update(Text(lines()), refresh=True)
    elif as_json:
        busy, held = requests.busy(), held_back(loaded, lake, last)
        cells = [_cells(progress, busy) | {"held": held.get((progress.source, progress.name), "")} for progress in last]
        print(json.dumps(cells, ensure_ascii=False))
    elif not last:
        print("no snapshot was asked for")
    else:
        print(lines())
    raise typer.Exit(EXIT_ERROR if any(progress.state is SnapshotState.FAILED for progress in last) else 0)


def _work(pipeline: str) -> tuple[Pipeline, SnapshotWork]:
    desk = open_desk(pipeline)
    from tidegate.actions import snapshot_words

    return desk.pipeline, snapshot_words.work_of(desk, _tell)


def _tell(line: str) -> None:
    typer.echo(line, err=True)


def _read(loaded: Pipeline, work: SnapshotWork, *, beside_another: bool = False) -> None:
    """Read the requested tables. beside_another: if a reader runs already, it takes the requests,
    and this process waits for it.
    """
    from tidegate.snapshot.work import is_read

    set_by_signals(work.stop)
    asked_for = _all_read(work) if beside_another else work.read()
    left = [progress for progress in asked_for if not is_read(progress)]
    if work.stop.is_set() and left:
        what = counted(len(left), "table is", "tables are")
        typer.echo(f"stopped; {what} left: tidegate snapshot run {loaded.pipeline} goes on", err=True)
        raise typer.Exit(EXIT_INTERRUPTED)
    _tell_left(loaded, left)
    rows, read = (
        sum(progress.rows for progress in asked_for),
        counted(len(asked_for) - len(left), "table is", "tables are"),
    )
    typer.echo(f"{read} read, {rows:,} rows; each is whole when apply has come to its end")
    raise typer.Exit(EXIT_ERROR if left else 0)


def _all_read(work: SnapshotWork) -> list[TableProgress]:
    """Wait until all open snapshots are read, by this process or by the holder of the lease.
    Returns their progress.
    """
    own, held = {(progress.snapshot, progress.source, progress.name) for progress in work.open()}, False
    while True:
        try:
            own |= {(progress.snapshot, progress.source, progress.name) for progress in work.read()}
        except LeaseHeld as error:
            if not held:
                typer.echo(f"{error.where}: {error.what}: it reads what is asked for; this one waits", err=True)
            held = True
            work.stop.wait(SNAPSHOT_WAITING_SECONDS)
            if not work.stop.is_set():
                continue
        return [
            progress for progress in work.told.tables() if (progress.snapshot, progress.source, progress.name) in own
        ]


def _tell_left(loaded: Pipeline, left: Collection[TableProgress]) -> None:
    from tidegate.snapshot.work import logical_name

    for progress in left:
        why = f": {progress.reason}" if progress.reason else ""
        typer.echo(f"{logical_name(loaded, progress)} of {progress.source} is {progress.state}{why}", err=True)


def _say(pipeline: str, word: str, names: Collection[str]) -> None:
    desk = open_desk(pipeline)
    from tidegate.actions import snapshot_words
    from tidegate.tables.actions_table import Act

    typer.echo(snapshot_words.tell(desk, Act(word), names, _tell))


def _tables_that_fit() -> int:
    """The number of tables that fit on the screen, as a display that refreshes can't be scrolled."""
    return max(1, shutil.get_terminal_size().lines - _SCREEN_OTHERS)


def _cells(progress: TableProgress, busy: Mapping[str, str]) -> dict[str, object]:
    return {
        "snapshot": progress.snapshot,
        "source": progress.source,
        "database": progress.database,
        "table": progress.table,
        "state": str(progress.state),
        "rows": progress.rows,
        "bytes": progress.bytes,
        "estimate": progress.estimate,
        "rows_per_second": round(progress.rate, 1),
        "waves": progress.waves,
        "waiting": len(progress.waiting),
        "refused": list(progress.refused),
        "reason": progress.reason,
        "source_is_busy": busy.get(progress.source, "") if is_to_read(progress) else "",
    }
