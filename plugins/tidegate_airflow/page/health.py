"""A pipeline's state in one word, and why.

In:  a PageView.
Out: Health; the words are the page's and the JSON's.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from tidegate.limits import PAGE_BEHIND_SECONDS
from tidegate.tables import State
from tidegate.text_layout import age_text, counted

if TYPE_CHECKING:
    from tidegate_airflow.page.reading import PageView


class Health(StrEnum):
    """From the worst to the best; the first that is so counts."""

    UNREADABLE = "unreadable"
    AHEAD = "stopped"
    EMPTY = "not started"
    BEHIND = "behind"
    WAITING = "tables wait"
    CURRENT = "current"

    @property
    def is_good(self) -> bool:
        return self is Health.CURRENT


def health(view: PageView) -> Health:
    """Of the whole pipeline."""
    if view.standing is None:
        return Health.UNREADABLE
    if view.standing.ahead:
        return Health.AHEAD
    if not view.standing.cut_ts:
        return Health.EMPTY
    if (view.standing.lag_seconds or 0) > PAGE_BEHIND_SECONDS or view.standing.left_behind:
        return Health.BEHIND
    if any(table.state.waits or table.state is State.SNAPSHOT for table in view.standing.tables):
        return Health.WAITING
    return Health.CURRENT


def why(view: PageView) -> str:
    """One sentence for a person."""
    if view.standing is None:
        return f"The lake can't be read: {view.error}"
    stands, state = view.standing, health(view)
    late = [source.source for source in stands.left_behind]
    waiting = sum(table.state.waits for table in stands.tables)
    filled = sum(table.state is State.SNAPSHOT for table in stands.tables)
    waits = [
        *([f"{counted(waiting, 'table', 'tables')} of {len(stands.tables):,} wait"] if waiting else []),
        *([f"{counted(filled, 'table lacks', 'tables lack')} rows until a snapshot ends"] if filled else []),
    ]
    aside = f" {'; '.join(waits)}." if waits else ""
    if state is Health.AHEAD:
        return "The cut is in the future. Apply goes no further, and its log says why."
    if state is Health.EMPTY:
        return "Nothing is applied yet."
    if late:
        return f"The cut goes on without {', '.join(late)}; the tables of these sources wait.{aside}"
    if state is Health.BEHIND:
        return f"Silver is {age_text(stands.lag_seconds)} behind the sources.{aside}"
    lead = "Nothing is missing" if stands.nothing_missing else f"Silver is {age_text(stands.lag_seconds)} behind"
    return f"{lead}.{aside}"
