"""Rows events of one plan into one Arrow record batch.

In:  a payload, the offsets of its rows events, a Plan.
Out: a RecordBatch with the four system columns (tables.OP, COMMIT_TS, SEQ, ORDINAL) and the version's columns.

All buffers are slices of one arena from Arrow's own allocator: what isn't written is never touched, so generous room
costs address space, not memory. Room for rows is a guess; when it doesn't suffice, the images are counted and the
pass is run again with exactly enough.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate import tables
from tidegate.binlog.dates import date_text, refused_date
from tidegate.binlog.finish import finish_column, part
from tidegate.binlog.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.binlog.kernel.rows import count_images, decode_rows
from tidegate.binlog.plan import OUT_BYTES, VARIABLE, Plan
from tidegate.errors import DecodeError, Terminal, UnsupportedValue

_ALIGN: Final = 64
_OFFSETS_MAX: Final = (1 << 31) - 1  # Arrow's 32-bit offsets
SYSTEM_FIELDS: Final = (
    pa.field(tables.OP, pa.int8(), nullable=False),
    pa.field(tables.COMMIT_TS, pa.int64(), nullable=False),
    pa.field(tables.SEQ, pa.int64(), nullable=False),
    pa.field(tables.ORDINAL, pa.int64(), nullable=False),
)


@dataclass(frozen=True, slots=True)
class Batch:
    """rows: the record batch. null_dates: zero or impossible dates that became NULL."""

    rows: pa.RecordBatch
    null_dates: int


class RowsError(Exception):
    """Which rows event could not be decoded, and the error it is: the caller adds table, file and position."""

    def __init__(self, event: int, error: Terminal) -> None:
        super().__init__(str(error))
        self.event = event
        self.error = error


class _Arena:
    """Hands out aligned ranges, then becomes one buffer."""

    def __init__(self) -> None:
        self.size = 0

    def take(self, count: int) -> int:
        at = self.size
        self.size += (count + _ALIGN - 1) // _ALIGN * _ALIGN
        return at


def decode_batch(data: npt.NDArray[np.uint8], events: npt.NDArray[np.int64], plan: Plan, seq: int) -> Batch:
    """events: int64[n, EVENT_WORDS], all of one TABLE_MAP and table version, with offsets in data. Raises RowsError."""
    image_bytes = int((events[:, L.EVENT_END] - events[:, L.EVENT_START]).sum())
    addressed = events.copy()
    addressed[:, [L.EVENT_START, L.EVENT_END]] += data.ctypes.data
    rows_max = image_bytes // plan.row_bytes_usual + 64
    for _ in range(2):
        words = plan.words.copy()
        state = np.zeros(L.STATE_WORDS, np.int64)
        state[L.DATA] = data.ctypes.data
        buffer = _lay_out(words, state, plan, rows_max, image_bytes)
        arguments = (addressed.ctypes.data, len(addressed), words.ctypes.data, state.ctypes.data)
        found = int(decode_rows(*arguments))
        if found != L.ERROR_ROOM:
            break
        rows_max = int(count_images(*arguments)) + 2
    if found < 0:
        raise RowsError(int(state[L.ERROR_EVENT]), _error(state, plan))
    per_column = words.reshape(-1, L.COLUMN_WORDS)
    columns = []
    for column, described in zip(plan.columns, per_column, strict=True):
        try:
            columns.append(finish_column(column, described, found, buffer))
        except Terminal as error:
            named = type(error)(f"column {column.name}: {error.what}", remedy=error.remedy)
            raise RowsError(0, named) from None
    system = [
        pa.Array.from_buffers(pa.int8(), found, [None, part(buffer, int(state[L.OPS]), found)]),
        pa.Array.from_buffers(pa.int64(), found, [None, part(buffer, int(state[L.COMMIT_TS]), 8 * found)]),
        pa.array(np.full(found, seq, np.int64)),
        pa.Array.from_buffers(pa.int64(), found, [None, part(buffer, int(state[L.ORDINALS]), 8 * found)]),
    ]
    rows = pa.RecordBatch.from_arrays([*system, *columns], schema=pa.schema([*SYSTEM_FIELDS, *plan.schema]))
    return Batch(rows, int(per_column[:, L.NULL_DATES].sum()))


def _lay_out(
    words: npt.NDArray[np.int64], state: npt.NDArray[np.int64], plan: Plan, rows_max: int, image_bytes: int
) -> pa.Buffer:
    """Write addresses into words and state; give the arena."""
    arena = _Arena()
    per_column = words.reshape(-1, L.COLUMN_WORDS)
    state[L.COLUMNS], state[L.ROWS_MAX], state[L.KEYED] = len(plan.columns), rows_max, plan.keyed
    state[L.OPS] = arena.take(rows_max)
    state[L.COMMIT_TS] = arena.take(8 * rows_max)
    state[L.ORDINALS] = arena.take(8 * rows_max)
    variable = []
    for column, described in zip(plan.columns, per_column, strict=True):
        described[L.VALID] = arena.take(rows_max // 8 + 1)
        if column.cell not in VARIABLE:
            described[L.VALUES] = arena.take(OUT_BYTES[column.cell] * rows_max)
            continue
        described[L.VALUES] = arena.take(4 * (rows_max + 1))
        made = VARIABLE[column.cell] or (int(described[L.P1]) if column.cell == L.CELL_BYTES else 0)
        described[L.BYTES_MAX] = min(image_bytes + made * (rows_max + 1), _OFFSETS_MAX)
        described[L.BYTES] = arena.take(int(described[L.BYTES_MAX]))
        variable.append(described)
    buffer = pa.allocate_buffer(arena.size)
    state[[L.OPS, L.COMMIT_TS, L.ORDINALS]] += buffer.address
    per_column[:, [L.VALUES, L.VALID, L.BYTES]] += buffer.address
    out = np.frombuffer(buffer, np.uint8)
    for described in variable:
        at = int(described[L.VALUES]) - buffer.address
        out[at : at + 4] = 0  # Arrow's first offset
    return buffer


def _error(state: npt.NDArray[np.int64], plan: Plan) -> Terminal:
    at = int(state[L.ERROR_COLUMN])
    place = f"column {plan.columns[at].name}" if at >= 0 else "the row"
    code = int(state[L.ERROR])
    if code == L.ERROR_IMAGE:
        return UnsupportedValue(
            "rows event lacks columns (binlog_row_image is not FULL)", remedy="set binlog_row_image=FULL at the source"
        )
    if code == L.ERROR_BATCH:
        return UnsupportedValue(f"{place} has more than 2 GiB in one segment", remedy="lower segment_bytes")
    if code == L.ERROR_DATE:
        words = plan.words.reshape(-1, L.COLUMN_WORDS)[at]
        raw = ctypes.string_at(int(state[L.ERROR_AT]), int(words[L.WIDTH]))  # its length was checked by the kernel
        text = date_text(plan.columns[at].cell, int(words[L.P1]), raw)
        return refused_date(plan.columns[at].name, text, key=bool(words[L.KEY]))
    what = {
        L.ERROR_VALUE: f"{place} holds bytes that no server writes for its type",
        L.ERROR_CUT: f"the event ends inside {place}",
        L.ERROR_COLUMNS: "rows event and TABLE_MAP differ in their column count",
        L.ERROR_MEMBER: f"{place} has a value that none of its members stands for",
    }[code]
    return DecodeError(what, remedy="take a new baseline of the table; if it stays, capture the segment again")
