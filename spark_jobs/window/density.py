"""How much memory a byte of bronze takes, as an application has seen: it bounds a window.

In:  bytes and changes of decoded windows; what was held for foreign keys that act below the log.
Out: the most bytes of the next one.

The positional writer holds a record per change in memory, and segments don't say how many changes
they hold. A window of narrow rows as large as one of wide rows would have too many: MERGE would
write it, at ten times the cost.
"""

from __future__ import annotations

from typing import Final

from tidegate import limits
from tidegate.upsert.cost import KEY_RECORD_BYTES

# A row event of a number as its key and a few small columns. Rows of two INTs have 9 bytes: the first window with many
# of them is given back, and says so.
_NARROW_CHANGE_BYTES: Final = 24
# Windows of less say little of what a backlog holds, unless larger ones can't come.
_TELLING_BYTES: Final = 16 << 20
# Of what earlier windows held, when one is less dense.
_KEPT: Final = 0.7
# The next window may hold a little more than the last one: its share of the memory.
_TAKEN: Final = 0.875
# A share of the room that says something of a small window, too.
_MUCH: Final = 0.25


class ChangeDensity:
    """As dense as the narrowest rows until a window says otherwise."""

    def __init__(self) -> None:
        self._changes_per_byte = 1 / _NARROW_CHANGE_BYTES

    def note(self, payload_bytes: int, changes: int) -> None:
        """A window of so many bytes held so many changes."""
        if payload_bytes >= min(_TELLING_BYTES, self._bytes_that_fit() // 2) or changes > _changes_max():
            self._changes_per_byte = max(changes / max(payload_bytes, 1), _KEPT * self._changes_per_byte)

    def bytes_max(self, window_bytes: int) -> int:
        """The most bytes of a window, at most window_bytes."""
        return min(window_bytes, int(_TAKEN * self._bytes_that_fit()))

    def _bytes_that_fit(self) -> int:
        return int(_changes_max() / self._changes_per_byte)


class DensityBelow(ChangeDensity):
    """Windows below the cut have their own: a table catching up may hold more changes per byte than
    others do.
    """


class FollowedDensity:
    """Rows that foreign keys reach are held, too: a window with too many of them is begun anew, half as large."""

    def __init__(self) -> None:
        self._per_byte = 0.0  # of the room for them
        self._failed: tuple[int, int] | None = None

    def note(self, payload_bytes: int, share: float) -> None:
        """A window of so many bytes took this share of the room."""
        if payload_bytes >= min(_TELLING_BYTES, self.bytes_max(2 * _TELLING_BYTES) // 2) or share > _MUCH:
            self._per_byte = max(share / max(payload_bytes, 1), _KEPT * self._per_byte)

    def may_narrow(self, low_ts: int, cut_ts: int) -> bool:
        """Whether a window with too many of them isn't the same as before."""
        return self._failed is None or self._failed[0] != low_ts or self._failed[1] > cut_ts

    def narrow(self, low_ts: int, cut_ts: int, payload_bytes: int) -> None:
        """There was no room for the rows of a window of so many bytes."""
        self._failed = low_ts, cut_ts
        self._per_byte = max(self._per_byte, _TAKEN * 2 / max(payload_bytes, 1))

    def bytes_max(self, window_bytes: int) -> int:
        """The most bytes of a window, at most window_bytes."""
        return min(window_bytes, int(_TAKEN / self._per_byte)) if self._per_byte else window_bytes


class FollowedBelow(FollowedDensity):
    """The same for windows below the cut."""


def _changes_max() -> int:
    return limits.UPSERT_KEYS_BYTES_MAX // KEY_RECORD_BYTES
