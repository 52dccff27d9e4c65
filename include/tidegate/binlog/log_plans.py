"""Which plan the rows of a binlog file take: what the event itself says, or what a schema script says.

In:  TABLE_MAP bodies.
Out: Chosen plans; notes on what the log doesn't say.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tidegate.binlog.event_index import EventIndex
from tidegate.binlog.inferred_plan import infer_plan
from tidegate.binlog.json_dates import with_raw_dates
from tidegate.binlog.log_rows import Chosen
from tidegate.errors import Terminal


class LogPlans:
    """From the TABLE_MAP alone. note: takes a line for a person. raw_dates: keep zero and impossible dates as text."""

    def __init__(self, note: Callable[[str], None], *, raw_dates: bool) -> None:
        self._note = note
        self._raw_dates = raw_dates
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
        chosen = self._made.get((body, self._mariadb))
        everything = np.arange(len(commit_ts))
        if chosen is None:
            try:
                inferred = infer_plan(body, mariadb=self._mariadb)
            except Terminal as error:
                return [(everything, error)]
            plan = with_raw_dates(inferred.plan) if self._raw_dates else inferred.plan
            chosen = self._made[body, self._mariadb] = Chosen(plan, inferred.guessed)
            name = inferred.plan.table_map.name
            if inferred.blind and name not in self._blind:
                self._blind.add(name)
                self._note(
                    f"{name}: the log says nothing of signedness, character sets and names"
                    " (binlog_row_metadata); integers count as signed, text as UTF-8; --schema FILE.sql gives them"
                )
        return [(everything, chosen)]
