"""A disk of its own for bronze, which can be full for real.

In:  a folder; the right to mount a tmpfs there.
Out: Disk, a context manager. Without that right it says so, the folder lies where the others do, and mounted is False.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

_BYTES = 4 << 30
_TRIES = 20


class Disk:
    """mounted: whether full() can be had."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mounted = False

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True)
        done = _mount("-t", "tmpfs", "-o", f"size={_BYTES}", "tmpfs", str(self.folder))
        self.mounted = done.returncode == 0
        if not self.mounted:
            print(
                f"no tmpfs ({done.stderr.strip()}): a full disk is one that capture's own write claims",
                file=sys.stderr,
                flush=True,
            )
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if not self.mounted:
            return
        kept = self.folder.with_name("bronze-kept")
        if kind is not None:  # to be looked at
            shutil.copytree(self.folder, kept)
        subprocess.run(["umount", "-l", str(self.folder)], check=True)
        if kind is not None:
            self.folder.rmdir()
            kept.rename(self.folder)

    @contextmanager
    def full(self) -> Iterator[None]:
        """Nothing can be written as long as the block lasts: the disk is as large as what is on it."""
        for _ in range(_TRIES):  # capture may write in between
            found = os.statvfs(self.folder)
            used = (found.f_blocks - found.f_bfree) * found.f_frsize
            if self._resize(used):
                break
        else:
            raise OSError(f"{self.folder} can't be made full")
        try:
            yield
        finally:
            if not self._resize(_BYTES):
                raise OSError(f"{self.folder} can't be given room again")

    def _resize(self, size: int) -> bool:
        return _mount("-o", f"remount,size={size}", str(self.folder)).returncode == 0


def _mount(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
