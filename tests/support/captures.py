"""What the capture tests share: a pipeline for a server, a run, bronze read back, and the oracle.

The oracle is the server's own binlog file on its disk: bronze must hold exactly its bytes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from tests.kit.events import ROWS_TYPES
from tests.kit.reached import run_to, wait_for_checkpoint
from tidegate.binlog.format.events import EventType, read_header, type_name
from tidegate.capture.progress import CaptureResult
from tidegate.capture.run import CaptureRun
from tidegate.config import Pipeline, parse
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.mysql.capturing.reader import BinlogSource, binlog_run
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.position import Position
from tidegate.segments.segment import Segment
from tidegate.tables import SEGMENTS, SegmentFlag, SegmentKind

FRAME = {3, 4, 15, 35, 161, 163}
_QUIET_SECONDS = 1.0
IN_USE = 1  # flag of a FORMAT_DESCRIPTION event: set on disk while the file is open, never sent


def pipeline_text(
    server: Server, lake: Path, *, dump: str = "gtid", start: str = "now", semi_sync: bool = False, **capture: Any
) -> str:
    settings = {"land_seconds": 0.1, "heartbeat_seconds": 0.5} | capture
    return f"""
pipeline: test
lake: {{path: {lake}}}
sources: {{one: {{conn_id: one, flavour: {server.flavour}, dump: {dump}, start: {start}, semi_sync: {semi_sync}}}}}
tables: {{include: ['*.*']}}
capture: {{{", ".join(f"{key}: {value}" for key, value in settings.items())}}}
"""


def pipeline_for(server: Server, lake: Path, **settings: Any) -> Pipeline:
    return parse(pipeline_text(server, lake, **settings), where="test")


def info_of(server: Server, **changes: Any) -> ConnectionInfo:
    parts: dict[str, Any] = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    return ConnectionInfo(**parts | changes)


def capture_run(
    server: Server, lake: Path, *, info: ConnectionInfo | None = None, baseline: bool = False, **settings: Any
) -> CaptureRun:
    """baseline: record the schema at the first start."""
    return binlog_run(
        pipeline_for(server, lake, **settings),
        "one",
        info or info_of(server),
        lake.parent / "state",
        on_first_start=None if baseline else lambda _facts, _position: None,
    )


def source_of(server: Server, lake: Path, **settings: Any) -> BinlogSource:
    """What a run would read from."""
    return BinlogSource(pipeline_for(server, lake, **settings), "one", info_of(server), LakeFiles(str(lake)))


def capture_until_quiet(server: Server, lake: Path, **settings: Any) -> CaptureResult:
    """Run until a second passes without news."""
    return capture_run(server, lake, **settings).run(300, idle_seconds=_QUIET_SECONDS)


def capture_to_end(server: Server, lake: Path, **settings: Any) -> CaptureResult:
    """Run until bronze has the log as far as it goes now."""
    return run_to(
        capture_run(server, lake, **settings), Position.of(*binlog_end(server)), 300, idle_seconds=_QUIET_SECONDS
    )


def begin_capture(server: Server, lake: Path, **settings: Any) -> None:
    """Until bronze has a first segment: later runs go on from there."""
    with Background(capture_run(server, lake, **settings)):
        wait_for_bronze(lake, bool)


class Background:
    """A capture run in a thread, stopped when the block ends; .result or the error it raised."""

    def __init__(self, run: CaptureRun, seconds: float = 600) -> None:
        self.stop = threading.Event()
        self.result: CaptureResult | None = None
        self.error: BaseException | None = None
        self.bytes = 0

        def work() -> None:
            try:
                self.result = run.run(seconds, stop=self.stop, on_progress=self._note)
            except BaseException as error:  # noqa: BLE001  raised at the end of the block
                self.error = error

        self.thread = threading.Thread(target=work)

    def _note(self, progress: Any) -> None:
        self.bytes = progress.bytes

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.stop.set()
        self.thread.join()
        if kind is None and self.error is not None:
            raise self.error


def bronze_segments(lake: Path, source: str = "one") -> list[Segment]:
    """All segments of a source in order of seq, payloads included."""
    root = lake / SEGMENTS.path
    actions = pa.table(DeltaTable(str(root)).get_add_actions(flatten=True))
    rows = []
    for path, name in zip(actions["path"].to_pylist(), actions["partition.source"].to_pylist(), strict=True):
        if name == source:
            rows += pq.read_table(root / unquote(path), partitioning=None, use_threads=False).to_pylist()
    return sorted((Segment.from_row({**row, "source": source}) for row in rows), key=lambda segment: segment.seq)


def landed_segments(lake: Path, source: str = "one") -> list[Segment]:
    """As bronze_segments; none as long as the first ones are in the value log alone."""
    begun = any((lake / SEGMENTS.path / "_delta_log").glob("0*.json"))
    return bronze_segments(lake, source) if begun else []


def wait_for_bronze(lake: Path, condition: Any, seconds: float = 300) -> list[Segment]:
    """Bronze's segments as soon as condition(segments) holds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        segments = landed_segments(lake)
        if segments and condition(segments):
            return segments
        time.sleep(0.1)
    raise AssertionError("bronze never got there")


def has_reached(end: tuple[str, int]) -> Callable[[list[Segment]], bool]:
    """A condition of wait_for_bronze: all up to a binlog_end() is there.

    MariaDB may write a BINLOG_CHECKPOINT behind it at any time, so a segment can end further on.
    """
    return lambda segments: (segments[-1].file, segments[-1].end_pos) >= end


def assert_equals_binlog(segments: list[Segment], server: Server) -> int:
    """Every payload is the server's file at its position, seq is dense, files have no hole; payload bytes."""
    assert [segment.seq for segment in segments] == list(range(1, len(segments) + 1))
    folder = server.data / "data"
    before: Segment | None = None
    total = 0
    for segment in segments:
        if segment.kind is SegmentKind.HEARTBEAT:
            assert segment.payload == b""
        wanted = bytearray(part_of(folder / segment.file, segment.start_pos, segment.end_pos))
        if segment.start_pos == 4 and wanted:
            wanted[17] &= ~IN_USE
        assert segment.payload == bytes(wanted), segment.where
        if before is not None:
            assert_follows(before, segment, folder)
        before = segment
        total += len(wanted)
    return total


def part_of(path: Path, start: int, end: int | None) -> bytes:
    """A slice of a file, without reading the rest of it."""
    with path.open("rb") as file:
        file.seek(start)
        return file.read(-1 if end is None else max(end - start, 0))


def assert_follows(before: Segment, after: Segment, folder: Path) -> None:
    """No byte between two segments is missing, and commit_ts goes on where it stood."""
    if after.file == before.file:
        missing = part_of(folder / after.file, before.end_pos, after.start_pos)
    else:
        missing = part_of(folder / before.file, before.end_pos, None)
        missing += part_of(folder / after.file, 4, after.start_pos)
    # A dump by GTID may leave out what frames transactions: FORMAT_DESCRIPTION, GTID lists, ROTATE, STOP.
    while missing:
        header = read_header(missing)
        assert header.type in FRAME, f"{after.where}: {type_name(header.type)} is missing"
        missing = missing[header.size :]
    assert_follows_in_time(before, after)
    assert bool(after.flags & SegmentFlag.OPEN_AT_START) == bool(before.flags & SegmentFlag.OPEN_AT_END), after.where


def assert_follows_in_time(before: Segment, after: Segment) -> None:
    """commit_ts goes on where it stood, also at another server."""
    assert after.prev_commit_ts == before.resolved_ts, after.where
    assert after.resolved_ts >= before.resolved_ts, after.where
    if after.min_commit_ts:
        assert after.min_commit_ts > before.resolved_ts, after.where


def binlog_end(server: Server) -> tuple[str, int]:
    """The newest file and its size, by the server's own word. The server itself adds nothing to it any more, unless a
    session still writes: what it says of a file's beginning is there.
    """
    wait_for_checkpoint(server, str(server.query("SHOW BINARY LOGS")[-1][0]))
    name, size = server.query("SHOW BINARY LOGS")[-1][:2]
    return str(name), int(size)


def assert_decodes_alone(segment: Segment) -> None:
    """It begins with a FORMAT_DESCRIPTION and a GTID, and every rows event has its TABLE_MAP before it."""
    data = bytes(segment.context) + bytes(segment.payload)
    kinds, maps = [], set()
    while data:
        header = read_header(data)
        kinds.append(header.type)
        table_id = data[19:25]
        if header.type == EventType.TABLE_MAP:
            maps.add(table_id)
        elif header.type in ROWS_TYPES:
            assert table_id in maps, f"{segment.where}: rows without a TABLE_MAP"
        data = data[header.size :]
    assert kinds[0] == EventType.FORMAT_DESCRIPTION
    assert kinds[1] in (EventType.GTID, EventType.MARIADB_GTID)
