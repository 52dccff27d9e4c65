"""The plan of rows of a binlog file: from the event itself, or from a schema script.

In:  TABLE_MAP bodies.
Out: Chosen plans; notes on what the log doesn't say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from tidegate.binlog.index.event_index import EventIndex
from tidegate.binlog.rows.decode_plan import Plan
from tidegate.columnar.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.errors import Terminal
from tidegate.log_files.as_json.column import ShownJson
from tidegate.log_files.as_json.dates import raw_date, with_raw_dates
from tidegate.log_files.inferred_plan import infer_plan
from tidegate.log_files.rows import Chosen


class ShownZeroDates(StrEnum):
    """How lines show zero and impossible dates, in a key, too: lines aren't merged by keys."""

    NULL = "null"
    TEXT = "text"
    ERROR = "error"


class LogPlans:
    """From the TABLE_MAP alone. note: takes a line for a person."""

    def __init__(self, note: Callable[[str], None], zero_dates: ShownZeroDates = ShownZeroDates.NULL) -> None:
        self._note = note
        self._zero_dates = zero_dates
        self._made: dict[tuple[bytes, bool], Chosen] = {}
        self._mariadb = False
        self._blind: set[str] = set()

    def follow(self, index: EventIndex, statements: list[int]) -> None:  # noqa: ARG002 - as Plans says
        """The log's own DDL names columns only where a schema was given."""
        self._mariadb = index.format.is_mariadb

    def choose(
        self, body: bytes, commit_ts: npt.NDArray[np.int64]
    ) -> list[tuple[npt.NDArray[np.int64], Chosen | Terminal]]:
        """One plan for all of them."""
        everything = np.arange(len(commit_ts))
        chosen = self._made.get((body, self._mariadb))
        if chosen is None:
            try:
                inferred = infer_plan(body, mariadb=self._mariadb)
            except Terminal as error:
                return [(everything, error)]
            chosen = self._made[body, self._mariadb] = as_shown(inferred.plan, self._zero_dates, inferred.guessed)
            name = inferred.plan.table_map.name
            if inferred.blind and name not in self._blind:
                self._blind.add(name)
                self._note(
                    f"{name}: signedness, character sets and names aren't in the log (binlog_row_metadata);"
                    " integers count as signed, text as UTF-8; --schema FILE.sql gives them"
                )
        return [(everything, chosen)]


def as_shown(plan: Plan, zero_dates: ShownZeroDates, guessed: frozenset[int] = frozenset()) -> Chosen:
    """A plan with the policy for zero dates."""
    shown = tuple(ShownJson(column, raw_date(plan, i), i in guessed) for i, column in enumerate(plan.columns))
    words = plan.words.copy().reshape(-1, L.COLUMN_WORDS)
    words[:, L.DATES] = zero_dates is ShownZeroDates.ERROR
    words.setflags(write=False)
    plan = replace(plan, words=words.reshape(-1))
    return Chosen(with_raw_dates(plan) if zero_dates is ShownZeroDates.TEXT else plan, shown)
