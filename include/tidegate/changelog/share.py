"""From which commit_ts on a window's changes go into a changelog, and which earlier changes it lacks. Pure.

In:  where the changelog, silver and the window stand; the last standings of the table.
Out: LogShare.

A changelog that is behind its table may still lack nothing: windows without a change of the table
don't write it. It lacks changes in two cases: silver has more, because the pipeline file didn't ask
for the changelog meanwhile; or the table went on, after a hold, from later than where it had
stopped. A table may also begin anew without a hold, when a snapshot replaces all of its rows. Then
nothing is missing: this window has the changes before the snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tidegate.standing.standing import Standing
from tidegate.tables import State


@dataclass(frozen=True, slots=True)
class Reached:
    """Positions, each a commit_ts up to which all is taken. log: the changelog's; None of a new one.
    silver: its transaction version. window: the low end of the window; table: of the table's share of it.
    """

    log: int | None
    silver: int
    window: int
    table: int


@dataclass(frozen=True, slots=True)
class LogShare:
    """Changes above after_ts are appended. lacks_upto: those above the changelog's end up to there
    aren't in it, or may not be; None: it lacks nothing. was_asked: whether it was asked for then.
    """

    after_ts: int
    lacks_upto: int | None = None
    was_asked: bool = True


def log_share(reached: Reached, standings: Sequence[Standing]) -> LogShare:
    """standings: of the table, in order, the present one last; none of a table that was always active."""
    at = reached.log
    if at is None:
        return LogShare(reached.table, reached.table, was_asked=False)
    known, was_asked = max(at, reached.silver), at >= reached.silver
    if any(max(begin, known) < min(end, reached.table) for begin, end in leaps(standings)):
        return LogShare(reached.table, reached.table, was_asked)
    is_filled = bool(standings) and standings[-1].state is State.SNAPSHOT
    stood = max(reached.window, reached.silver) if is_filled else reached.table
    return LogShare(max(known, min(reached.table, stood)), None if was_asked else reached.silver, was_asked)


def leaps(standings: Sequence[Standing]) -> Iterator[tuple[int, int]]:
    """(where a table on hold or left out stood, where it was said to stand next): it was emptied since, is read anew,
    or its log is gone. The changes between are in no window.
    """
    for before, then in pairwise(standings):
        waits = before.state in (State.HELD, State.LEFT)
        is_lost = before.state is State.RELEASED and not before.source and then.state is State.HELD
        if (waits or is_lost) and before.applied_ts < then.applied_ts:
            yield before.applied_ts, then.applied_ts


def still_counting(standings: Sequence[Standing]) -> set[int]:
    """The numbers of those that the rule may look at again: the present one, and the two of each leap."""
    counting = {len(standings) - 1}
    for then in range(1, len(standings)):
        if any(leaps(standings[then - 1 : then + 1])):
            counting |= {then - 1, then}
    return counting
