"""`tidegate accept PIPELINE SOURCE [--lost]`: a way on for a source that lost, or purged, uncaptured log.

In:  a pipeline file, the source's connection in AIRFLOW_CONN_<ID>; capture of the source isn't running.
Out: the loss, and the tables that would wait; with --lost it is recorded in bronze, and capture can be started again.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate import pipelines
from tidegate.cli.lake import open_desk, source_named
from tidegate.connections import from_environment
from tidegate.errors import UsageError
from tidegate.home import state_folder

if TYPE_CHECKING:
    from tidegate.config import Pipeline
    from tidegate.lake.files import LakeFiles


def accept(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline, or path of its file")],
    source: Annotated[str, typer.Argument(help="Source, as in the pipeline file")],
    lost: Annotated[
        bool, typer.Option("--lost", help="Accept the loss: its tables wait, and capture continues")
    ] = False,
    state_dir: Annotated[Path | None, typer.Option(help="Folder of the value log. Default: .tidegate")] = None,
) -> None:
    """Continue with a source that lost uncaptured log. Without --lost: only show the loss."""
    from tidegate.capture.captured import Captured
    from tidegate.capture.checkpoint import is_landed
    from tidegate.capture.owing import Owing
    from tidegate.capture.recovery import check_reaches, recover
    from tidegate.capture.value_log.folder import settled_folder
    from tidegate.capture.value_log.log import ValueLog
    from tidegate.lake.bronze.table import Bronze
    from tidegate.lake.jobs.leases import take_lease
    from tidegate.mysql.capturing.acceptance import find_gap, record_gap
    from tidegate.mysql.capturing.reader import BinlogSource
    from tidegate.tables import EVERY_TABLE
    from tidegate.tables.actions_table import Act

    desk = open_desk(pipeline)
    loaded, lake = desk.pipeline, desk.lake
    name = source_named(loaded, source)
    info = pipelines.source_info(loaded, name, from_environment)
    folder = state_dir or state_folder()
    for line in elsewhere_lines(lake, name):
        typer.echo(line, err=True)
    server = BinlogSource(loaded, name, info, lake)
    bronze = Bronze(lake, name, continues=server.check_continues)
    with ExitStack() as ending:
        if lost:
            ending.enter_context(take_lease(lake, name, "capture", report=lambda line: typer.echo(line, err=True)))
        log_folder = settled_folder(loaded, name, folder, lambda logged: is_landed(logged, bronze.segment(logged.seq)))
        value_log = ValueLog(log_folder)
        ending.callback(value_log.close)
        Owing(lake, name).check_none_elsewhere(value_log)  # a gap would get the numbers of its segments
        recovered = recover(bronze, value_log, server.nothing)
        check_reaches(recovered, lake, loaded, name)  # apply would never see a gap below the cut
        captured = Captured(bronze, value_log, recovered.tail)
        gap = find_gap(server, captured, recovered.checkpoint) if recovered.checkpoint.seq else None
        if gap is None:
            raise UsageError(
                f"source {name} still has its log from where capture stopped",
                where=loaded.pipeline,
                remedy="start capture",
            )
        segment = gap.segment
        named = ", ".join(segment.tables) or "no table"
        tables = "every table of the source" if EVERY_TABLE in segment.tables else named
        typer.echo(f"{name}: {gap.why}")
        typer.echo(f"capture would go on at {segment.file}:{segment.end_pos} of {gap.where}; {tables} would wait")
        if not lost:
            typer.echo(f"--lost accepts that: each table waits until {_end(loaded, segment.flags)}")
            return
        with desk.recorded(Act.ACCEPT, (), f"{name}: {gap.why}") as result:
            record_gap(bronze, value_log, recovered, gap)
            result.line = f"accepted; start capture again: it goes on at {segment.file}:{segment.end_pos}"
        typer.echo(result.line)


def elsewhere_lines(lake: LakeFiles, source: str) -> list[str]:
    """A warning where capture's last host was another one. Bronze may lack a part of its value log,
    and the server may have purged this part.
    """
    from tidegate.delta.leases.lease_entry import Process
    from tidegate.lake.jobs.leases import newest_sign

    sign = newest_sign(lake, source, "capture")
    if sign is None or sign.process.host == Process.this().host:
        return []
    host = f"{source} was last captured on {sign.process.host}, and this is another machine"
    way = "what only its value log has would be lost; run this there, if that log still exists"
    return [f"tidegate: warning: {host}: {way}"]


def _end(pipeline: Pipeline, flags: int) -> str:
    """The end of a table's wait."""
    from tidegate.config import SnapshotMode
    from tidegate.tables import SegmentFlag

    reads = "by itself" if pipeline.snapshot.mode is SnapshotMode.AUTO else "at `tidegate snapshot start`"
    way = "dropped and created" if flags & SegmentFlag.HAS_DDL else "truncated, or dropped and created,"
    return f"a snapshot has read it again, {reads}, or until it is {way} at the source"
