"""MariaDB's compressed columns (VARCHAR, TEXT, BLOB ... COMPRESSED), value by value.

In:  a value as it is stored and logged: nothing at all, or a header byte and what it announces.
Out: the bytes written to the column; DecodeError when they contradict the header.

Layout (MariaDB sql/field_comp.cc, sql/field.cc Field_longstr::uncompress): the header's high nibble is the method: 0:
the rest is the value itself; 8: zlib. Then bit 3: a raw deflate stream without zlib's wrapper; the low three bits:
how many bytes hold the length of the value, big-endian, before the stream. An empty value has no header.
"""

from __future__ import annotations

import zlib
from typing import Final

import numpy as np
import pyarrow as pa

from tidegate.errors import DecodeError, UnsupportedValue
from tidegate.limits import INFLATED_BYTES_MAX
from tidegate.remedy import REFILL

_NONE: Final = 0
_ZLIB: Final = 8
_RAW: Final = 8
_REMEDY: Final = REFILL.after("repair the value at the source")  # a release alone would meet it in the log again


def inflate(value: bytes, bytes_max: int) -> bytes:
    """One value. bytes_max: the largest value its column can hold, so a few bytes can't grow
    without bound.
    """
    if not value:
        return b""
    method = value[0] >> 4
    if method == _NONE:
        return value[1:]
    if method != _ZLIB:
        raise DecodeError(f"a compressed value says method {method}, which no server writes", remedy=_REMEDY)
    start = 1 + (value[0] & 7)
    length = int.from_bytes(value[1:start], "big")
    if start > len(value) or length > bytes_max:
        raise DecodeError(f"a compressed value says it has {length} bytes of {bytes_max}", remedy=_REMEDY)
    stream = zlib.decompressobj(-zlib.MAX_WBITS if value[0] & _RAW else zlib.MAX_WBITS)
    try:
        # one byte more than announced: a longer value is noticed
        opened = stream.decompress(value[start:], length + 1)
    except zlib.error as error:
        raise DecodeError(f"a compressed value can't be opened ({error})", remedy=_REMEDY) from None
    if len(opened) != length or not stream.eof:
        raise DecodeError(f"a compressed value doesn't hold the {length} bytes that it announces", remedy=_REMEDY)
    return opened


def inflated(offsets: pa.Buffer, data: pa.Buffer, bytes_max: int) -> tuple[pa.Buffer, pa.Buffer]:
    """Offsets and bytes of a column, with its values decompressed. Raises UnsupportedValue if they
    would not fit in memory.
    """
    ends = np.frombuffer(offsets, np.int32).tolist()
    source = memoryview(data)
    opened = bytearray()
    made = np.zeros(len(ends), np.int32)
    for row in range(len(ends) - 1):
        if ends[row + 1] > ends[row]:
            opened += inflate(bytes(source[ends[row] : ends[row + 1]]), bytes_max)
            if len(opened) > INFLATED_BYTES_MAX:
                raise UnsupportedValue(
                    f"compressed values of one segment hold more than {INFLATED_BYTES_MAX >> 20} MiB",
                    remedy="lower capture.segment_bytes in the pipeline file, then: `tidegate snapshot start`",
                )
        made[row + 1] = len(opened)
    return pa.py_buffer(made), pa.py_buffer(opened)
