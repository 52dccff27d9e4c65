"""The source's clock, and the moment after which no transaction is dated.

In:  the server's time, and when it was asked; this machine's monotonic seconds since.
Out: the time there now; a ceiling for the commit_ts of the stream.

commit_ts never falls. After one moment in the far future, everything that follows would stay there
until real time has caught up. Two things can give such a moment: a session (SET timestamp changes
the times in MariaDB's events), and a clock that is wrong for a while. Therefore no transaction is dated
after the source's clock. If the clock leaps ahead of the time since its last reading, it is
believed only after some minutes: a clock that was corrected for good is followed then.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from tidegate.binlog import transaction_scan as scan
from tidegate.commit_ts import physical_ms
from tidegate.limits import CLOCK_DOUBT_SECONDS, CLOCK_LEAP_SECONDS_MAX, CLOCK_SLACK_SECONDS, CLOCK_TOLD_SECONDS
from tidegate.segments.segment import Segment

log = logging.getLogger(__name__)


class SourceClock:
    """The source's clock, for one run over several connections. Before the first answer, it is this
    machine's clock.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        # Its milliseconds minus our monotonic ones: as it was read last, and the most that was believed.
        self._offset_ms = self._most_ms = (time.time() - time.monotonic()) * 1000
        self._doubted_since: float | None = None
        self.ahead_seconds = 0.0  # of this machine's clock, as it was read last
        self.lowered = 0  # segments with transactions that say that they are later
        self._reported, self._reported_at = 0, time.monotonic() - CLOCK_TOLD_SECONDS

    @property
    def now_ms(self) -> float:
        """The expected time of the source's clock now. Jumps of this machine's own clock don't move it."""
        return self._offset_ms + time.monotonic() * 1000

    @property
    def doubted(self) -> bool:
        return self._doubted_since is not None

    def take(self, said_ms: int, asked_at: float) -> int:
        """The server's word when it was asked at asked_at (monotonic); how much of it is believed."""
        self.ahead_seconds = said_ms / 1000 - time.time()
        offset_ms = said_ms - asked_at * 1000
        leap_seconds = (offset_ms - self._most_ms) / 1000
        if leap_seconds > CLOCK_LEAP_SECONDS_MAX and self._doubt(said_ms, leap_seconds, asked_at):
            return int(self.now_ms)
        self._offset_ms, self._doubted_since = offset_ms, None
        self._most_ms = max(self._most_ms, offset_ms)
        return said_ms

    def note(self, segments: Iterable[Segment]) -> None:
        """Take the segments just cut. If commits were dated earlier than they say, log it, at most once a minute."""
        self.lowered += sum(segment.ceiling_ms > 0 for segment in segments)
        if self.lowered > self._reported and time.monotonic() - self._reported_at >= CLOCK_TOLD_SECONDS:
            self._reported, self._reported_at = self.lowered, time.monotonic()
            log.warning(
                "%s: transactions have times after the server's clock (SET timestamp in a session, or its clock was"
                " set): they get the time when they came; %d segments so far",
                self._where,
                self.lowered,
            )

    def _doubt(self, said_ms: int, leap_seconds: float, asked_at: float) -> bool:
        reading = f"the clock of {self._where} says {datetime.fromtimestamp(said_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
        if self._doubted_since is None:
            self._doubted_since = asked_at
            log.warning(
                "%s, %.0f s later than it should be: commits are dated without it until it has said so for %d s",
                reading,
                leap_seconds,
                CLOCK_DOUBT_SECONDS,
            )
        if asked_at - self._doubted_since < CLOCK_DOUBT_SECONDS:
            return True
        log.warning("%s, and stays so: commits are dated by it from now on", reading)
        return False


class Ceiling:
    """The latest moment at which a transaction is dated, in a state of transaction_scan.

    It rises with the clock, but is never below the dates given already: decode finds a whole
    segment under one ceiling. If it changed a commit_ts in a segment, it stands still there, and
    the segment's row has it: decode must find the same. Such a segment ends with the open
    transaction, and its continuation has the same ceiling.
    """

    def __init__(self, state: Any, held_ms: int) -> None:
        """held_ms: of the segment to be walked again, 0 if it has none
        (BinlogPlace.replay_ceiling_ms).
        """
        self._state = state
        self._live_ms = 0
        self._held_ms = held_ms
        state[scan.CEILING] = held_ms

    @property
    def row_ms(self) -> int:
        """As it stands in the segment's row; 0 when it changed nothing in there."""
        return self._held_ms or (int(self._state[scan.CEILING]) if self._state[scan.LOWERED] else 0)

    def rise(self, clock_ms: float, *, replaying: bool) -> None:
        """The source's clock now. A transaction that is walked again keeps its date."""
        self._live_ms = int(clock_ms) + 1000 * CLOCK_SLACK_SECONDS
        if not self.row_ms and not replaying:
            self._state[scan.CEILING] = self._now_ms

    def begin(self, *, is_open: bool, replaying: bool) -> None:
        """Before the counts of a segment are set to nothing for the next."""
        self._held_ms = self.row_ms if is_open or replaying else 0
        self._state[scan.CEILING] = self._held_ms or (0 if replaying else self._now_ms)

    @property
    def _now_ms(self) -> int:
        return max(self._live_ms, physical_ms(int(self._state[scan.PREVIOUS]))) if self._live_ms else 0
