"""The proof in a heartbeat: up to which reading of the server's clock no commit can come any more.

In:  the times of the server's messages; readings of its clock while nothing waited to be read; its
     heartbeats.
Out: the proved reading, or None.

The server sends a heartbeat one period after its last message, if it had nothing to send meanwhile.
A clock reading from before this moment is from before the heartbeat left. Two messages may be
delayed on the way: both arrive late, and close to each other. The reading must lie well within the
period after the last arrival, and an earlier heartbeat proves nothing.

A MySQL asked by GTID skips the reader's own events. It sends heartbeats meanwhile, and one more
directly before the first event for the reader (MySQL, sql/rpl_binlog_sender.cc). None of these has
the place of the message before.
"""

from __future__ import annotations

import math
from typing import Final

from tidegate.config import DumpMode, Flavour

_LOOKS: Final = 8  # at the clock in a period, until a reading is kept: a far server's answer takes its time, too
_SURELY_BEFORE: Final = 0.8  # of a period after the last arrival, in which a heartbeat hasn't left yet


class LogEnd:
    """Whether a heartbeat came at the end of the server's log. position: the stream's place in its file
    at the start.
    """

    def __init__(self, position: int, flavour: Flavour, dump: DumpMode) -> None:
        self._passes_over = flavour is Flavour.MYSQL and dump is DumpMode.GTID
        self._heard: tuple[str, int] | None = None  # the last heartbeat's place that take() asked about
        self._noted: tuple[str, int] | None = None  # the last one's: two that come at once left at once
        self._position = position  # ours then
        self._at_end: bool | None = None

    def note(self, file: str, offset: int, position: int, *, took: bool) -> None:
        """A heartbeat. position: ours at it; took: whether an event has come to us on this connection.

        There the last heartbeat or the last event ended, too; elsewhere the server sends on.
        """
        ends_event = took and position != self._position and position & 0xFFFFFFFF == offset & 0xFFFFFFFF
        self._at_end = not self._passes_over or ends_event or self._heard == (file, offset)
        self._noted = file, offset

    def stand(self, position: int) -> None:
        """Our position after a heartbeat."""
        self._position = position

    def take(self, position: int) -> bool | None:
        """Whether the heartbeat since the last call stands at the end; None without one, or if events came after it."""
        at_end, self._at_end = self._at_end, None
        self._heard = self._noted
        return at_end if position == self._position else None


class Quiet:
    """The times of one connection. period_seconds: of the server's heartbeats; all times are monotonic seconds."""

    def __init__(self, period_seconds: float) -> None:
        self._reach = period_seconds * _SURELY_BEFORE
        self._look_seconds = period_seconds / _LOOKS
        self._since: float | None = None  # the server's last message
        self._clock_ms: int | None = None

    def came(self, now: float) -> None:
        """Something else than a heartbeat."""
        self._since, self._clock_ms = now, None

    def wants_clock(self, now: float) -> bool:
        """Whether a reading of now could be proved: before the first message, and long after one, none can."""
        return self._since is not None and now - self._since <= self._reach

    def wait_seconds(self, now: float) -> float:
        """How long to wait for the next message before the clock is read."""
        return self._look_seconds if self._clock_ms is None and self.wants_clock(now) else math.inf

    def read(self, clock_ms: int, now: float) -> None:
        """The source's clock, Unix milliseconds. now: after it was read, while nothing waited."""
        if self.wants_clock(now):
            self._clock_ms = clock_ms

    def heartbeat(self, now: float, *, at_end: bool) -> int | None:
        """The reading that it proves. at_end: whether it has the place of what the server sent before it."""
        if at_end and self.wants_clock(now):  # it waited on the way, as what came before it did
            return None
        proved = self._clock_ms if at_end and self._since is not None else None
        self._since, self._clock_ms = now, None
        return proved
