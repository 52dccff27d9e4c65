"""A segment's payloads and rows as records, found by compiled code.

In:  a segment's bytes.
Out: int64 arrays (kernel/layout.py). None if bytes aren't as TiDB writes them: then the slow decoder names the fault.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.tidb.kernel import layout as T  # noqa: N812 - a page of constants
from tidegate.tidb.kernel.payloads import (
    count_all_rows,
    count_payloads,
    find_told_twice,
    read_all_rows,
    read_all_tables,
    read_payloads,
)
from tidegate.tidb.records.enclosed import LENGTH_BYTES
from tidegate.tidb.records.payload import Mutation
from tidegate.tidb.rows.double_writes import told_once

Words = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Walk:
    """payloads: int64[n, PAYLOAD_WORDS], in order."""

    data: npt.NDArray[np.uint8]
    payloads: Words

    def payload(self, number: int) -> tuple[int, bytes]:
        """Where one begins, its length included; and its bytes."""
        at, size = self.payloads[number, [T.AT, T.BYTES]].tolist()
        return at, self.data[at + LENGTH_BYTES : at + size].tobytes()

    def tables(self, numbers: Words) -> Words | None:
        """int64[n, TABLE_WORDS]: which tables the prewrites of these numbers have rows of."""
        arguments = (self.data.ctypes.data, self.payloads.ctypes.data, numbers.ctypes.data, len(numbers))
        count = int(read_all_tables(*arguments, 0))
        tables = np.empty((max(count, 0), T.TABLE_WORDS), np.int64)
        return tables if count >= 0 and int(read_all_tables(*arguments, tables.ctypes.data)) == count else None

    def row_counts(self, numbers: Words) -> Words | None:
        """How many rows each of these prewrites has; None where their bytes aren't as TiDB writes them."""
        counts = np.empty(len(numbers) + T.TABLE_WORDS, np.int64)
        arguments = (self.data.ctypes.data, self.payloads.ctypes.data, numbers.ctypes.data, len(numbers))
        return counts[: len(numbers)] if int(count_all_rows(*arguments, counts.ctypes.data)) >= 0 else None

    def rows(self, numbers: Words) -> Words | None:
        """int64[n, ROW_WORDS], without commit_ts and ordinal."""
        counts = self.row_counts(numbers)
        if counts is None:
            return None
        count = int(counts.sum())
        rows = np.zeros((count, T.ROW_WORDS), np.int64)
        arguments = (self.data.ctypes.data, self.payloads.ctypes.data, numbers.ctypes.data, len(numbers))
        if int(read_all_rows(*arguments, rows.ctypes.data)) != count:
            return None
        return self._told_once(rows)

    def _told_once(self, rows: Words) -> Words:
        """Without what TiDB tells of twice: a table's rows of a transaction are looked at where some may be."""
        marks = np.empty(len(rows), np.uint8)
        if not find_told_twice(self.data.ctypes.data, rows.ctypes.data, len(rows), marks.ctypes.data):
            return rows
        other = np.any(np.diff(rows[:, [T.ROW_PAYLOAD, T.ROW_TABLE_ID]], axis=0), axis=1)
        firsts = np.concatenate([[0], np.flatnonzero(other) + 1, [len(rows)]])
        kept = np.ones(len(rows), np.bool_)
        for group in np.unique(np.searchsorted(firsts, np.flatnonzero(marks), side="right") - 1).tolist():
            numbers = range(firsts[group], firsts[group + 1])
            kept[numbers.start : numbers.stop] = False
            changes = [
                (Mutation(int(rows[number, T.ROW_KIND])), _Placed.of(self.data, rows, number)) for number in numbers
            ]
            kept[[row.number for _, row in told_once(changes) if isinstance(row, _Placed)]] = True
        return np.ascontiguousarray(rows[kept])


class _Placed(bytes):
    """A row's bytes. number: of its record."""

    number: int

    @classmethod
    def of(cls, data: npt.NDArray[np.uint8], rows: Words, number: int) -> _Placed:
        at, end = rows[number, [T.ROW_START, T.ROW_END]].tolist()
        made = cls(data[at:end].tobytes())
        made.number = number
        return made


def walk_of(payload: bytes | memoryview) -> Walk | None:
    data = np.frombuffer(payload, np.uint8)
    count = int(count_payloads(data.ctypes.data, data.ctypes.data + len(data)))
    if count < 0:
        return None
    payloads = np.empty((count, T.PAYLOAD_WORDS), np.int64)
    if int(read_payloads(data.ctypes.data, len(data), payloads.ctypes.data)) < 0:
        return None
    return Walk(data, payloads)
