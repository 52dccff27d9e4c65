"""An open file of the value log, to append to. Large payloads bypass the kernel's page cache.

In:  the parts of a record, in order.
Out: bytes at the file's end; they are durable after sync().

The kernel would copy written data into pages of its own, and free these when the file is deleted: a
sixth of capture's CPU. A payload that begins at a page boundary, in memory and in the file, goes
directly to the disk (O_DIRECT). The head before it and its last bytes go through the cache, in
pages no direct write touches. If a file system has no direct writes, everything goes through the
cache.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from tidegate.limits import VALUE_LOG_DIRECT_BYTES_MIN
from tidegate.segments.memory_pages import PAGE_BYTES

Bytes: TypeAlias = bytes | memoryview

log = logging.getLogger(__name__)

_O_DIRECT: Final = getattr(os, "O_DIRECT", 0)  # Linux has it


class Appender:
    """Two descriptors of one file. Each call raises OSError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("ab", buffering=0)
        self._direct = _opened_direct(path)

    def close(self) -> None:
        self._file.close()
        self._end_direct()

    def goes_direct(self, payload: Bytes) -> bool:
        """Whether a payload is large enough to be written directly."""
        if self._direct is None or len(payload) < VALUE_LOG_DIRECT_BYTES_MIN:
            return False
        return int(np.frombuffer(payload, np.uint8).ctypes.data) % PAGE_BYTES == 0

    def write(self, parts: Sequence[Bytes], offset: int) -> None:
        """Append parts. offset: the file's size."""
        *head, payload = parts
        at = offset + sum(map(len, head))
        if at % PAGE_BYTES or not self.goes_direct(payload):
            self._through_cache(parts)
            return
        self._through_cache(head)
        self._through_cache([memoryview(payload)[self._past_cache(payload, at) :]])

    def sync(self) -> None:
        """Make all written durable (fdatasync)."""
        os.fdatasync(self._file.fileno())

    def cut_off(self, size: int) -> None:
        """Cut the file to a size."""
        os.ftruncate(self._file.fileno(), size)

    def _past_cache(self, payload: Bytes, at: int) -> int:
        """Write the whole pages of a payload directly. Returns how many of its bytes were written."""
        assert self._direct is not None
        whole = memoryview(payload)[: len(payload) // PAGE_BYTES * PAGE_BYTES]
        try:
            return os.pwrite(self._direct, whole, at)
        except OSError as error:
            log.warning("%s: written through the page cache from here on: %s", self._path, error.strerror)
            self._end_direct()
            return 0

    def _through_cache(self, parts: Sequence[Bytes]) -> None:
        """Call writev until everything is written. After a short write it continues where that
        stopped.
        """
        waiting = [memoryview(part) for part in parts if len(part)]
        while waiting:
            written = os.writev(self._file.fileno(), waiting)
            while waiting and written >= len(waiting[0]):
                written -= len(waiting.pop(0))
            if written:
                waiting[0] = waiting[0][written:]

    def _end_direct(self) -> None:
        if self._direct is not None:
            os.close(self._direct)
            self._direct = None


def _opened_direct(path: Path) -> int | None:
    if not _O_DIRECT:
        return None
    try:
        return os.open(path, os.O_WRONLY | os.O_CLOEXEC | _O_DIRECT)
    except OSError:  # tmpfs, some network and user-space file systems
        return None
