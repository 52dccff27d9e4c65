"""Rows in which a session's mode gave virtual columns other values than SELECT shows.

In:  an index, rows events of a table in it, the version of the table, the columns that silver leaves out.
Out: the first of these events, and the error that holds the table; None.

PAD_CHAR_TO_FULL_LENGTH reads a CHAR with all its spaces. A virtual column is computed by whoever reads it: the log
has the writer's value, and a snapshot or SELECT the one without spaces. A stored column has one value for everybody.
MySQL logs the session's mode with BEGIN; a MariaDB logs it with statements alone.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate.binlog.event_index import EventIndex
from tidegate.binlog.events import EventType
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.errors import Terminal, UnsupportedValue
from tidegate.remedy import REFILL
from tidegate.schema.follow.computed import reached
from tidegate.schema.model.columns import Column, Generated, TableVersion

# In a QUERY event of MySQL: two status variables stand first, the flags (code 0) and the mode (code 1).
_FLAGS_AT: Final = 32
_MODE_AT: Final = 37
_PAD_CHAR_AT: Final = 41  # the mode's bit 31
_PAD_CHAR_BIT: Final = 0x80


def padded(
    index: EventIndex, version: TableVersion, events: npt.NDArray[np.int64], left_out: frozenset[str]
) -> tuple[int, Terminal] | None:
    """events: numbers in the index."""
    if index.format.is_mariadb or (column := _of_chars(version, left_out)) is None:
        return None
    queries = np.flatnonzero(index.events[:, K.TYPE] == EventType.QUERY)
    pads = _pads(index.data, index.events[queries, K.OFFSET])
    commits = index.events[events, K.COMMIT_TS]
    wrong = np.isin(commits, index.events[queries[pads], K.COMMIT_TS])
    if index.opening and _pads(np.frombuffer(index.opening, np.uint8), np.zeros(1, np.int64))[0]:
        wrong |= ~np.isin(commits, index.events[queries, K.COMMIT_TS])
    if not wrong.any():
        return None
    error = UnsupportedValue(
        f"a session wrote with the mode PAD_CHAR_TO_FULL_LENGTH, and virtual column {column.name} reads a CHAR column:"
        " the log has the value with all spaces, and SELECT shows another one",
        remedy=REFILL.after("take the mode out of such sessions, or leave the column out (tables.columns)"),
    )
    return int(events[np.flatnonzero(wrong)[0]]), error


def _of_chars(version: TableVersion, left_out: frozenset[str]) -> Column | None:
    """The first virtual column of silver that reads a CHAR column."""
    for column in version.columns:
        if column.generated is not Generated.VIRTUAL or column.name in left_out:
            continue
        if any(behind.type.startswith("char(") for behind in reached(version, [column])):
            return column
    return None


def _pads(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Whether the QUERY events at these offsets say the mode."""
    places = offsets[:, np.newaxis] + np.array([_FLAGS_AT, _MODE_AT, _PAD_CHAR_AT])
    flags, mode, modes = data[np.minimum(places, len(data) - 1)].T  # the last event may be shorter
    pads: npt.NDArray[np.bool_] = (flags == 0) & (mode == 1) & ((modes & _PAD_CHAR_BIT) != 0)
    return pads
