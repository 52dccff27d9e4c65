"""CRC-32C of memory that belongs to somebody else, without a copy.

In:  bytes or a memoryview.
Out: the checksum that the value log and bronze keep.

google_crc32c takes no memoryview (it must be released), but takes an array over the same memory.
"""

from __future__ import annotations

import google_crc32c
import numpy as np


def crc32c(data: bytes | memoryview, before: int = 0) -> int:
    """CRC-32C of data, continued from the checksum of what stands before it."""
    return int(google_crc32c.extend(before, np.frombuffer(data, np.uint8))) if len(data) else before
