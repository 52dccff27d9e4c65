"""Watch whether a pipeline file changes during a long run.

In:  the file; the pipeline that was read of it.
Out: has_changed(), cheap enough for frequent calls. It is False for a missing file, and for one that isn't a pipeline
     any more: the run goes on as before, and the next start reports the error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tidegate.config import Pipeline
from tidegate.errors import TidegateError
from tidegate.pipelines.files import load

# Sections that a run can't adopt while it goes on. The other sections belong to other runs, or only set the speed.
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
