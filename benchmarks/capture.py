"""Capture: from the server's socket to verified segments, and to bronze, beside `mariadb-binlog --raw`.

In:  a played workload, the server that has its binlog.
Out: rows in MB per CPU second.

Segments: the stream is read, checksums verified, transactions followed, segments cut and dropped. The peer
writes the bytes to files as they come. Bronze: the whole of capture, its value log synced, beside the peer with
its file synced. Plain TCP on both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from benchmarks.context import Context
from benchmarks.figures import Missing, Row, in_turns
from benchmarks.lakes import BenchLake, connection_info
from benchmarks.peers import mariadb_binlog
from benchmarks.workloads import Workload
from tidegate.config import DumpMode
from tidegate.limits import SEGMENT_BYTES_DEFAULT
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import connect
from tidegate.mysql.facts.server_facts import SourceFacts, read_facts
from tidegate.mysql.stream.cutter import Cutter
from tidegate.mysql.stream.cutter_settings import CutterSettings
from tidegate.mysql.stream.dump_stream import DumpRequest, DumpStream
from tidegate.mysql.stream.place import beginning
from tidegate.position import Position

_UNIT = "MB per CPU second"
# What stands at a file's end and belongs to no segment: the rotate or stop event.
_TAIL_BYTES = 200


def measure(ctx: Context, workload: Workload, origin: BenchLake | None) -> list[Row]:
    """Both roads of a workload; `origin` captures the workload on, when the road to bronze is wanted too."""
    megabytes = workload.bytes / 1e6
    segments(ctx.server, workload)  # compiled kernels loaded, pages cached

    def ours() -> float:
        return megabytes / ctx.meter.run_here(lambda: segments(ctx.server, workload)).cpu_seconds

    row = Row(
        f"capture_vs_mysqlbinlog_{workload.name}",
        f"capture to segments, workload {workload.name}",
        _UNIT,
        peer=mariadb_binlog.NAME,
        note=f"{megabytes:.0f} MB of binlog; socket to verified segments, against the same bytes to files",
    )
    copied: Callable[[], float] | None = None
    try:
        copier = mariadb_binlog.Copier(ctx.cache)
        row.peer = copier.version

        def theirs(synced: bool = False) -> float:
            def copy() -> None:
                copier.copy(ctx.server, workload, ctx.folder / "raw", synced=synced)

            return megabytes / ctx.meter.run(copy).cpu_seconds

        row.ours, row.theirs = in_turns(ctx.sizes.runs, ours, theirs)
        copied = partial(theirs, synced=True)
    except Missing as missing:
        row.why_missing = str(missing)
        (row.ours,) = in_turns(ctx.sizes.runs, ours)
    return [row, *(bronze(ctx, workload, origin, row, copied) if origin else [])]


def segments(server: Server, workload: Workload) -> None:
    """From the socket to segments, which are dropped."""
    info = connection_info(server)
    facts = facts_of(server)
    file, size = workload.path.name, workload.bytes
    request = DumpRequest(facts.flavour, DumpMode.POSITION, 4_000_000_001, "", 1.0, position=Position.of(file, 4))
    settings = CutterSettings("one", facts.flavour, DumpMode.POSITION, SEGMENT_BYTES_DEFAULT, lambda *_: [])
    cutter = Cutter(settings, beginning(file=file), facts.server_id, facts.server_uuid)
    stream = DumpStream.open(info, request)
    done = 0
    while done + cutter.waiting_bytes < size - _TAIL_BYTES:
        stream.receive(cutter.state, 1.0)
        for segment in cutter.advance(stream):
            if segment.file != file:
                break
            done += len(segment.payload)
    stream.close()


@cache
def facts_of(server: Server) -> SourceFacts:
    """What capture asks once per run of many minutes, so not once per file here."""
    info = connection_info(server)
    connection = connect(info)
    try:
        return read_facts(connection, info)
    finally:
        connection.close()


def bronze(
    ctx: Context, workload: Workload, origin: BenchLake, segmented: Row, copied: Callable[[], float] | None
) -> list[Row]:
    """The road to bronze, in either packing, beside the same bytes copied to a file and synced: MB per CPU second.

    segmented: the row of segments, with the peer's name, or why it is missing. copied: one run of it.
    """

    def once(compression: str = "zstd", folder: Path = ctx.folder / "bronze") -> float:
        lake = origin.fork(folder, capture=f"compression: {compression}")
        came: list[int] = []
        run = ctx.meter.run(lambda: came.append(lake.capture()))
        lake.remove()
        return came[0] / 1e6 / run.cpu_seconds

    once()  # what a capture of many minutes does once: imports, memory touched for the first time
    figures = in_turns(ctx.sizes.runs, once, lambda: once("lz4"), *((copied,) if copied else ()))
    note = (
        "socket to committed bronze: transactions followed, each byte twice on disk (value log synced; Parquet packed);"
        " connecting and waiting for more included. The peer copies the bytes to one file, which is synced at the end"
    )
    rows = []
    for key, title, ours in (
        (workload.name, f"capture to bronze, workload {workload.name}", figures[0]),
        (f"lz4_{workload.name}", f"capture to bronze, compression: lz4, workload {workload.name}", figures[1]),
    ):
        row = Row(f"capture_to_bronze_{key}", title, _UNIT, ours, peer=f"{segmented.peer}, synced", note=note)
        row.theirs, row.why_missing = (figures[2], "") if copied else ((), segmented.why_missing)
        rows.append(row)
    return rows
