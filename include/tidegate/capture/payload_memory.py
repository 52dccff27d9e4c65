"""Memory for payloads, used again once nobody holds its segment.

In:  how many bytes a segment may need.
Out: uint8 arrays, uninitialised, each from a whole page on: the value log's disk takes them without a copy.

A payload lives until bronze has it, so a busy capture needs a few at a time, for ever anew.
Touching fresh memory was a fifth of capture's CPU (page faults); returned memory is warm. An array
comes back by itself: with the last view of it, wherever it was held.
"""

from __future__ import annotations

import weakref
from collections import deque

import numpy as np
import numpy.typing as npt

from tidegate.segments.memory_pages import at_whole_page


class PayloadMemory:
    """Arrays of one size; at most kept_max returned ones wait for their next use."""

    def __init__(self, array_bytes: int, kept_max: int) -> None:
        self._array_bytes = array_bytes
        self._kept: deque[memoryview] = deque(maxlen=kept_max)

    def take(self, count: int) -> npt.NDArray[np.uint8]:
        """At least `count` bytes, whatever is in them. More than an array's size: memory without
        return.
        """
        if count > self._array_bytes:
            return np.empty(count, np.uint8)
        try:
            owner = self._kept.pop()
        except IndexError:
            owner = memoryview(at_whole_page(self._array_bytes).data)
        # What is cut from an array over a memoryview refers to that array: numpy looks for no owner behind it.
        lent = np.frombuffer(owner, np.uint8)
        weakref.finalize(lent, self._kept.append, owner).atexit = False
        return lent
