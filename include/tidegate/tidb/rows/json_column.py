"""A column of JSON datums as texts.

In:  an Arrow array of datums as rows have them.
Out: the texts that SELECT shows. DecodeError for bytes that contradict themselves.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.columnar.arena import OFFSETS_MAX
from tidegate.tidb.codec.json_binary import json_text
from tidegate.tidb.kernel import json_text as K  # noqa: N812 - a page of constants

_GROWTH: Final = 6  # bytes that one becomes at most: \u0000
_VALUE_BYTES: Final = 64  # and a number of a few


def json_column(datums: pa.Array) -> pa.Array:
    _, offsets, data = datums.buffers()
    rows = len(datums)
    room = _GROWTH * data.size + _VALUE_BYTES * rows
    if room > OFFSETS_MAX:
        return _one_by_one(datums)
    ends, out = pa.allocate_buffer(4 * (rows + 1)), pa.allocate_buffer(room + _VALUE_BYTES)
    undone, stack = np.empty(rows, np.uint8), np.empty(K.DEPTH * K.FRAME_WORDS, np.int64)
    state = np.zeros(K.STATE_WORDS, np.int64)
    state[K.OFFSETS], state[K.DATA], state[K.ENDS], state[K.OUT] = (
        buffer.address for buffer in (offsets, data, ends, out)
    )
    state[K.UNDONE_ROWS], state[K.STACK] = undone.ctypes.data, stack.ctypes.data
    used = K.json_texts(state.ctypes.data, rows)
    made = pa.Array.from_buffers(pa.string(), rows, [datums.buffers()[0], ends, out.slice(0, int(used))])
    try:
        made.validate(full=True)
    except pa.ArrowInvalid:  # a string that isn't UTF-8
        return _one_by_one(datums)
    if not undone.any():
        return made
    mask = pa.array(undone.astype(np.bool_))
    return pc.replace_with_mask(made, mask, _one_by_one(datums.filter(mask)))


def _one_by_one(datums: pa.Array) -> pa.Array:
    return pa.array(
        [None if document is None else json_text(document[1:]) for document in datums.to_pylist()], pa.string()
    )
