"""Decode: a binlog file's rows to columns, beside mysql-replication and mysql-binlog-connector-java.

In:  a played workload.
Out: rows in row changes per CPU second, one for each peer.

Ours: the file cut into segments of capture's size, each decoded into Arrow columns. The Java connector reads the
same file; both hold everything in one process and are warm. mysql-replication reads only over a connection, and is
given the file's first rows.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any

from benchmarks.context import Context
from benchmarks.figures import Missing, Row, in_turns
from benchmarks.peers import maven, replication
from benchmarks.peers.process import Peer
from benchmarks.workloads import DATABASE, Workload
from tests.kit.decoding import ALL_TIME, index_segment, segment, version_on
from tidegate.binlog.kernel import index as K  # noqa: N812
from tidegate.binlog.rows.decode import decode_segment
from tidegate.binlog.transaction_scan import ENDS
from tidegate.limits import SEGMENT_BYTES_DEFAULT
from tidegate.segments.segment import Segment

_UNIT = "row changes per CPU second"


def measure(ctx: Context, workload: Workload) -> list[Row]:
    """Two rows: against each peer, in turns with it."""
    ours = Ours(ctx, workload)
    return [_java(ctx, workload, ours), _python(ctx, workload, ours)]


class Ours:
    """The decoder over one workload's segments."""

    def __init__(self, ctx: Context, workload: Workload) -> None:
        self.ctx = ctx
        self.workload = workload
        name = (DATABASE, workload.table)
        self.versions = {name: [version_on(ctx.server, *name)]}
        self.windows = {name: ALL_TIME}
        self.segments = cut(workload.path.read_bytes())
        self.once()
        seconds = ctx.meter.run_here(self.once).cpu_seconds
        self.passes = max(1, round(ctx.sizes.decode_seconds / seconds))

    def once(self) -> None:
        rows = 0
        for one in self.segments:
            found = decode_segment(one, self.versions, self.windows)
            assert not found.problems, found.problems[0]
            rows += found.ledger.rows
        assert rows == self.workload.changes, f"decoded {rows} of {self.workload.changes} changes"

    def _passes(self) -> None:
        for _ in range(self.passes):
            self.once()

    def rate(self) -> float:
        run = self.ctx.meter.run_here(self._passes)
        return self.workload.changes * self.passes / run.cpu_seconds


def cut(content: bytes) -> list[Segment]:
    """The file as segments of the default size, cut at transaction ends."""
    first = int.from_bytes(content[13:17], "little")
    context, payload = content[4 : 4 + first], content[4:]
    events = index_segment(segment(context, payload)).events
    ends = (events[:, K.OFFSET] + events[:, K.SIZE])[(events[:, K.BITS] & ENDS) != 0].tolist()
    cuts = [0]
    for end in [*ends, len(payload)]:
        if end - cuts[-1] >= SEGMENT_BYTES_DEFAULT or end == len(payload):
            cuts.append(end)
    return [segment(context, payload[a:b], start_pos=4 + a) for a, b in itertools.pairwise(cuts) if b > a]


def _row(workload: Workload, key: str, peer: str) -> Row:
    note = f"{workload.changes} row changes, {workload.bytes / 1e6:.0f} MB; to Arrow columns, against objects"
    return Row(key, f"decode, workload {workload.name}", _UNIT, peer=peer, note=note)


def _java(ctx: Context, workload: Workload, ours: Ours) -> Row:
    row = _row(workload, f"decode_vs_java_{workload.name}", maven.CONNECTOR[0])
    try:
        command = maven.program("Connector.java", maven.jars(maven.CONNECTOR, ctx.cache))
        with Peer(row.peer, command) as peer:
            asked: dict[str, Any] = {"file": str(workload.path), "passes": 1}

            def theirs() -> float:
                rows: int = workload.changes * asked["passes"]
                return rows / ctx.meter.run(lambda: peer.go(asked, rows), root=peer.pid).cpu_seconds

            theirs()  # compiles
            asked["passes"] = max(1, round(2 * ctx.sizes.decode_seconds * theirs() / workload.changes))
            theirs()
            row.ours, row.theirs = in_turns(ctx.sizes.runs, ours.rate, theirs)
    except Missing as missing:
        row.why_missing = str(missing)
        (row.ours,) = in_turns(ctx.sizes.runs, ours.rate)
    return row


def _python(ctx: Context, workload: Workload, ours: Ours) -> Row:
    row = _row(workload, f"decode_vs_mysql_replication_{workload.name}", replication.NAME)
    wanted = min(ctx.sizes.reference_rows, workload.changes)
    asked = ctx.log_of(workload) | {"rows": wanted}
    try:
        with Peer(row.peer, [sys.executable, "-m", "benchmarks.peers.replication"]) as peer:

            def theirs() -> float:
                rows: list[int] = []
                run = ctx.meter.run(lambda: rows.append(peer.go(asked, wanted)), root=peer.pid)
                return rows[0] / run.cpu_seconds

            theirs()  # imports
            row.ours, row.theirs = in_turns(ctx.sizes.runs, ours.rate, theirs)
    except Missing as missing:
        row.why_missing = str(missing)
        (row.ours,) = in_turns(ctx.sizes.runs, ours.rate)
    row.note += f"; the peer read the first {wanted}"
    return row
