"""Compiled kernels: raw events in, Arrow buffers out.

In:  bytes and plans at addresses. Out: bytes in one arena, counters and error codes in int64 arrays. It must hold:
every length from the data is checked against its event's end before use; every write goes to room that was sized for
it. Errors are numbers here and become sentences in batch.py and event_index.py.

Numba keys its cache on disk by one file's time and size alone, though a kernel's machine code holds what it inlined
from other files: constants of layout.py, functions of memory.py. Code compiled from one half of an update and run with
the other could read anywhere. The cache therefore lies in a folder named by a digest of all these sources together.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numba

_PACKAGE = Path(__file__).parent.parent.parent
# Kernels that live with their subject, and constants that kernels take in.
_KERNELS_ELSEWHERE: tuple[str, ...] = ("binlog/transaction_scan.py", "binlog/crc32.py", "mysql/stream/packet_walk.py")
_KERNELS_ELSEWHERE += ("commit_ts.py", "compiled.py", "limits/formats.py", "limits/units.py", "tables.py")
_FOLDERS_ELSEWHERE: tuple[str, ...] = ("upsert/kernel",)


def sources_digest() -> str:
    """16 hex digits of every source that a kernel may have inlined."""
    digest = hashlib.blake2b(digest_size=8)
    folders = (Path(__file__).parent, *(_PACKAGE / name for name in _FOLDERS_ELSEWHERE))
    files = [path for folder in folders for path in folder.glob("*.py")]
    files += [_PACKAGE / name for name in _KERNELS_ELSEWHERE]
    for path in sorted(files):
        digest.update(str(path.relative_to(_PACKAGE)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _choose_cache() -> None:
    """Where NUMBA_CACHE_DIR says, else beside the package; a read-only installation keeps numba's own choice."""
    base = Path(os.environ["NUMBA_CACHE_DIR"]) if os.environ.get("NUMBA_CACHE_DIR") else _PACKAGE / "__pycache__"
    if os.access(base if base.exists() else base.parent, os.W_OK):
        numba.config.CACHE_DIR = str(base / f"tidegate-{sources_digest()}")


_choose_cache()
