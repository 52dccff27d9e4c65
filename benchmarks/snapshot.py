"""Snapshot: a table's rows by SELECT to Arrow columns, beside ConnectorX and Spark JDBC on the same server.

In:  a context whose server plays no other workload.
Out: rows in rows per CPU second of the client, for wide and narrow tables; and ours with packing into chunks.

All read the whole table over one connection each, in turns: we in this process, a peer in its own. We have batches of
some thousand rows; ConnectorX has the whole table in memory at the end; Spark hands each row to a sink that keeps
nothing, so it doesn't even make columns. A peer that can't be had is left out by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from benchmarks.context import Context
from benchmarks.cpu import TICK_SECONDS
from benchmarks.figures import Missing, Row, in_turns
from benchmarks.peers import connector_x, spark_jdbc
from benchmarks.peers.process import Peer
from benchmarks.workloads import DATABASE, create, play_batches
from tidegate.mysql.connecting.connection import ConnectionInfo, TlsMode
from tidegate.mysql.start.baseline import read_schema
from tidegate.position import Position
from tidegate.schema.model.columns import TableVersion
from tidegate.snapshot.chunks.spans import WHOLE
from tidegate.snapshot.reading.connection import WorkerConnection
from tidegate.snapshot.reading.result.plan import make_read_plan
from tidegate.snapshot.reading.result.stream import ResultStream
from tidegate.snapshot.reading.table_reader import ChunkBounds, ChunkReader, Pace, WaveOf

_UNIT = "rows per CPU second"
_ALL = ChunkBounds(1 << 30, 16 << 20, 1e9)


def measure(ctx: Context) -> list[Row]:
    """Three rows for each of two tables."""
    sizes = ctx.sizes
    for name, count in (("a", sizes.rows_a), ("b", sizes.rows_b)):
        create(ctx.server, name)
        play_batches(ctx.server, name, count)
    with ExitStack() as closing:
        peers = [
            _started(closing, ctx, connector_x.NAME, lambda: connector_x.program(ctx.cache)),
            _started(closing, ctx, spark_jdbc.NAME, lambda: spark_jdbc.program(ctx.root, ctx.cache)),
        ]
        return [row for name in ("a", "b") for row in _Table(ctx, name).rows(peers)]


def request(ctx: Context, table: str, rows: int, *, times: int = 1, target: str = "") -> dict[str, Any]:
    """What a peer that reads tables is asked for."""
    server = ctx.server
    account = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    return account | {"database": DATABASE, "table": table, "rows": rows, "times": times, "target": target}


def _started(closing: ExitStack, ctx: Context, name: str, command: Callable[[], list[str]]) -> Peer | Missing:
    try:
        peer = closing.enter_context(Peer(name, command()))
    except Missing as missing:
        return missing
    ctx.meter.without.add(peer.pid)
    return peer


class _Table:
    """One table, and the ways to read it."""

    def __init__(self, ctx: Context, name: str) -> None:
        self._ctx, self._name, server = ctx, name, ctx.server
        self._info = ConnectionInfo(server.host, server.port, server.user, server.password, tls=TlsMode.DISABLED)
        with server.connect() as connection:
            read = read_schema(connection, "bench", lambda *of: of == (DATABASE, name), Position.of("b.1", 4))
        self._version: TableVersion = next(one for one in read if one.table == name)
        self._count = int(server.query(f"SELECT COUNT(*) FROM {DATABASE}.{name}")[0][0])

    def rows(self, peers: Sequence[Peer | Missing]) -> list[Row]:
        """Ours beside each peer, then ours packed. All take turns, so one run of ours is beside every peer."""
        title = f"snapshot read, table {self._name.upper()}"
        note = f"{self._count} rows to Arrow columns, one connection, without TLS"
        keys = (f"snapshot_read_{self._name}", f"snapshot_read_{self._name}_vs_spark_jdbc")
        read = [Row(key, title, _UNIT, note=note) for key in keys]
        chunks = Row(f"snapshot_chunks_{self._name}", f"{title}, packed into chunks", _UNIT, note=note)
        with WorkerConnection(self._info) as connection:
            roads: list[Callable[[], float]] = [
                partial(self._rate, partial(self._batches, connection)),
                partial(self._rate, partial(self._chunks, connection)),
            ]
            beside = []
            for row, peer in zip(read, peers, strict=True):
                try:
                    roads.append(self._beside(peer))
                except Missing as missing:
                    row.why_missing = str(missing)
                else:
                    row.peer = peer.name if isinstance(peer, Peer) else ""
                    beside.append(row)
            self._batches(connection)  # compiles
            ours, chunks.ours, *theirs = in_turns(self._ctx.sizes.runs, *roads)
        for row in read:
            row.ours = ours
        for row, figures in zip(beside, theirs, strict=True):
            row.theirs = figures
        return [*read, chunks]

    def _beside(self, peer: Peer | Missing) -> Callable[[], float]:
        """A warm one's rate. Raises Missing."""
        if isinstance(peer, Missing):
            raise peer
        self._peer(peer, times=1)  # compiles
        return lambda: self._peer(peer, self._ctx.sizes.read_times)

    def _rate(self, work: Callable[[], None]) -> float:
        times = self._ctx.sizes.read_times

        def often() -> None:
            for _ in range(times):
                work()

        return times * self._count / self._ctx.meter.run_here(often).cpu_seconds

    def _batches(self, connection: WorkerConnection) -> None:
        plan = make_read_plan(self._version)
        stream = ResultStream(connection.raw, self._info, plan)
        found = sum(
            batch.num_rows for batch in stream.batches(f"SELECT {plan.select_list} FROM {DATABASE}.{self._name}")
        )
        assert found == self._count

    def _chunks(self, connection: WorkerConnection) -> None:
        reader = ChunkReader(connection.raw, self._info, self._version)
        pace = Pace(1 << 30, 1, 1e-3)  # all in one statement
        wave = WaveOf("bench", "s", 1, "t", 1, "")
        assert sum(chunk.rows for chunk, _ in reader.read(WHOLE, pace, _ALL, wave)) == self._count

    def _peer(self, peer: Peer, times: int) -> float:
        """Raises Missing."""
        asked = request(self._ctx, self._name, self._count, times=times)
        rows = times * self._count
        spent = self._ctx.meter.run(lambda: peer.go(asked, rows), root=peer.pid).cpu_seconds
        return rows / max(spent, TICK_SECONDS)
