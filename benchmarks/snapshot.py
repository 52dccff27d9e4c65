"""Snapshot: a table's rows by SELECT to Arrow columns, beside ConnectorX on the same server.

In:  sizes, a folder for a server.
Out: rows in rows per CPU second of the client, for wide and narrow tables; and ours with packing into chunks.

Both read the whole table in this process over one connection each, in turns. ConnectorX isn't among what tidegate
needs: where it can't be imported its column is empty, and the report says so.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.cpu import Meter
from benchmarks.figures import Row, in_turns
from benchmarks.sizes import Sizes
from benchmarks.workloads import DATABASE, create, play_batches
from tidegate.local.server import Server
from tidegate.mysql.connection import ConnectionInfo, TlsMode
from tidegate.mysql.start.baseline import read_schema
from tidegate.position import Position
from tidegate.schema.model.columns import TableVersion
from tidegate.snapshot.chunks.spans import WHOLE
from tidegate.snapshot.reading.connection import WorkerConnection
from tidegate.snapshot.reading.result.plan import make_read_plan
from tidegate.snapshot.reading.result.stream import ResultStream
from tidegate.snapshot.reading.table_reader import ChunkBounds, ChunkReader, Pace, WaveOf

PEER = "ConnectorX"
_UNIT = "rows per CPU second"
_ALL = ChunkBounds(1 << 30, 16 << 20, 1e9)


def measure(server: Server, sizes: Sizes, meter: Meter) -> list[Row]:
    """Two rows for each of two tables."""
    rows = []
    for name, count in (("a", sizes.rows_a), ("b", sizes.rows_b)):
        create(server, name)
        play_batches(server, name, count)
        rows += _Table(server, meter, name).rows(sizes.runs)
    return rows


class _Table:
    """One table, and the ways to read it."""

    def __init__(self, server: Server, meter: Meter, name: str) -> None:
        self._server, self._meter, self._name = server, meter, name
        self._info = ConnectionInfo(server.host, server.port, server.user, server.password, tls=TlsMode.DISABLED)
        with server.connect() as connection:
            read = read_schema(connection, "bench", lambda *of: of == (DATABASE, name), Position.of("b.1", 4))
        self._version: TableVersion = next(one for one in read if one.table == name)
        self._count = int(server.query(f"SELECT COUNT(*) FROM {DATABASE}.{name}")[0][0])

    def rows(self, runs: int) -> list[Row]:
        with WorkerConnection(self._info) as connection:
            self._batches(connection)  # compiles
            title = f"snapshot read, table {self._name.upper()}"
            note = f"{self._count} rows to Arrow columns, one connection, without TLS"
            read = Row(f"snapshot_read_{self._name}", title, _UNIT, peer=PEER, note=note)
            chunks = Row(f"snapshot_chunks_{self._name}", f"{title}, packed into chunks", _UNIT, note=note)
            ours = lambda: self._rate(lambda: self._batches(connection))  # noqa: E731
            packed = lambda: self._rate(lambda: self._chunks(connection))  # noqa: E731
            try:
                import connectorx
            except ImportError:
                read.why_missing = f"{PEER} can't be imported here"
                read.ours, chunks.ours = in_turns(runs, ours, packed)
            else:
                theirs = partial(self._rate, partial(self._peer, connectorx))
                theirs()
                read.ours, read.theirs, chunks.ours = in_turns(runs, ours, theirs, packed)
        return [read, chunks]

    def _rate(self, work: Any) -> float:
        return self._count / float(self._meter.run_here(work).cpu_seconds)

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

    def _peer(self, connectorx: Any) -> None:
        server = self._server
        url = f"mysql://{server.user}:{server.password}@{server.host}:{server.port}/{DATABASE}"
        found = connectorx.read_sql(url, f"SELECT * FROM {self._name}", return_type="arrow")
        assert found.num_rows == self._count
