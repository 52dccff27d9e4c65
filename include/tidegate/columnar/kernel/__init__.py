"""Compiled kernels all decoders share: bytes in, Arrow buffers out.

In:  bytes and plans, by address. Out: bytes in one arena; counters and error codes in int64 arrays. It must hold: every
length from the data is checked against its event's end before use, and every write goes into room of sufficient size.
Errors are numbers here. Each decoder makes messages of them.

Numba's disk cache checks time and size of one file only. But a kernel's machine code also has what it inlined from
other files: constants of layout.py, functions of memory.py. Code from one half of an update, together with the other
half, could read anywhere. Therefore the cache is in a folder named by a digest of all these sources.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numba

_PACKAGE = Path(__file__).parent.parent.parent
_FOLDERS: tuple[str, ...] = ("binlog/kernel", "columnar/kernel", "tidb/kernel", "upsert/kernel")
# Kernels in other rooms, and files with constants that kernels compile in.
_ELSEWHERE: tuple[str, ...] = (
    "binlog/crc32.py",
    "binlog/transaction_scan.py",
    "columnar/decoded.py",
    "commit_ts.py",
    "compiled.py",
    "limits/formats.py",
    "limits/units.py",
    "merge/net_change.py",
    "mysql/stream/packet_walk.py",
    "snapshot/reading/result/kernel.py",
    "tables/__init__.py",
)


def kernel_sources() -> list[Path]:
    """Every file that has a kernel, or that a kernel may have inlined, in order."""
    files = [path for folder in _FOLDERS for path in (_PACKAGE / folder).glob("*.py")]
    return sorted([*files, *(_PACKAGE / name for name in _ELSEWHERE)])


def sources_digest() -> str:
    """16 hex digits over all kernel_sources()."""
    digest = hashlib.blake2b(digest_size=8)
    for path in kernel_sources():
        digest.update(str(path.relative_to(_PACKAGE)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _choose_cache() -> None:
    """Use NUMBA_CACHE_DIR, or a folder beside the package. In a read-only installation numba
    chooses.
    """
    base = Path(os.environ["NUMBA_CACHE_DIR"]) if os.environ.get("NUMBA_CACHE_DIR") else _PACKAGE / "__pycache__"
    if os.access(base if base.exists() else base.parent, os.W_OK):
        numba.config.CACHE_DIR = str(base / f"tidegate-{sources_digest()}")


_choose_cache()
