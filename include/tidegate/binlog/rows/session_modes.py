"""Rows for which a session's mode gave virtual columns other values than SELECT shows.

In:  an index, rows events of a table in it, the version of the table, the columns that silver
     lacks.
Out: the first of these events, and the error that holds the table; None without one.

A virtual column is computed by its reader. The log has the writer's value; a snapshot or a SELECT
may compute another one. (A stored column has one value for everybody.) PAD_CHAR_TO_FULL_LENGTH
reads a CHAR with all its spaces. TIME_TRUNCATE_FRACTIONAL cuts a fraction of a second that is
otherwise rounded. ALLOW_INVALID_DATES, NO_ZERO_DATE and NO_ZERO_IN_DATE decide which texts are
dates (a strict session gets an error for other texts). NO_BACKSLASH_ESCAPES decides what LIKE takes
for an escape. MySQL logs the session's mode with BEGIN; MariaDB logs it only with statements.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidegate.binlog.format.events import EventType
from tidegate.binlog.index.event_index import EventIndex
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.errors import Terminal, UnsupportedValue
from tidegate.remedy import REFILL
from tidegate.schema.ddl.tokens import NO_BACKSLASH_ESCAPES, PAD_CHAR_TO_FULL_LENGTH
from tidegate.schema.follow.computed import reached
from tidegate.schema.model.columns import Column, Generated, TableVersion

# In MySQL's QUERY event two status variables come first: the flags (code 0) and the mode (code 1).
_FLAGS_AT: Final = 32
_MODE_AT: Final = 37
_MODES_AT: Final = range(38, 46)
_STRICT: Final = 3 << 21  # STRICT_TRANS_TABLES, STRICT_ALL_TABLES
_NO_ZERO: Final = 3 << 23  # NO_ZERO_IN_DATE, NO_ZERO_DATE
_INVALID_DATES: Final = 1 << 25
_TRUNCATE: Final = 1 << 32
_MOMENTS: Final = re.compile(r"\b(datetime|timestamp|time|date)\b", re.IGNORECASE)
# Types, casts, and functions that make a date from a text.
_DATES: Final = re.compile(
    r"\b(\w*date\w*|\w*day\w*|timestamp\w*|year\w*|month\w*|week\w*|quarter|extract|unix_timestamp)\b",
    re.IGNORECASE,
)
_LIKES: Final = re.compile(r"\b(like|json_search)\b", re.IGNORECASE)
_WAY: Final = REFILL.after("take the mode out of such sessions, or leave the column out (tables.columns)")


@dataclass(frozen=True, slots=True)
class _Mode:
    """bits: the session has one of them, and none of `unless`. reads: whether a virtual column
    depends on the mode, judged by all columns it is computed from, itself included. what: the
    error's text, for a column's name.
    """

    bits: int
    reads: Callable[[tuple[Column, ...]], bool]
    what: Callable[[str], str]
    unless: int = 0


def written_otherwise(
    index: EventIndex, version: TableVersion, events: npt.NDArray[np.int64], left_out: frozenset[str]
) -> tuple[int, Terminal] | None:
    """events: numbers in the index. left_out: silver's names."""
    shown = [c for c in version.columns if c.generated is Generated.VIRTUAL and c.silver not in left_out]
    if index.format.is_mariadb or not shown:
        return None
    said, commits = _said_modes(index), index.events[events, K.COMMIT_TS]
    for mode in _MODES:
        wrong = _written_under(mode, said, commits)  # seldom any, so the columns are examined only then
        if wrong.any() and (column := _hangs_on(mode, version, shown)) is not None:
            return int(events[np.flatnonzero(wrong)[0]]), UnsupportedValue(mode.what(column.name), remedy=_WAY)
    return None


def _hangs_on(mode: _Mode, version: TableVersion, shown: list[Column]) -> Column | None:
    """The first of these virtual columns that depends on the mode."""
    return next((column for column in shown if mode.reads(reached(version, [column]))), None)


def _reads_chars(behind: tuple[Column, ...]) -> bool:
    return any(column.type.startswith("char(") for column in behind)


def _has(pattern: re.Pattern[str], behind: tuple[Column, ...]) -> bool:
    """Whether one of these virtual columns has such a type, or an expression with such a word."""
    for column in behind:
        is_made = column.generated is Generated.VIRTUAL
        if is_made and pattern.search(f"{column.type} {column.generation_expression}"):
            return True
    return False


def _dates_of_texts(behind: tuple[Column, ...]) -> bool:
    """Whether a date may be made from a text. A column of dates has no value the mode would refuse."""
    read = [column for column in behind if column.generated is not Generated.VIRTUAL]
    return _has(_DATES, behind) and not all(column.type.startswith(("date", "time", "year")) for column in read)


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


def _dated(column: str) -> str:
    return (
        f"a session wrote with a mode of dates (ALLOW_INVALID_DATES, NO_ZERO_DATE, NO_ZERO_IN_DATE), and virtual column"
        f" {column} makes a date: the log may have another one than SELECT shows"
    )


def _matched(column: str) -> str:
    return (
        f"a session wrote with the mode NO_BACKSLASH_ESCAPES, and virtual column {column} has a LIKE: the log may have"
        " another answer than SELECT shows"
    )


_MODES: Final = (
    _Mode(PAD_CHAR_TO_FULL_LENGTH, _reads_chars, _padded),
    _Mode(_TRUNCATE, partial(_has, _MOMENTS), _cut),
    _Mode(_INVALID_DATES, partial(_has, _DATES), _dated),
    _Mode(_NO_ZERO, _dates_of_texts, _dated, unless=_STRICT),
    _Mode(NO_BACKSLASH_ESCAPES, partial(_has, _LIKES), _matched),
)


class _SaidModes(NamedTuple):
    """commits, modes: of each QUERY event. opened: the mode of the transaction open at the start; 0 without one."""

    commits: npt.NDArray[np.int64]
    modes: npt.NDArray[np.int64]
    opened: int


def _said_modes(index: EventIndex) -> _SaidModes:
    queries = index.events[index.events[:, K.TYPE] == EventType.QUERY]
    opened = 0
    if index.opening:
        opened = int(_modes_at(np.frombuffer(index.opening, np.uint8), np.zeros(1, np.int64))[0])
    return _SaidModes(queries[:, K.COMMIT_TS], _modes_at(index.data, queries[:, K.OFFSET]), opened)


def _written_under(mode: _Mode, said: _SaidModes, commits: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which of these commits were made by a session with such a mode."""
    wrong = np.isin(commits, said.commits[_has_mode(mode, said.modes)])
    return wrong | ~np.isin(commits, said.commits) if _has_mode(mode, np.array([said.opened]))[0] else wrong


def _has_mode(mode: _Mode, modes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    has: npt.NDArray[np.bool_] = ((modes & mode.bits) != 0) & ((modes & mode.unless) == 0)
    return has


def _modes_at(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The modes in the QUERY events at these offsets; 0 if an event has none."""
    places = offsets[:, np.newaxis] + np.array([_FLAGS_AT, _MODE_AT, *_MODES_AT])
    cells = data[np.minimum(places, len(data) - 1)]  # the last event may be shorter
    modes = np.ascontiguousarray(cells[:, 2:]).view("<i8")[:, 0]
    return np.where((cells[:, 0] == 0) & (cells[:, 1] == 1), modes, 0)
