"""The whole road of a snapshot: SELECT -> bronze -> silver, beside Debezium's snapshot, which delivers to nobody, and
Spark JDBC into a Delta table.

In:  a context whose server has the tables of workloads A and B, a warm Spark application.
Out: rows per CPU second of everything of ours (reader, capture, driver, JVM), of Debezium's engine, of Spark; and what
     verification of such a lake costs (verify.py).

Debezium's start, with the snapshot of a table of one row, is taken off; what ours does before a reader begins isn't
counted either: capture's baseline, and Spark's start. Spark JDBC is warm, too. It copies a table that rests: it knows
neither the log's changes nor where it was.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable
from contextlib import ExitStack

from benchmarks import verify
from benchmarks.context import Context
from benchmarks.figures import Missing, Row, in_turns
from benchmarks.lakes import BenchLake, connection_info
from benchmarks.peers import maven, spark_jdbc
from benchmarks.peers.process import Peer
from benchmarks.readers import count
from benchmarks.snapshot import request
from benchmarks.spark import Warm
from benchmarks.workloads import DATABASE
from spark_jobs import apply as apply_job
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from tests.kit.snapshots import Reader
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.snapshot.work import SnapshotWork
from tidegate.tables import WATERMARK_DATABASE

_ONE = "one_row"
_UNIT = "rows per CPU second"
_DEBEZIUM = maven.DEBEZIUM[0]
_NUMBERS = itertools.count()


class _Ours:
    """The road of one table. lake: the newest one, complete."""

    def __init__(self, ctx: Context, warm: Warm, table: str) -> None:
        self._ctx, self._warm, self.table = ctx, warm, table
        self.rows = int(ctx.server.query(f"SELECT COUNT(*) FROM {DATABASE}.{table}")[0][0])
        self.lake: BenchLake | None = None

    def once(self) -> float:
        """Rows per CPU second of one whole road."""
        self.remove()
        lake = BenchLake(self._ctx.server, self._ctx.folder / f"snapshot-{next(_NUMBERS)}", self.table)
        lake.begin()
        assert self._warm.spark is not None  # its start isn't the road's
        spent = self._ctx.meter.run(lambda: self._road(lake)).cpu_seconds
        found = count(lake.silver)
        assert found == self.rows, f"silver has {found} rows, the source {self.rows}"
        self.lake = lake
        return self.rows / spent

    def remove(self) -> None:
        if self.lake is not None:
            self.lake.remove()
            self.lake = None

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
    """For each of two tables the road beside each peer, then its verification."""
    server = ctx.server
    server.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{server.user}'@'%'")
    server.query(f"CREATE TABLE {DATABASE}.{_ONE} (id INT PRIMARY KEY)")
    server.query(f"INSERT INTO {DATABASE}.{_ONE} VALUES (1)")
    rows = []
    with ExitStack() as closing:
        peers: list[_Debezium | _SparkJdbc] = [_Debezium(ctx, closing), _SparkJdbc(ctx, closing)]
        for table in ("a", "b"):
            ours = _Ours(ctx, warm, table)
            ours.once()  # compiles
            rows += _beside(ctx, ours, peers)
            assert ours.lake is not None, "it was made"
            rows += verify.measure(ctx, ours.lake, ours.rows)
            ours.remove()
    return rows


def _beside(ctx: Context, ours: _Ours, peers: list[_Debezium | _SparkJdbc]) -> list[Row]:
    """A row for each peer. All take turns, so one run of ours is beside every peer."""
    title = f"whole road of a snapshot, table {ours.table.upper()}: SELECT to silver"
    rows, roads, beside = [], [ours.once], []
    for peer in peers:
        row = Row(f"snapshot_road_{ours.table}{peer.key}", title, _UNIT, peer=peer.name)
        row.note = f"{ours.rows} rows; {peer.note}"
        rows.append(row)
        try:
            roads.append(peer.road(ours.table, ours.rows))
            beside.append(row)
        except Missing as missing:
            row.why_missing = str(missing)
    figures, *theirs = in_turns(ctx.sizes.runs_road, *roads)
    for row in rows:
        row.ours = figures
    for row, found in zip(beside, theirs, strict=True):
        row.theirs = found
    return rows


class _Debezium:
    """Its embedded engine."""

    name, key, note = _DEBEZIUM, "", "Debezium has no sink; both without their start"

    def __init__(self, ctx: Context, closing: ExitStack) -> None:
        self._ctx, self._closing = ctx, closing
        self._peer: Peer | None = None
        self._start = 0.0

    def road(self, table: str, rows: int) -> Callable[[], float]:
        """A warm one. Raises Missing."""
        if self._peer is None:
            command = maven.program("Debezium.java", maven.jars(maven.DEBEZIUM, self._ctx.cache))
            self._peer = self._closing.enter_context(Peer(self.name, command))
            self._ctx.meter.without.add(self._peer.pid)
            self._spent(table, rows)  # compiles
            self._start = statistics.median([self._spent(_ONE, 1) for _ in range(3)])
        return lambda: rows / (self._spent(table, rows) - self._start)

    def _spent(self, table: str, rows: int) -> float:
        assert self._peer is not None, "it runs"
        peer, asked = self._peer, request(self._ctx, f"{DATABASE}.{table}", rows)
        asked |= {"folder": str(self._ctx.folder), "snapshot": "initial"}
        return self._ctx.meter.run(lambda: peer.go(asked, rows), root=peer.pid).cpu_seconds


class _SparkJdbc:
    """Read by JDBC, written by Delta."""

    name, key, note = f"{spark_jdbc.NAME} into Delta", "_vs_spark_jdbc", "Spark copies a table at rest; both warm"

    def __init__(self, ctx: Context, closing: ExitStack) -> None:
        self._ctx, self._closing = ctx, closing
        self._peer: Peer | None = None

    def road(self, table: str, rows: int) -> Callable[[], float]:
        """A warm one. Raises Missing."""
        if self._peer is None:
            self._peer = self._closing.enter_context(
                Peer(self.name, spark_jdbc.program(self._ctx.root, self._ctx.cache))
            )
            self._ctx.meter.without.add(self._peer.pid)
        peer = self._peer
        asked = request(self._ctx, table, rows, target=str(self._ctx.folder / f"spark-{table}"))

        def once() -> float:
            return rows / self._ctx.meter.run(lambda: peer.go(asked, rows), root=peer.pid).cpu_seconds

        once()  # compiles
        return once
