"""A pipeline's state in one word, and why.

In:  a Standing.
Out: Health and a sentence, for the page in Airflow, its JSON and `tidegate top`.
"""

from __future__ import annotations

from enum import StrEnum

from tidegate.capture.standing import CaptureStanding
from tidegate.limits import BEHIND_SECONDS
from tidegate.tables import State
from tidegate.text_layout import age_text, counted


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


def health(stands: CaptureStanding | None) -> Health:
    """Of a whole pipeline; None: its lake can't be read."""
    if stands is None:
        return Health.UNREADABLE
    if stands.ahead:
        return Health.AHEAD
    if not stands.cut_ts:
        return Health.EMPTY
    if (stands.lag_seconds or 0) > BEHIND_SECONDS or stands.left_behind:
        return Health.BEHIND
    if any(table.state.waits or table.state is State.SNAPSHOT for table in stands.tables):
        return Health.WAITING
    return Health.CURRENT


def why(stands: CaptureStanding) -> str:
    """A sentence or two for a person."""
    late = [source.source for source in stands.left_behind]
    waiting = sum(table.state.waits for table in stands.tables)
    filled = sum(table.state is State.SNAPSHOT for table in stands.tables)
    waits = [
        *(
            [f"{waiting:,} of {counted(len(stands.tables), 'table', 'tables')} wait{'s' * (waiting == 1)}"]
            if waiting
            else []
        ),
        *([f"{counted(filled, 'table lacks', 'tables lack')} rows until a snapshot ends"] if filled else []),
    ]
    aside = f" {'; '.join(waits)}." if waits else ""
    match health(stands):
        case Health.AHEAD:
            return "The cut is in the future. Apply goes no further, and its log says why."
        case Health.EMPTY:
            return "Nothing is applied yet."
        case _ if late:
            return f"The cut goes on without {', '.join(late)}; the tables of these sources wait.{aside}"
        case _ if stands.nothing_missing:
            return f"Nothing is missing.{aside}"
        case _:
            return f"Silver is {age_text(stands.lag_seconds)} behind.{aside}"
