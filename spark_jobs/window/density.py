"""The changes per byte of bronze in earlier windows of an application: they bound the bytes of the
next one.

In:  bytes and changes of decoded windows of all tables; row images of those below foreign keys.
Out: the most bytes of the next one.

The positional writer holds a record per change in memory, and segments don't say how many changes
they hold. A window of narrow rows as large as one of wide rows would have too many: MERGE would
write it, at ten times the cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tidegate import limits
from tidegate.upsert.cost import KEY_RECORD_BYTES

# Bytes of a row event with an integer key and a few small columns. Rows of two INTs have 9 bytes: the first window with
# many of them is given back, and says so.
_NARROW_CHANGE_BYTES: Final = 24
# Smaller windows tell little about a backlog. They count only if no larger window fits.
_TELLING_BYTES: Final = 16 << 20
# Share of the earlier density that stays if a window is less dense.
_KEPT: Final = 0.7
# Share of the memory to plan with: the next window may be a little denser than the last one.
_TAKEN: Final = 0.875
# One change per gigabyte bounds no window. Without this, repeated multiplication by 0.7 would end
# at 0.
_FEWEST_PER_BYTE: Final = 1 / (1 << 30)


class ChangeDensity:
    """Until a window has been seen, the narrowest rows are assumed."""

    def __init__(self) -> None:
        self._changes_per_byte = 1 / _NARROW_CHANGE_BYTES

    @property
    def changes_max(self) -> int:
        """The most changes that a window may hold."""
        return limits.UPSERT_KEYS_BYTES_MAX // KEY_RECORD_BYTES

    def note(self, payload_bytes: int, changes: int) -> None:
        """A window of so many bytes held so many changes."""
        if payload_bytes >= min(_TELLING_BYTES, self._bytes_that_fit() // 2) or changes > self.changes_max:
            held = max(_KEPT * self._changes_per_byte, _FEWEST_PER_BYTE)
            self._changes_per_byte = max(changes / max(payload_bytes, 1), held)

    def bytes_max(self, window_bytes: int) -> int:
        """The most bytes of a window, at most window_bytes."""
        return min(window_bytes, int(_TAKEN * self._bytes_that_fit()))

    def _bytes_that_fit(self) -> int:
        return int(self.changes_max / self._changes_per_byte)


class DensityBelow(ChangeDensity):
    """The density of windows below the cut: a table that catches up may hold more changes per byte
    than others.
    """


class FollowedDensity(ChangeDensity):
    """Row images below foreign keys. If such a key acts, all of a window's images are in memory:
    both of an update, and every one of each key.
    """

    @property
    def changes_max(self) -> int:
        """The most changes that a window may hold."""
        return limits.CASCADE_LOGGED_ROWS_MAX


class FollowedBelow(FollowedDensity):
    """The same for windows below the cut."""


@dataclass(frozen=True, slots=True)
class ImagesBelow:
    """Row images below foreign keys, in a part of a window; nbytes: of them all, decoded."""

    count: int = 0
    nbytes: int = 0

    def __add__(self, more: ImagesBelow) -> ImagesBelow:
        return ImagesBelow(self.count + more.count, self.nbytes + more.nbytes)

    @property
    def changes(self) -> int:
        """Number of images, counted by memory: a wide row counts as several."""
        return max(self.count, self.nbytes * limits.CASCADE_LOGGED_ROWS_MAX // limits.CASCADE_BYTES_MAX)
