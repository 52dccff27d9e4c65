"""The effect of a table's standing on its snapshot, and the other way round.

In:  standings; where a wave lies.
Out: whether a wave can begin a table, and the fate of open snapshots and waves.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tidegate.standing.standing import Standing
from tidegate.tables import State

PAST_LOST: Final = (
    "its table lost its past after this snapshot was asked for: tidegate rebuild --swap brings that"
    " back, and another tidegate snapshot start gives it up"
)


def came_later(standing: Standing | None, low_ts: int) -> bool:
    """Whether a table waits for something from after a wave's low mark: the wave doesn't have it."""
    return standing is not None and standing.place is not None and standing.place.at_ts > low_ts


def fails(standing: Standing | None, *, keeps_past: bool) -> bool:
    """Whether a snapshot from before the hold fails: it can't bring rows that were lost later, nor a past by other
    rules.
    """
    return standing is not None and (standing.is_blocked or (keeps_past and standing.by_other_rules))


def refuses_read(standing: Standing | None, read_at: datetime) -> bool:
    """Whether to refuse waves that were read up to read_at: since then the table came to wait for rows, or was left,
    and no later window has their marks.
    """
    if standing is None or standing.since is None or not (standing.lacks_rows or standing.state is State.LEFT):
        return False
    return read_at < standing.since


def held_since(standing: Standing | None, opened_at: datetime) -> bool:
    """Whether a table was held after a wave of a snapshot was taken."""
    return (
        standing is not None
        and standing.state is State.HELD
        and standing.since is not None
        and standing.since > opened_at
    )


def loses_past(standing: Standing | None, asked_at: datetime, *, by_itself: bool) -> bool:
    """Whether a snapshot would remove a table's past without a person's word: nobody has asked for
    one since the loss.
    """
    if standing is None or not standing.lacks_past:
        return False
    return by_itself or standing.since is None or asked_at <= standing.since
