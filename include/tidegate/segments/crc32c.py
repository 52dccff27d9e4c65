"""CRC-32C of memory that somebody else owns, without a copy.

In:  bytes or a memoryview.
Out: the checksum the value log and bronze keep.

google_crc32c takes no memoryview, which must be released. It takes an array over the same memory.
"""

from __future__ import annotations

import google_crc32c
import numpy as np


def crc32c(data: bytes | memoryview, before: int = 0) -> int:
    """CRC-32C of data. before: the checksum of the bytes in front of it, to continue from."""
    return int(google_crc32c.extend(before, np.frombuffer(data, np.uint8))) if len(data) else before
