"""Rows in which a session's mode gave virtual columns other values than SELECT shows.

In:  an index, rows events of a table in it, the version of the table, the columns that silver leaves out.
Out: the first of these events, and the error that holds the table; None.

PAD_CHAR_TO_FULL_LENGTH reads a CHAR with all its spaces. TIME_TRUNCATE_FRACTIONAL cuts a fraction of a second that is
rounded otherwise. A virtual column is computed by whoever reads it: the log has the writer's value, and a snapshot or
SELECT another one. A stored column has one value for everybody. MySQL logs the session's mode with BEGIN; a MariaDB
logs it with statements alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
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
_MOMENTS: Final = re.compile(r"\b(datetime|timestamp|time|date)\b", re.IGNORECASE)
_WAY: Final = REFILL.after("take the mode out of such sessions, or leave the column out (tables.columns)")


@dataclass(frozen=True, slots=True)
class _Mode:
    """at, bit: where it stands in a QUERY event. reads: whether a virtual column hangs on it, by all columns behind
    it, itself among them.
    """

    at: int
    bit: int
    reads: Callable[[Column, tuple[Column, ...]], bool]
    what: Callable[[str], str]


def padded(
    index: EventIndex, version: TableVersion, events: npt.NDArray[np.int64], left_out: frozenset[str]
) -> tuple[int, Terminal] | None:
    """events: numbers in the index."""
    shown = [c for c in version.columns if c.generated is Generated.VIRTUAL and c.name not in left_out]
    if index.format.is_mariadb or not shown:
        return None
    for mode in _MODES:
        wrong = _written_under(mode, index, events)  # seldom any: what columns hang on is asked then
        if wrong.any() and (column := _hangs_on(mode, version, shown)) is not None:
            return int(events[np.flatnonzero(wrong)[0]]), UnsupportedValue(mode.what(column.name), remedy=_WAY)
    return None


def _hangs_on(mode: _Mode, version: TableVersion, shown: list[Column]) -> Column | None:
    """The first of these virtual columns that does."""
    return next((column for column in shown if mode.reads(column, reached(version, [column]))), None)


def _reads_chars(_: Column, behind: tuple[Column, ...]) -> bool:
    return any(column.type.startswith("char(") for column in behind)


def _makes_moments(_: Column, behind: tuple[Column, ...]) -> bool:
    """Whether it, or what it reads, is a moment or a time of a virtual column: fractions may be cut in between."""
    made = [column for column in behind if column.generated is Generated.VIRTUAL]
    return any(_MOMENTS.search(f"{column.type} {column.generation_expression}") for column in made)


def _padded(column: str) -> str:
    return (
        f"a session wrote with the mode PAD_CHAR_TO_FULL_LENGTH, and virtual column {column} reads a CHAR column:"
        " the log has the value with all spaces, and SELECT shows another one"
    )


def _cut(column: str) -> str:
    return (
        f"a session wrote with the mode TIME_TRUNCATE_FRACTIONAL, and virtual column {column} makes a moment:"
        " the log has it without the fraction of a second that SELECT rounds"
    )


_MODES: Final = (_Mode(41, 0x80, _reads_chars, _padded), _Mode(42, 0x01, _makes_moments, _cut))


def _written_under(mode: _Mode, index: EventIndex, events: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which of these events a transaction of such a session wrote."""
    queries = np.flatnonzero(index.events[:, K.TYPE] == EventType.QUERY)
    says = _tell(mode, index.data, index.events[queries, K.OFFSET])
    opened = bool(index.opening) and bool(_tell(mode, np.frombuffer(index.opening, np.uint8), np.zeros(1, np.int64))[0])
    if not (opened or says.any()):
        return np.zeros(len(events), np.bool_)
    commits = index.events[events, K.COMMIT_TS]
    wrong = np.isin(commits, index.events[queries[says], K.COMMIT_TS])
    return wrong | ~np.isin(commits, index.events[queries, K.COMMIT_TS]) if opened else wrong


def _tell(mode: _Mode, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Whether the QUERY events at these offsets say the mode."""
    places = offsets[:, np.newaxis] + np.array([_FLAGS_AT, _MODE_AT, mode.at])
    flags, code, modes = data[np.minimum(places, len(data) - 1)].T  # the last event may be shorter
    says: npt.NDArray[np.bool_] = (flags == 0) & (code == 1) & ((modes & mode.bit) != 0)
    return says
