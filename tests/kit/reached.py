"""How far capture of a server is, as something that compares.

In:  the position of a CaptureResult.
Out: a Position of its binlog.
"""

from __future__ import annotations

from tidegate.position import Position


def position_of(text: str) -> Position:
    """From "file:offset"."""
    file, _, offset = text.rpartition(":")
    return Position.of(file, int(offset))
