"""`tidegate vlog ls|check|cat PLACE`: what is in a value log, while capture runs or after it died; `owed PIPELINE`.

In:  a value log's folder, one of its files, or a pipeline whose log is on this machine.
Out: ls: a line per file; check: every checksum compared, a line per damage, exit code 1 when there is one; cat: a JSON
     line per segment, or its raw binlog events; owed: the logs with commits that the lake may lack, and forgetting
     one. Else nothing is written, and no lock is taken.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate import pipelines
from tidegate.cli.lake import open_desk, source_named
from tidegate.commit_ts import time_text
from tidegate.errors import TidegateError, UsageError
from tidegate.home import EXIT_ERROR, state_folder

if TYPE_CHECKING:
    from tidegate.actions.desk import Desk
    from tidegate.segments.segment import Segment

app = typer.Typer(add_completion=False, no_args_is_help=True, help="List, check and show the files of a value log.")

Place = Annotated[str, typer.Argument(help="A value log's folder or file, or a pipeline", metavar="PLACE")]
Source = Annotated[str | None, typer.Option(help="Source of the pipeline. Required if it has several")]
StateDir = Annotated[Path | None, typer.Option(help="Folder of the value log. Default: .tidegate")]


@app.command("ls")
def list_files(place: Place, source: Source = None, state_dir: StateDir = None) -> None:
    """List the files: bytes, segments, largest commit_ts, and whether a file is full."""
    from tidegate.capture.value_log.file import End, Record, Torn, opened
    from tidegate.capture.value_log.record import commit_ts_of

    paths = _paths(place, source, state_dir)
    print("file              bytes   first seq    last seq        max commit_ts  state")
    for path in paths:
        with opened(path) as file:
            heads = file.heads()
            first = next(heads, None)
            if path != paths[-1]:
                footer = file.footer()
                last, largest, state = footer.last_seq, footer.max_commit_ts, "full"
            else:
                last, largest, state = 0, 0, "open"
                for part in file.walk(last=True):
                    if isinstance(part, Record):
                        last, largest = part.segment.seq, max(largest, commit_ts_of(part.segment))
                    elif isinstance(part, Torn):
                        state = f"open, {part.bytes} bytes after its last record"
                    elif isinstance(part, End) and part.footer:
                        state = "full"
            begun = first.segment.seq if first else 0
            print(f"{path.name:12} {file.bytes:12} {begun:11} {last:11} {largest:20}  {state}")


@app.command("check")
def check(place: Place, source: Source = None, state_dir: StateDir = None) -> None:
    """Check every checksum, length and footer, and that seq has no gap."""
    from tidegate.capture.value_log.file import Damage, Record, Torn, opened

    paths, damages, segments, before = _paths(place, source, state_dir), 0, 0, 0
    for path in paths:
        with opened(path) as file:
            for part in file.walk(last=path == paths[-1]):
                if isinstance(part, Damage):
                    damages, before = damages + 1, 0
                    print(f"tidegate: {part.error()}", file=sys.stderr)
                elif isinstance(part, Torn):
                    print(
                        f"tidegate: note: {part.path}:{part.offset}: {part.bytes} bytes that weren't synced; capture is"
                        " writing, or cuts them off when it starts",
                        file=sys.stderr,
                    )
                elif isinstance(part, Record):
                    seq, segments = part.segment.seq, segments + 1
                    if before and seq != before + 1:
                        where = f"{path}:{part.pointer.offset}"
                        if before < seq <= _landed(place, source) + 1:
                            what = "note: {}: segment {} follows {}; bronze has those between them"
                        else:
                            damages += 1
                            what = "{}: segment {} follows {}; records are missing"
                        print(f"tidegate: {what.format(where, seq, before)}", file=sys.stderr)
                    before = seq
    print(f"{len(paths)} files, {segments} good segments, {damages} damages")
    raise typer.Exit(EXIT_ERROR if damages else 0)


def _landed(place: str, source: str | None) -> int:
    """The seq of a source's newest segment in bronze, up to which none is missing; 0 for a folder, or if the lake
    doesn't answer.

    A segment for an accepted loss is in bronze only, so the value log has a gap there.
    """
    from tidegate.lake.figures.status import source_status

    if Path(place).is_dir() or Path(place).suffix == ".vlog":
        return 0
    try:
        desk = open_desk(place)
        status = source_status(desk.lake, source_named(desk.pipeline, source))
    except (TidegateError, OSError):
        return 0
    return status.seq if status else 0


@app.command("cat")
def cat(
    place: Place,
    source: Source = None,
    state_dir: StateDir = None,
    seq: Annotated[int, typer.Option(help="Start at this segment", min=0)] = 0,
    count: Annotated[int | None, typer.Option(help="Show only this many segments", min=1)] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Print the binlog events as bytes instead of JSON")] = False,
) -> None:
    """Print segments as JSON lines, or as raw binlog events. It continues after damaged ones (exit code 1)."""
    failed, shown = False, 0
    for segment in _segments(_paths(place, source, state_dir), seq):
        if segment is None:
            failed = True
        elif count is None or shown < count:
            shown += 1
            if raw:
                sys.stdout.buffer.write(segment.payload)
            else:
                print(json.dumps(_shown(segment), ensure_ascii=False))
        else:
            break
    sys.stdout.flush()
    raise typer.Exit(EXIT_ERROR if failed else 0)


@app.command("owed")
def owed(
    pipeline: Annotated[str, typer.Argument(help="A pipeline")],
    source: Source = None,
    forget: Annotated[
        str | None, typer.Option(help="Id of a log that is lost: accept that its commits are lost too")
    ] = None,
    state_dir: StateDir = None,
) -> None:
    """List the value logs, on any machine, with acknowledged commits that the lake may lack."""
    from tidegate.capture.owing import Owing
    from tidegate.lake.bronze.table import Bronze
    from tidegate.lake.jobs.leases import take_lease
    from tidegate.tables.actions_table import Act

    desk = open_desk(pipeline)
    loaded, lake = desk.pipeline, desk.lake
    for name in [source_named(loaded, source)] if source or forget else loaded.sources:
        owing = Owing(lake, name)
        debts = [debt for debt in owing.debts() if forget in (None, debt.log)]
        if forget and not debts:
            raise UsageError(
                f"no value log {forget} owes source {name} anything",
                where=pipeline,
                remedy=f"see `tidegate vlog owed {pipeline}`",
            )
        if not debts:
            print(f"{name}: no value log owes the lake anything")
        for debt in debts:
            print(f"{name}: {debt.told()}")
        if forget:
            with take_lease(lake, name, "capture", report=lambda line: typer.echo(line, err=True)):
                newest = next(reversed(Bronze(lake, name).last_segments()), None)
                with desk.recorded(Act.ACCEPT, (), f"{name}: value log {forget} is lost") as result:
                    gap = _record_loss(desk, name, forget, state_dir) if loaded.sources[name].traits.pushes else None
                    owing.forget(forget)
                    result.line = f"recorded in segment {gap.seq}" if gap else "forgotten"
            end = f"after {newest.end}, {time_text(newest.resolved_ts)}" if newest else "since its beginning"
            print(f"{name}: forgotten; what it acknowledged {end}, and bronze doesn't get again, is lost")
            if gap is not None:
                print(f"{name}: segment {gap.seq} of bronze says so: its tables wait there, and a snapshot reads each")
            else:
                print(f"{name}: its tables may lack that: `tidegate snapshot start {loaded.pipeline}` reads them again")


def _record_loss(desk: Desk, name: str, log_id: str, state_dir: Path | None) -> Segment | None:
    """Record the loss before the debt is forgotten. After a kill in between, a person has to forget
    it once more.
    """
    from tidegate.capture.checkpoint import is_landed
    from tidegate.capture.own_stream import check_continues
    from tidegate.capture.value_log.folder import settled_folder
    from tidegate.capture.value_log.log import ValueLog
    from tidegate.lake.bronze.table import Bronze
    from tidegate.pump.forgotten import record_loss

    bronze = Bronze(desk.lake, name, continues=check_continues)
    folder = settled_folder(
        desk.pipeline, name, state_dir or state_folder(), lambda logged: is_landed(logged, bronze.segment(logged.seq))
    )
    value_log = ValueLog(folder)
    try:
        return record_loss(bronze, value_log, log_id)
    finally:
        value_log.close()


def _segments(paths: list[Path], seq: int) -> Iterator[Segment | None]:
    """Good segments from seq on; None for a damaged one, which is reported on stderr."""
    from tidegate.capture.value_log.file import Damage, Record, opened

    for path in paths:
        with opened(path) as file:
            for part in file.walk(last=path == paths[-1], whole=True):
                if isinstance(part, Damage):
                    print(f"tidegate: {part.error()}", file=sys.stderr)
                    yield None
                elif isinstance(part, Record) and part.segment.seq >= seq:
                    yield part.segment


def _shown(segment: Segment) -> dict[str, Any]:
    """A segment's fields as JSON; its payload only as a number of bytes."""
    row = {field.name: getattr(segment, field.name) for field in fields(segment)}
    return row | {
        "kind": str(segment.kind),
        "flags": int(segment.flags),
        "captured_at": segment.captured_at.isoformat(),
        "context": len(segment.context),
        "payload": len(segment.payload),
    }


def _paths(place: str, source: str | None, state_dir: Path | None) -> list[Path]:
    """The files of a place (a file, a folder or a pipeline), oldest first. Raises UsageError,
    ConfigError.
    """
    from tidegate.capture.value_log.file import file_number
    from tidegate.capture.value_log.folder import value_log_folder
    from tidegate.capture.value_log.log import log_files

    given = Path(place)
    if given.suffix == ".vlog":
        if not given.is_file():
            raise UsageError("there is no such file", where=place, remedy="give a folder to see its files")
        file_number(given)
        return [given]
    if not given.is_dir():
        if given.name != place and given.suffix not in (".yaml", ".yml") and not given.is_file():
            raise UsageError("there is no such folder", where=place, remedy="give a value log's folder, or a pipeline")
        pipeline = pipelines.load(pipelines.find(place))
        name = source_named(pipeline, source)
        given = value_log_folder(pipeline, name, state_dir or state_folder())
    paths = log_files(given) if given.is_dir() else []
    if not paths:
        raise UsageError(
            "there is no value log here", where=str(given), remedy="capture writes it on the machine that it runs on"
        )
    return paths
