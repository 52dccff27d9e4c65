"""Whether a pipeline file has come to say something else than when a long run began.

In:  the file; the pipeline that was read of it.
Out: has_changed(), cheap enough to be asked all the time. A vanished file, or one that is no pipeline any more, has
     not: the run goes on with its knowledge, and the next start says it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tidegate.config import Pipeline
from tidegate.errors import TidegateError
from tidegate.pipelines.files import load

# What no run takes up while it goes on. The other parts are other runs', or only say how fast this one is.
_PARTS: Final = ("tables", "sources", "ddl")


class FileWatch:
    """The watch of one file. also: a part that counts, too."""

    def __init__(self, file: Path, pipeline: Pipeline, *also: str) -> None:
        self._file, self._pipeline, self._parts = file, pipeline, (*_PARTS, *also)
        self._seen: tuple[int, int, int] | None = None  # the first look reads it: it may have changed since it was read

    def has_changed(self) -> bool:
        """Whether other tables are kept, or sources or DDL treated otherwise."""
        try:
            stat = self._file.stat()
        except OSError:
            return False
        stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if stamp == self._seen:
            return False
        self._seen = stamp
        try:
            now = load(self._file)
        except (TidegateError, OSError):
            return False
        return any(getattr(now, part) != getattr(self._pipeline, part) for part in self._parts)
