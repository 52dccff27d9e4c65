"""What a segment that begins inside a transaction needs of the segments before it.

In:  the walk's arrays as a segment is cut.
Out: the open transaction's FRAME events and its TABLE_MAPs that are still in force, for the next segment's context.
"""

from __future__ import annotations

from tidegate.capture.notable import event_at, map_name
from tidegate.wire.packet_walk import Workspace


class Carried:
    """Empty between transactions."""

    def __init__(self) -> None:
        self._frames: list[bytes] = []
        self._maps: list[bytes] = []

    def take(self, space: Workspace, *, is_open: bool) -> None:
        """What the segment that was just cut adds."""
        state = space.walk[0]
        if not is_open or state["opened_here"]:
            self._frames = []
        if not is_open or state["statement_ended"]:
            self._maps = []
        if is_open:
            self._frames += [event_at(space.payload, int(at)) for at in space.frames[: int(state["frames"])]]
            self._maps += [event_at(space.payload, int(at)) for at in space.maps[: int(state["maps"])]]

    def behind(self, format_description: bytes) -> bytes:
        return b"".join([format_description, *self._frames, *self._maps])

    def tables(self) -> set[str]:
        return {map_name(event) for event in self._maps}
