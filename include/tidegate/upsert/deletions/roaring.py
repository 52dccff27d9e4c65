"""Positions of dead rows as bytes: Delta's 64-bit Roaring bitmap array.

In:  ascending int64 positions, or bytes. Out: the other.

Layout (delta-io PROTOCOL.md "Deletion Vector Format"): magic 1681511377 u32, little-endian; then a
64-bit bitmap in RoaringFormatSpec's portable form. CRoaring writes and reads it, and checks each
container that it has read.
"""

from __future__ import annotations

from array import array
from typing import Final

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap64

Positions = npt.NDArray[np.int64]

MAGIC: Final = 1681511377
_MAGIC_BYTES: Final = 4


class DamagedBitmap(Exception):  # noqa: N818 - becomes LakeRefused with a place
    """The bytes contradict themselves."""


def encode(positions: Positions) -> bytes:
    """positions: ascending, distinct, at least 0."""
    numbers = array("Q", positions.tobytes())  # a numpy array would be taken number by number
    return MAGIC.to_bytes(_MAGIC_BYTES, "little") + BitMap64(numbers).serialize()


def decode(data: bytes | memoryview) -> Positions:
    """Ascending positions. Raises DamagedBitmap."""
    magic, body = int.from_bytes(data[:_MAGIC_BYTES], "little"), bytes(data[_MAGIC_BYTES:])
    if magic != MAGIC:
        raise DamagedBitmap(f"it starts with {magic}, not {MAGIC}")
    if not body:  # CRoaring would take the address of its first byte
        raise DamagedBitmap("it ends after the magic number")
    try:
        bitmap = BitMap64.deserialize(body)
    except ValueError as error:
        raise DamagedBitmap(str(error)) from None
    # CRoaring takes no notice of bytes after the last container.
    if (taken := len(bitmap.serialize())) != len(body):
        raise DamagedBitmap(f"its containers are {taken} bytes of {len(body)}")
    positions = np.frombuffer(bitmap.to_array(), np.int64)
    if len(positions) and positions[-1] < 0:
        raise DamagedBitmap("a position is beyond 63 bits")
    return positions
