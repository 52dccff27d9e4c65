"""Memory for payloads. It is used again once nobody holds its segment.

In:  how many bytes a segment may need.
Out: uint8 arrays, uninitialised, each at a page boundary: the value log's disk takes them without a
     copy.

A payload lives until bronze has it, so a busy capture always needs a few at a time. Touching fresh
memory took a fifth of capture's CPU (page faults); used memory is warm. An array comes back by
itself, when its last view is gone, wherever that was held.
"""

from __future__ import annotations

import weakref
from collections import deque

import numpy as np
import numpy.typing as npt

from tidegate.segments.memory_pages import at_whole_page


class PayloadMemory:
    """Arrays of one size. At most kept_max returned ones wait for their next use."""

    def __init__(self, array_bytes: int, kept_max: int) -> None:
        self._array_bytes = array_bytes
        self._kept: deque[memoryview] = deque(maxlen=kept_max)

    def take(self, count: int) -> npt.NDArray[np.uint8]:
        """At least `count` bytes, with any content. If `count` is larger than an array, the memory
        doesn't come back.
        """
        if count > self._array_bytes:
            return np.empty(count, np.uint8)
        try:
            owner = self._kept.pop()
        except IndexError:
            owner = memoryview(at_whole_page(self._array_bytes).data)
        # A slice of an array over a memoryview refers to that array: numpy looks for no owner behind the memoryview.
        lent = np.frombuffer(owner, np.uint8)
        weakref.finalize(lent, self._kept.append, owner).atexit = False
        return lent
