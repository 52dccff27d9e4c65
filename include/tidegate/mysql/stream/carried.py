"""The facts of earlier segments for a segment that begins inside a transaction.

In:  the walk's arrays as a segment is cut.
Out: the open transaction's FRAME events and its TABLE_MAPs still in force, for the next segment's context; and the
     tables of all its segments, since a later statement may take its changes to them back.
"""

from __future__ import annotations

from tidegate.binlog import transaction_scan as scan
from tidegate.limits import SEGMENT_TABLES_MAX
from tidegate.mysql.stream.event_facts import event_at, map_name
from tidegate.mysql.stream.packet_walk import Workspace
from tidegate.tables import EVERY_TABLE, SegmentFlag


class Carried:
    """Empty between transactions."""

    def __init__(self) -> None:
        self._frames: list[bytes] = []
        self._maps: list[bytes] = []
        self._named: set[str] = set()

    def take(self, space: Workspace, named: set[str], *, is_open: bool) -> None:
        """The facts added by the segment just cut. named: the tables of its maps."""
        state = space.walk[0]
        if not is_open or state["opened_here"]:
            self._frames, self._named = [], set()
        if not is_open or state["statement_ended"]:
            self._maps = []
        if is_open:
            self._named |= named
            self._frames += [event_at(space.payload, int(at)) for at in space.frames[: int(state["frames"])]]
            self._maps += [event_at(space.payload, int(at)) for at in space.maps[: int(state["maps"])]]

    def behind(self, format_description: bytes) -> bytes:
        return b"".join([format_description, *self._frames, *self._maps])

    def tables(self) -> set[str]:
        """Those that are still mapped."""
        return {map_name(event) for event in self._maps}

    def taken_back(self, said: int) -> tuple[SegmentFlag, set[str]]:
        """(flags, tables) of a segment with a statement of this kind (Q_*): it may take earlier changes back."""
        if said == scan.Q_ROLLBACK:
            return SegmentFlag.ROLLED_BACK, set()
        if said != scan.Q_ROLLBACK_TO:
            return SegmentFlag(0), set()
        return SegmentFlag(0), self._named if len(self._named) <= SEGMENT_TABLES_MAX else {EVERY_TABLE}
