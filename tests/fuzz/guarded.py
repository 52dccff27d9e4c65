"""Memory with a fence behind it: a kernel that reads or writes one byte too far ends the process at once.

In:  bytes to be read, or a size to be written.
Out: views whose last byte is the last byte before a page that can't be touched.
"""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import pyarrow as pa

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_PRIVATE, _ANONYMOUS, _NORESERVE = 0x02, 0x20, 0x4000


class Fenced:
    """Size bytes; freed with the object."""

    def __init__(self, size: int) -> None:
        self._whole = -(-max(size, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        protection, flags = mmap.PROT_READ | mmap.PROT_WRITE, _PRIVATE | _ANONYMOUS | _NORESERVE
        start = _LIBC.mmap(None, self._whole + mmap.PAGESIZE, protection, flags, -1, 0)
        if start in (None, ctypes.c_void_p(-1).value):
            raise MemoryError(size)
        self._start = start
        _LIBC.mprotect(start + self._whole, mmap.PAGESIZE, 0)
        self.address = start + self._whole - size
        self.size = size

    def __del__(self) -> None:
        if hasattr(self, "_start"):
            _LIBC.munmap(self._start, self._whole + mmap.PAGESIZE)


def _view(size: int) -> Any:
    room = Fenced(size)
    view: Any = (ctypes.c_ubyte * size).from_address(room.address)
    view.room = room  # lives as long as the view
    return view


def fenced(data: bytes) -> memoryview:
    """A copy of data, behind which nothing can be read."""
    view = _view(len(data))
    ctypes.memmove(view, data, len(data))
    return memoryview(view).cast("B")


def allocate_fenced(size: int, *_: Any, **__: Any) -> pa.Buffer:
    """In place of pyarrow.allocate_buffer."""
    return pa.py_buffer(_view(size))
