"""The whole road of a snapshot: SELECT -> bronze -> silver, beside Debezium's snapshot, which delivers to nobody.

In:  a context whose server has workload A's table, a warm Spark application.
Out: a row: rows per CPU second of everything of ours (reader, capture, driver, JVM), and of Debezium's engine.

Debezium's start, with the snapshot of a table of one row, is taken off; what ours does before a reader begins isn't
counted either: capture's baseline, and Spark's start.
"""

from __future__ import annotations

import itertools
import statistics

from benchmarks.context import Context
from benchmarks.figures import Missing, Row, in_turns
from benchmarks.lakes import BenchLake, connection_info
from benchmarks.peers import maven
from benchmarks.peers.process import Peer
from benchmarks.readers import count
from benchmarks.spark import Warm
from benchmarks.workloads import DATABASE
from spark_jobs import apply as apply_job
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from tests.kit.snapshots import Reader
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.snapshot.work import SnapshotWork
from tidegate.tables import WATERMARK_DATABASE

_TABLE = "a"
_ONE = "one_row"
_UNIT = "rows per CPU second"


class _Ours:
    def __init__(self, ctx: Context, warm: Warm, rows: int) -> None:
        self._ctx, self._warm, self._rows = ctx, warm, rows
        self._numbers = itertools.count()

    def once(self) -> float:
        """Rows per CPU second of one whole road."""
        lake = BenchLake(self._ctx.server, self._ctx.folder / f"snapshot-{next(self._numbers)}", _TABLE)
        lake.begin()
        assert self._warm.spark is not None  # its start isn't the road's
        spent = self._ctx.meter.run(lambda: self._road(lake)).cpu_seconds
        found = count(lake.silver)
        assert found == self._rows, f"silver has {found} rows, the source {self._rows}"
        lake.remove()
        return self._rows / spent

    def _road(self, lake: BenchLake) -> None:
        """What waits is read while capture and apply go on, until nothing is open."""
        info, lines = connection_info(lake.server), list[str]()
        reader = Reader(SnapshotWork(lake.pipeline, lake.files, lambda _: info, lines.append))
        app = Application(
            BackgroundSession(lambda: self._warm.spark), lake.pipeline, lake.files, BronzeIndex(lake.files)
        )
        over = False
        while not over:
            over = reader.is_over(1.0)
            lake.capture()
            apply_job.run(app, report=lines.append)


def measure(ctx: Context, warm: Warm) -> list[Row]:
    """One row."""
    server = ctx.server
    server.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{server.user}'@'%'")
    server.query(f"CREATE TABLE {DATABASE}.{_ONE} (id INT PRIMARY KEY)")
    server.query(f"INSERT INTO {DATABASE}.{_ONE} VALUES (1)")
    rows = int(server.query(f"SELECT COUNT(*) FROM {DATABASE}.{_TABLE}")[0][0])
    ours = _Ours(ctx, warm, rows)
    ours.once()  # compiles
    row = Row("snapshot_road_a", "whole road of a snapshot, table A: SELECT to silver", _UNIT, peer=maven.DEBEZIUM[0])
    row.note = f"{rows} rows; Debezium has no sink; both without their start"
    try:
        row.ours, row.theirs = _beside_debezium(ctx, ours, rows)
    except Missing as missing:
        row.why_missing = str(missing)
        (row.ours,) = in_turns(ctx.sizes.runs_road, ours.once)
    return [row]


def _beside_debezium(ctx: Context, ours: _Ours, rows: int) -> list[list[float]]:
    """[ours, theirs] in turns. Raises Missing."""
    server = ctx.server
    asked = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    asked |= {"folder": str(ctx.folder), "snapshot": "initial"}
    command = maven.program("Debezium.java", maven.jars(maven.DEBEZIUM, ctx.cache))
    with Peer(maven.DEBEZIUM[0], command) as peer:
        ctx.meter.without.add(peer.pid)

        def spent(table: str, count: int) -> float:
            request = {**asked, "table": f"{DATABASE}.{table}", "rows": count}
            return ctx.meter.run(lambda: peer.go(request, count), root=peer.pid).cpu_seconds

        spent(_TABLE, rows)  # compiles
        start = statistics.median([spent(_ONE, 1), spent(_ONE, 1), spent(_ONE, 1)])
        return in_turns(ctx.sizes.runs_road, ours.once, lambda: rows / (spent(_TABLE, rows) - start))
