"""Views as the page reads them, made by hand.

In:  how many tables.
Out: a PipelineView of a pipeline with two sources and every state of a table.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from tidegate import config
from tidegate.capture.chaser import ChaserState
from tidegate.capture.silence import LeasedWork, LeaseHolder
from tidegate.capture.source import Retention
from tidegate.capture.standing import CaptureStanding, SourceAnswer, SourceStanding
from tidegate.capture.status_file import CaptureStatus
from tidegate.commit_ts import compose
from tidegate.lake.figures.status import SourceStatus, TableStatus
from tidegate.lake.figures.timeline import STEPS, Timeline
from tidegate.lake.figures.verified import Verified
from tidegate.lake.silver.sizes import SilverSize
from tidegate.pipelines import PipelineView
from tidegate.snapshot.chunks.spans import WHOLE
from tidegate.snapshot.progress.events import SnapshotState, TableProgress
from tidegate.tables import State

NOW = 1_790_000_000.0
CUT = compose(int((NOW - 2) * 1000))
# Capture beside a lake that is slow.
CHASING = CaptureStatus(
    state=ChaserState.CHASING,
    since=NOW - 60,
    reason="slow",
    chases=1,
    chasing_seconds=60.0,
    returns_failed=0,
    held_seconds_max=1.0,
    lake_error="",
    last_seq=9,
    landed_seq=7,
    behind_bytes=4_000,
    value_log_bytes=9_000,
    room_bytes=50_000,
    bytes_per_second=100.0,
    seconds_left=500.0,
    retention=Retention(7200.0, "age", "binlog.000001", 3),
    clock_ahead_seconds=0.0,
    clock_doubted=False,
    lowered=0,
    started_at=NOW - 900,
    written_at=NOW - 1,
    pid=1,
)


def pipeline(name: str = "shop") -> config.Pipeline:
    text = (
        f"pipeline: {name}\nlake: {{path: x}}\ntables: {{include: ['*.*']}}\n"
        "sources: {eu: {conn_id: eu, flavour: mariadb}, us: {conn_id: us, flavour: mysql}}\n"
    )
    return config.parse(text, where=f"{name}.yaml")


def table(name: str, state: State = State.ACTIVE, applied_ts: int = CUT) -> TableStatus:
    if state is not State.HELD:
        return TableStatus(name, state, applied_ts, 3, "")
    reason = f"{name}: ALTER TABLE t DROP COLUMN <b> at binlog.000007:4711; what it does isn't followed without a word"
    way_out = "approve it under Required Actions, or make it undone at the source"
    return TableStatus(
        name, state, applied_ts, 3, reason, "2026-09-21T14:00:00+00:00", way_out=way_out, cause="ddl_asks"
    )


def source(name: str, error: str = "") -> SourceStanding:
    captured = SourceStatus(name, 9, 412, 81_000_000, CUT, CUT, "binlog.000007", 5150, "", 1, NOW - 5)
    fault = "SourceUnavailable" if error else ""
    server = SourceAnswer(1, "binlog.000007:5150", error=error, host=f"{name}.example:3306", fault=fault)
    purge = None if error else Retention(29 * 86_400.0, "age", "binlog.000001", 6)
    missing = None if error else True
    behind = None if error else 4_711
    return SourceStanding(
        *(name, captured, server, missing, 0.0, "2026-09-21 14:13:18 UTC"),
        capture_dag="shop__capture",
        purge=purge,
        behind_bytes=behind,
    )


def view(count: int = 40, *, held: bool = True, lag: float = 2.0, name: str = "shop") -> PipelineView:
    names = [f"shop.orders_{number:05}" for number in range(count)]
    sizes = [SilverSize(100_000 - number, number % 9, 3_000_000 + number) for number in range(count)]
    tables = [replace(table(each), size=size) for each, size in zip(names, sizes, strict=True)]
    if held:
        tables[1:5] = [
            table(names[1], State.HELD, compose(int((NOW - 3600) * 1000))),
            table(names[2], State.SNAPSHOT),
            table(names[3], State.RELEASED),
            table(names[4], State.DROPPED),
        ]
    holders = (LeaseHolder(LeasedWork.CAPTURE, "eu", "m1", NOW - 900), LeaseHolder(LeasedWork.APPLY, name, "m2", NOW))
    sources = (source("eu"), source("us", "host away: no route" if held else ""))
    stands = CaptureStanding(name, CUT, lag, sources, tuple(tables), (), (), holders=holders)
    wave = tuple(1.0 + (step % 9) / 3 for step in range(STEPS))
    rows = tuple(int(600 * (1 + (step % 5))) for step in range(STEPS))
    past = Timeline(NOW, 60.0, (*(None,) * 6, *wave[6:]), rows, tuple(180 * each for each in rows), (1.0,) * STEPS)
    cpu = tuple(0.01 * each for each in wave)
    past = replace(past, capture_cpu=cpu, apply_cpu=(*(None,) * 6, *(100 * each for each in cpu[6:])))
    known = {each: Verified("equal", CUT, "2026-09-21T13:00:00+00:00", 75_435) for each in names[::2]}
    going = TableProgress(
        *("1", "eu", "shop", "orders_00002", SnapshotState.RUNNING, (WHOLE,)),
        rows=1_500,
        waves=1,
        estimate=2_000,
        began_at=datetime.fromtimestamp(NOW - 160, UTC),
        read_at=datetime.fromtimestamp(NOW - 10, UTC),
    )
    return PipelineView(pipeline(name), NOW, "", stands, (going,) if held else (), known, past)
