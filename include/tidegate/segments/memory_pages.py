"""Memory that begins at a page boundary: a disk takes it without a copy.

In:  a size in bytes.
Out: uint8 arrays, uninitialised.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

PAGE_BYTES: Final = 4096  # the largest alignment that disks and file systems ask for


def at_whole_page(count: int) -> npt.NDArray[np.uint8]:
    """An array of so many bytes, at a page boundary."""
    memory = np.empty(count + PAGE_BYTES, np.uint8)
    first = -int(memory.ctypes.data) % PAGE_BYTES
    return memory[first : first + count]
