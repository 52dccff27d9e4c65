"""The facts that a rule may ask about a table.

In:  values, and callables that read silver's log, schema_history or control tables when they are called.
Out: Facts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Facts:
    """About one logical table, as the application knows it.

    cut_ts: the newest published cut. applied: all at or below it is in silver. written: the same, by
    silver alone. reached: the newest commit_ts in silver; perhaps of a statement, and the rows
    after it aren't written. mark: as applied, by control tables alone. position: up to where silver
    has all of a source. late: the sources that feed the table and are behind the cut. feeds: all
    sources that do. dropped: whether no physical table is left at a commit_ts. filled: the snapshot
    that emptied it and hasn't ended, with its low mark, unless a statement up to a commit_ts has
    emptied it since; has_silver: whether silver has a table of this name.
    """

    name: str
    cut_ts: int
    applied: Callable[[], int]
    written: Callable[[], int]
    reached: Callable[[], int]
    mark: Callable[[], int]
    position: Callable[[str], int]
    late: Callable[[], Collection[str]]
    feeds: Callable[[], Collection[str]]
    dropped: Callable[[int], bool]
    filled: Callable[[int], tuple[str, int] | None]
    has_silver: Callable[[], bool]
