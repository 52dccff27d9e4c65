"""TiDB's binlog to columns, beside the same rows of a MySQL binlog.

In:  a played workload of the other sections.
Out: a row that only the report shows: row changes per CPU second, ours of TiDB's binlog against ours of the server's.

TiDB's side has what each window does with a segment: what it says of its transactions, then its rows.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from benchmarks.context import Context
from benchmarks.decode import Ours
from benchmarks.figures import Row, in_turns
from benchmarks.workloads import Workload
from tests.kit.tidb import encode
from tests.kit.tidb.described import NAME, TABLE, Col, Rows, segment, table, versions
from tidegate.binlog.rows.row_images import row_images
from tidegate.columnar.decoded import IMAGE_AFTER, IMAGE_BEFORE, IMAGE_DELETE
from tidegate.segments.result import CommitSpan, Known
from tidegate.tidb.codec.protobuf import written_varint
from tidegate.tidb.jobs import Tp
from tidegate.tidb.records.payload import BinlogType, Mutation
from tidegate.tidb.rows.decode import decode_in_pieces
from tidegate.tidb.rows.summary import summary_of
from tidegate.tidb.values.cells import Moment, packed

_SEGMENT_BYTES: Final = 8 << 20
_TEXT = Col(Tp.VARCHAR, length=255, charset="utf8mb4")
_INT = Col(Tp.LONG)
_WIDE = (
    *(Col(Tp.LONGLONG), _INT, _TEXT, _TEXT, Col(Tp.DECIMAL, length=18, digits=4)),
    *(Col(Tp.DATETIME, digits=6), Col(Tp.TINY), _TEXT, Col(Tp.JSON)),
)
_NARROW = (Col(Tp.LONGLONG), _INT, Col(Tp.SHORT), Col(Tp.DOUBLE, digits=-1), Col(Tp.DECIMAL, length=12, digits=2))


def measure(ctx: Context, workload: Workload) -> list[Row]:
    """Both decoders in turns over the same rows."""
    theirs = Ours(ctx, workload)
    ours = _Tidb(ctx, workload, theirs)
    sizes = f"{ours.bytes / 1e6:.0f} MB of payloads, {workload.bytes / 1e6:.0f} MB of binlog"
    row = Row(
        f"tidb_decode_{workload.name}",
        f"TiDB's binlog decoded, rows of workload {workload.name}",
        "row changes per CPU second",
        peer="tidegate, the same rows in MariaDB's binlog",
        note=f"{workload.changes} row changes, {sizes}",
    )
    row.ours, row.theirs = in_turns(ctx.sizes.runs, ours.rate, theirs.rate)
    return [row]


class _Tidb:
    """The workload's rows as TiDB would have written them."""

    def __init__(self, ctx: Context, workload: Workload, known: Ours) -> None:
        self._ctx, self._changes = ctx, workload.changes
        self._versions = {NAME: versions(table(_NARROW if workload.table == "b" else _WIDE, [0], Rows.BY_NUMBER))}
        self._segments, self._answers = list[Any](), dict[int, int]()
        waiting, size, started = list[bytes](), 0, itertools.count(100)
        for changes in _transactions(known):
            start_ts = next(started)
            self._answers[start_ts] = start_ts + 1
            waiting.append(
                encode.binlog(BinlogType.PREWRITE, start_ts, value=encode.mutations(TABLE, *changes), key=bytes(20))
            )
            waiting.append(encode.binlog(BinlogType.COMMIT, start_ts, start_ts + 1, key=bytes(20)))
            size += len(waiting[-2])
            if size >= _SEGMENT_BYTES:
                self._segments.append(segment(*waiting))
                waiting, size = [], 0
        self._segments.append(segment(*waiting))
        self.bytes = sum(len(one.payload) for one in self._segments)
        self.once()
        seconds = ctx.meter.run_here(self.once).cpu_seconds
        self._passes = max(1, round(ctx.sizes.decode_seconds / seconds))

    def once(self) -> None:
        rows, windows, known = 0, {NAME: CommitSpan(20, 1 << 60)}, Known(answers=self._answers)
        for one in self._segments:
            assert len(summary_of(one).answered)
            for part in decode_in_pieces(one, self._versions, windows, known=known):
                assert not part.problems, part.problems[0]
                rows += part.ledger.rows
        assert rows == self._changes, f"decoded {rows} of {self._changes} changes"

    def _all(self) -> None:
        for _ in range(self._passes):
            self.once()

    def rate(self) -> float:
        run = self._ctx.meter.run_here(self._all)
        return self._changes * self._passes / run.cpu_seconds


def _transactions(known: Ours) -> Iterator[list[tuple[Mutation, bytes]]]:
    """The mutations of each transaction of a MariaDB's log."""
    waiting, at = list[tuple[Mutation, bytes]](), 0
    for one in known.segments:
        for found in row_images(one, known.versions, known.windows):
            before = b""
            for row in found.images.rows.to_pylist():
                op, commit_ts, _, _, *cells = row.values()
                if commit_ts != at and waiting:
                    yield waiting
                    waiting = []
                at = commit_ts
                pairs = b"".join(encode.datum(n) + _datum(n, cell) for n, cell in enumerate(cells, 1))
                if op == IMAGE_BEFORE:
                    before = pairs
                elif op == IMAGE_AFTER:
                    waiting.append((Mutation.UPDATE, before + pairs))
                elif op == IMAGE_DELETE:
                    waiting.append((Mutation.DELETE, pairs))
                else:  # the key is the handle, and isn't repeated
                    rest = b"".join(encode.datum(n) + _datum(n, cell) for n, cell in enumerate(cells[1:], 2))
                    waiting.append((Mutation.INSERT, encode.datum(cells[0]) + rest))
    yield waiting


def _datum(number: int, cell: Any) -> bytes:
    """number: of the column. The ninth is JSON."""
    if hasattr(cell, "microsecond"):
        at = Moment(cell.year, cell.month, cell.day, cell.hour, cell.minute, cell.second, cell.microsecond)
        return b"\x09" + written_varint(packed(at))
    if number == len(_WIDE) and isinstance(cell, str):
        return encode.datum(encode.json_value(json.loads(cell)))
    if isinstance(cell, Decimal | None):
        return encode.datum(cell)
    return encode.datum(cell.encode() if isinstance(cell, str) else cell)
