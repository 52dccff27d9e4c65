"""Records of rows of one plan into one Arrow record batch.

In:  a segment's bytes, records (kernel/layout.py), a Plan.
Out: a batch with the four system columns and the version's columns; None where the kernel met what it doesn't take: the
     slow decoder then reads these rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.columnar.arena import Words, lay_out, moved_out
from tidegate.columnar.decoded import SYSTEM_FIELDS
from tidegate.columnar.finish import finish_column, part
from tidegate.columnar.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.errors import Terminal
from tidegate.tidb.codec.datum import datum
from tidegate.tidb.kernel import layout as T  # noqa: N812
from tidegate.tidb.kernel.rows import decode_rows
from tidegate.tidb.rows.json_column import json_column
from tidegate.tidb.rows.row_plan import PlannedColumn, TidbPlan


@dataclass(frozen=True, slots=True)
class TidbBatch:
    """null_dates: impossible dates that became NULL."""

    rows: pa.RecordBatch
    null_dates: int


def decode_records(
    data: npt.NDArray[np.uint8], records: Words, plan: TidbPlan, seq: int, *, logged: bool = False
) -> TidbBatch | None:
    """logged: each side of an update by itself. Raises UnsupportedValue, DecodeError for a value made outside of the
    kernel.
    """
    room = len(records) + int((records[:, T.ROW_KIND] == 1).sum())
    words, state = plan.words.copy(), np.zeros(T.STATE_WORDS, np.int64)
    marks, places = np.empty((2, max(len(words), 1)), np.int64), np.empty(T.PLACES_MAX, np.int64)
    state[T.COLUMNS], state[T.HANDLES], state[T.KEYED] = len(words), plan.handles, len(plan.key)
    state[T.MODE], state[T.DATA] = L.MODE_IMAGES if logged else L.MODE_NET, data.ctypes.data
    state[T.IDS], state[T.ORDER] = plan.ids.ctypes.data, plan.order.ctypes.data
    state[T.MARKS], state[T.PLACES] = marks.ctypes.data, places.ctypes.data
    twins, absent = np.empty(room, np.uint8), np.empty((len(words), room), np.uint8)
    state[T.TWINS] = twins.ctypes.data
    for number, column in enumerate(plan.columns):
        if column.default is not None:
            words[number, T.ABSENT] = absent[number].ctypes.data
    image_bytes = int((records[:, T.ROW_END] - records[:, T.ROW_START]).sum())
    cells = [(column.plan.cell, image_bytes + column.pad * (room + 1)) for column in plan.columns]
    buffer = lay_out(words, state, (T.OPS, T.COMMITS, T.ORDINALS), cells, room)
    count = int(decode_rows(records.ctypes.data, len(records), words.ctypes.data, state.ctypes.data))
    if count < 0:
        return None
    columns = [
        _finished(column, words[number], count, buffer, absent[number]) for number, column in enumerate(plan.columns)
    ]
    stamps = [
        pa.Array.from_buffers(pa.int8(), count, [None, part(buffer, int(state[T.OPS]), count)]),
        pa.Array.from_buffers(pa.int64(), count, [None, part(buffer, int(state[T.COMMITS]), 8 * count)]),
        pa.array(np.full(count, seq, np.int64)),
        pa.Array.from_buffers(pa.int64(), count, [None, part(buffer, int(state[T.ORDINALS]), 8 * count)]),
    ]
    schema = pa.schema([*SYSTEM_FIELDS, *(column.field for column in plan.columns)])
    rows = pa.RecordBatch.from_arrays([*stamps, *columns], schema=schema)
    if state[T.TWIN_COUNT]:
        rows = _without_same(rows, np.flatnonzero(twins[:count]), plan)
    return TidbBatch(moved_out(rows), int(words[:, L.NULL_DATES].sum()))


def _finished(
    column: PlannedColumn, described: Words, rows: int, buffer: pa.Buffer, absent: npt.NDArray[np.uint8]
) -> pa.Array:
    try:
        array = finish_column(column.plan, described, rows, buffer)
    except Terminal as error:
        raise type(error)(f"column {column.plan.name}: {error.what}", remedy=error.remedy) from None
    if column.raw and column.is_json:
        array = json_column(array)
    elif column.raw:
        cells = [None if value is None else datum(value, 0)[0] for value in array.to_pylist()]
        array = column.converter.array(cells)
    if column.default is not None and absent[:rows].any():
        missing = pa.array(absent[:rows].astype(np.bool_))
        array = pc.if_else(missing, pa.scalar(column.default, column.field.type), array)
    return array


def _without_same(rows: pa.RecordBatch, deletes: npt.NDArray[np.int64], plan: TidbPlan) -> pa.RecordBatch:
    """Without deletes in front of an upsert whose key is the same value in other bytes, as -0 and 0 are."""
    same = np.ones(len(deletes), np.bool_)
    for place in plan.key:
        column = rows.column(len(SYSTEM_FIELDS) + place)
        before, after = column.take(pa.array(deletes)), column.take(pa.array(deletes + 1))
        both_null = pc.and_(pc.is_null(before), pc.is_null(after))
        same &= pc.if_else(both_null, True, pc.fill_null(pc.equal(before, after), False)).to_numpy(zero_copy_only=False)
    if not same.any():
        return rows
    kept = np.ones(rows.num_rows, np.bool_)
    kept[deletes[same]] = False
    return rows.filter(pa.array(kept))
