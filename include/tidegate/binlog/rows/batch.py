"""Rows events of one plan into one Arrow record batch.

In:  a payload, the offsets of its rows events, a Plan.
Out: a RecordBatch with the four system columns (tables.OP, COMMIT_TS, SEQ, ORDINAL) and the
     version's columns.

The kernels write into one arena with room for the worst case: every column of text could have all
bytes. Huge pages turn that room into real memory, several times the rows' own, so the rows are
copied out of it, and it is used again. The room for rows is a guess. If it is too small, the images
are counted, and the pass runs again with exactly enough.

Nearly all events have every column. The fast kernel (rows.py) stops at the first partial image.
Then partial_rows.py decodes the batch again, so batches of whole images pay nothing for this.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate import tables
from tidegate.binlog.kernel.partial_rows import count_partial_images, decode_partial_rows
from tidegate.binlog.kernel.rows import count_images, decode_rows
from tidegate.binlog.rows.decode_plan import Plan
from tidegate.columnar.arena import Words, lay_out, moved_out
from tidegate.columnar.column_plan import VARIABLE
from tidegate.columnar.dates import date_text, refused_date
from tidegate.columnar.decoded import SYSTEM_FIELDS, Images, RowsError
from tidegate.columnar.finish import finish_column, part
from tidegate.columnar.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.errors import DecodeError, Terminal, UnsupportedValue
from tidegate.remedy import REFILL, REPORT
from tidegate.schema.follow.added_columns import existing_row_value
from tidegate.schema.model.columns import Generated

_WHOLE_IMAGES: Final = REFILL.after("set binlog_row_image=FULL at the source")
_NOT_FULL: Final = "binlog_row_image is not FULL"
_UNLOGGED: Final = "it is generated, and MariaDB logs those in inserts alone; or binlog_row_image is not FULL"
_WITHOUT_IT: Final = REFILL.after("leave the column out of silver (tables.columns), or the table (tables.exclude)")
_WITH_A_KEY: Final = _WITHOUT_IT.after("give the table a key")


@dataclass(frozen=True, slots=True)
class BareDelete:
    """A delete without the whole row. event: number of its rows event. column: one that is missing."""

    event: int
    column: str


@dataclass(frozen=True, slots=True)
class RowsBatch:
    """rows: the record batch. null_dates: zero or impossible dates that became NULL. bare_delete: the first, if any.
    lacks: as in TableChanges.
    """

    rows: pa.RecordBatch
    null_dates: int
    bare_delete: BareDelete | None = None
    lacks: bool = False


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A pass over events, and the pass that counts their images. copies: how often a value may be written.

    partial: None, or the mode in which it takes images with missing columns.
    """

    decode: Callable[..., int]
    count: Callable[..., int]
    copies: int
    partial: bool = False
    mode: int = L.MODE_NET


_WHOLE: Final = _Kernel(decode_rows, count_images, 1)
_NET: Final = _Kernel(decode_partial_rows, count_partial_images, 2, partial=True)
_LOGGED: Final = _Kernel(decode_partial_rows, count_partial_images, 2, partial=True, mode=L.MODE_IMAGES)


@dataclass(frozen=True, slots=True)
class _Pass:
    """The result of a kernel.

    outcome: the number of rows, or an ERROR_*. present: uint8[columns, rows] of a partial pass.
    """

    outcome: int
    words: Words
    state: Words
    buffer: pa.Buffer
    present: npt.NDArray[np.uint8] | None


def decode_batch(data: npt.NDArray[np.uint8], events: Words, plan: Plan, seq: int) -> RowsBatch:
    """events: int64[n, EVENT_WORDS], all of one TABLE_MAP and table version, with offsets in data.
    Raises RowsError.
    """
    done = _run(_WHOLE, data, events, plan)
    if done.outcome == L.ERROR_IMAGE:
        done = _run(_NET, data, events, plan)
    rows, bare, lacks = _rows(done, plan, seq, plan.unasked), None, False
    if done.present is not None:
        rows = _with_defaults(rows, done.present, plan)
        bare = _bare_delete(rows, events, done.present, plan)
        lacks = _lacks(rows, done.present, plan)
    return RowsBatch(moved_out(rows), int(done.words[:, L.NULL_DATES].sum()), bare, lacks)


def decode_images(data: npt.NDArray[np.uint8], events: Words, plan: Plan, seq: int) -> Images:
    """As decode_batch, but every row image is a row. After images have whole JSON documents. Raises
    RowsError.
    """
    done = _run(_LOGGED, data, events, plan)
    rows = _rows(done, plan, seq)
    present = None if done.present is None or done.present.all() else done.present.astype(np.bool_)
    return Images(moved_out(rows), present, int(done.words[:, L.NULL_DATES].sum()))


def _run(kernel: _Kernel, data: npt.NDArray[np.uint8], events: Words, plan: Plan) -> _Pass:
    image_bytes = int((events[:, L.EVENT_END] - events[:, L.EVENT_START]).sum())
    addressed = events.copy()
    addressed[:, [L.EVENT_START, L.EVENT_END]] += data.ctypes.data
    marks = np.stack([plan.marks, plan.marks])
    if kernel is _NET:
        marks[:, :, L.MARK_NEEDED] = [isinstance(_default(plan, i), Terminal) for i in range(len(plan.columns))]
    rows_max = image_bytes // plan.row_bytes_usual + 64
    for _ in range(2):
        words = plan.words.copy()
        state = np.zeros(L.STATE_WORDS, np.int64)
        state[L.DATA], state[L.MARKS], state[L.MODE] = data.ctypes.data, marks.ctypes.data, kernel.mode
        state[L.DOCUMENTS] = marks[0, :, L.MARK_JSON].sum()
        present = np.empty((len(plan.columns), rows_max if kernel.partial else 0), np.uint8)
        state[L.PRESENT] = present.ctypes.data
        buffer = _lay_out(words, state, plan, rows_max, kernel.copies * image_bytes)
        arguments = (addressed.ctypes.data, len(addressed), words.ctypes.data, state.ctypes.data)
        outcome = int(kernel.decode(*arguments))
        if outcome != L.ERROR_ROOM:
            break
        rows_max = int(kernel.count(*arguments)) + 2
    known = present[:, : max(outcome, 0)] if kernel.partial else None
    return _Pass(outcome, words.reshape(-1, L.COLUMN_WORDS), state, buffer, known)


def _rows(done: _Pass, plan: Plan, seq: int, unread: AbstractSet[str] = frozenset()) -> pa.RecordBatch:
    """unread: columns of these names become NULL if a value of them can't be decoded."""
    rows, state, buffer = done.outcome, done.state, done.buffer
    if rows < 0:
        raise RowsError(int(state[L.ERROR_EVENT]), _error(state, plan))
    columns = []
    for i, (column, described) in enumerate(zip(plan.columns, done.words, strict=True)):
        try:
            columns.append(finish_column(column, described, rows, buffer, patched=done.present is not None))
        except Terminal as error:
            if plan.defined and plan.defined[i].silver in unread:
                columns.append(pa.nulls(rows, column.type.arrow))
                continue
            named = type(error)(f"column {column.name}: {error.what}", remedy=error.remedy)
            raise RowsError(0, named) from None
    system = [
        pa.Array.from_buffers(pa.int8(), rows, [None, part(buffer, int(state[L.OPS]), rows)]),
        pa.Array.from_buffers(pa.int64(), rows, [None, part(buffer, int(state[L.COMMIT_TS]), 8 * rows)]),
        pa.array(np.full(rows, seq, np.int64)),
        pa.Array.from_buffers(pa.int64(), rows, [None, part(buffer, int(state[L.ORDINALS]), 8 * rows)]),
    ]
    return pa.RecordBatch.from_arrays([*system, *columns], schema=pa.schema([*SYSTEM_FIELDS, *plan.schema]))


def _with_defaults(rows: pa.RecordBatch, present: npt.NDArray[np.uint8], plan: Plan) -> pa.RecordBatch:
    """Fill in the defaults of columns a written row lacks: the server leaves out nothing else."""
    written = rows.column(tables.OP).to_numpy() == tables.OP_UPSERT
    for i, column in enumerate(plan.columns):
        if plan.marks[i, L.MARK_UNASKED]:
            continue
        absent = (present[i] == 0) & written
        if absent.any():
            at = len(SYSTEM_FIELDS) + i
            value = pa.scalar(_default(plan, i), column.type.arrow)
            filled = pc.if_else(pa.array(absent), value, rows.column(at))
            rows = rows.set_column(at, rows.schema.field(at), filled)
    return rows


def _lacks(rows: pa.RecordBatch, present: npt.NDArray[np.uint8], plan: Plan) -> bool:
    """Whether a written row lacks the value of a column that must be asked for."""
    asked = [i for i, column in enumerate(plan.defined) if column.silver in plan.asked]
    written = rows.column(tables.OP).to_numpy() == tables.OP_UPSERT
    return bool((present[asked] == 0)[:, written].any())


def _bare_delete(rows: pa.RecordBatch, events: Words, present: npt.NDArray[np.uint8], plan: Plan) -> BareDelete | None:
    """The first delete that lacks one of silver's columns."""
    deletes = np.flatnonzero(rows.column(tables.OP).to_numpy() == tables.OP_DELETE)
    lacking = present[: len(plan.columns) - plan.hidden, deletes] == 0
    lacking &= plan.marks[: len(lacking), L.MARK_UNASKED, None] == 0
    bare = np.flatnonzero(lacking.any(axis=0))
    if not len(bare):
        return None
    at = int(rows.column(tables.ORDINAL)[int(deletes[bare[0]])].as_py())
    event = int(np.searchsorted(events[:, L.EVENT_START], at, side="right")) - 1
    return BareDelete(event, plan.columns[int(np.argmax(lacking[:, bare[0]]))].name)


def _default(plan: Plan, i: int) -> Any:
    """The value of a column in a new row without it; or an UnsupportedValue that says why it isn't
    known.
    """
    column = plan.defined[i] if plan.defined else None
    why = "its definition isn't known"
    if column is not None and column.default is None and not column.nullable:
        why = "it has none"
    elif column is not None:
        try:
            value = existing_row_value(column)
        except UnsupportedValue as error:
            why = error.what.partition(": ")[2]
        else:
            if value is not None or column.default is None:
                return value
            why = f"{column.default} is no date"
    lacking = f"a new row lacks column {plan.columns[i].name} (binlog_row_image is not FULL)"
    return UnsupportedValue(f"{lacking}, whose default isn't known: {why}", remedy=_WHOLE_IMAGES)


def _lay_out(words: Words, state: Words, plan: Plan, rows_max: int, bytes_max: int) -> pa.Buffer:
    """Write addresses into words and state. Returns the arena. bytes_max: what all values of a
    column may need.
    """
    per_column = words.reshape(-1, L.COLUMN_WORDS)
    state[L.COLUMNS], state[L.ROWS_MAX], state[L.KEYED] = len(plan.columns), rows_max, plan.keyed
    cells = []
    for column, described in zip(plan.columns, per_column, strict=True):
        made = VARIABLE.get(column.cell) or (int(described[L.P1]) + 8 if column.cell == L.CELL_BYTES else 0)
        cells.append((column.cell, bytes_max + made * (rows_max + 1)))
    return lay_out(per_column, state, (L.OPS, L.COMMIT_TS, L.ORDINALS), cells, rows_max)


def _error(state: Words, plan: Plan) -> Terminal:
    at = int(state[L.ERROR_COLUMN])
    place = f"column {plan.columns[at].name}" if at >= 0 else "the row"
    code = int(state[L.ERROR])
    generated = at >= 0 and bool(plan.defined) and plan.defined[at].generated is not Generated.NO
    why, remedy = (_UNLOGGED, _WITHOUT_IT if plan.keyed else _WITH_A_KEY) if generated else (_NOT_FULL, _WHOLE_IMAGES)
    lacking = {
        L.ERROR_UNKNOWN: f"an update doesn't tell {place} ({why})",
        L.ERROR_KEY: f"a before image lacks {place}, which tells the row ({why})",
        L.ERROR_EMPTY: f"rows event without any column ({_NOT_FULL}): nobody can tell how many rows",
        L.ERROR_DIFFS: f"{place} holds JSON differences, and the before image lacks their document",
    }
    if code in lacking:
        return UnsupportedValue(lacking[code], remedy=remedy)
    if code == L.ERROR_DEFAULT:
        refused: Terminal = _default(plan, at)
        return refused
    if code == L.ERROR_BATCH:
        return UnsupportedValue(
            f"{place} has more than 2 GiB in one segment",
            remedy="lower capture.segment_bytes in the pipeline file, then: `tidegate snapshot start`",
        )
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
        L.ERROR_OPTIONS: "rows event has value options that aren't known",
        L.ERROR_DOCUMENT: f"{place} has a JSON document of no known type",
    }[code]
    return DecodeError(what, remedy=REFILL.after(REPORT))
