"""The names below a changefeed's path, read from a store with as few list requests as possible.

In:  the path; per folder up to which name everything is captured.
Out: the folders and files of interest, and the number of lists for them.

A list request returns a thousand names, of all folders below a prefix, from any name on. Many tables
then share a request. If one ends among captured names, the next begins after them. A look costs a
request per thousand names of interest, and at most one more for each table with many captured
names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from tidegate.changefeed.storage_path import Listed, Storage
from tidegate.limits import TICDC_LIST_FILES_MAX, TICDC_LOOKS_THREADS, TICDC_THREAD_LISTS_MIN

# Of a folder: the name, below the path, up to which all is captured; "" where all may matter.
Captured = Callable[[str], str]
_VERSION_PARTS: Final = 3  # database, table, version


class Tree:
    """The result of a look."""

    def __init__(self) -> None:
        self._folders: dict[str, Listed] = {"": Listed([], {})}

    def listed(self, folder: str) -> Listed:
        return self._folders.get(folder) or Listed([], {})

    def add(self, folder: str, files: Sequence[tuple[str, int]]) -> None:
        self._made(folder).files.update(files)

    def _made(self, folder: str) -> Listed:
        known = self._folders.get(folder)
        if known is None:
            known = self._folders[folder] = Listed([], {})
            above, _, name = folder.rpartition("/")
            self._made(above).folders.append(name)
        return known


@dataclass(slots=True)
class _Range:
    """One reader's part of the names: those after begin, up to end ("": all). begins: where its lists began."""

    begin: str
    end: str
    begins: list[str] = field(default_factory=list)
    folders: list[tuple[str, list[tuple[str, int]]]] = field(default_factory=list)


class Lists:
    """A path's names, asked for again and again; where the last look's lists began says how to share the next one."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._begins: list[str] = []

    @property
    def count(self) -> int:
        """The files of the last look."""
        return len(self._begins)

    def look(self, pool: Executor, captured: Captured) -> Tree:
        """Raises SourceUnavailable, SourceRefused."""
        ranges = [_Range(begin, end) for begin, end in self._edges()]
        list(pool.map(lambda part: self._walk(part, captured), ranges))
        self._begins = [begin for part in ranges for begin in part.begins]
        tree = Tree()
        for walked in ranges:
            for folder, files in walked.folders:
                tree.add(folder, files)
        return tree

    def _edges(self) -> Iterator[tuple[str, str]]:
        parts = max(min(len(self._begins) // TICDC_THREAD_LISTS_MIN, TICDC_LOOKS_THREADS), 1)
        edges = ["", *(self._begins[len(self._begins) * part // parts] for part in range(1, parts)), ""]
        yield from pairwise(edges)

    def _walk(self, part: _Range, captured: Captured) -> None:
        begin: str | None = part.begin
        while begin is not None and (not part.end or begin < part.end):
            begin = self._listed_from(begin, part, captured)

    def _listed_from(self, begin: str, part: _Range, captured: Captured) -> str | None:
        """Lists after a name, until one ends among names that are captured: where to go on; None at the end."""
        last = begin
        for page in self._storage.pages(begin):
            part.begins.append(last)
            upto, folder = "", None
            for path, size in page:
                if part.end and path > part.end:
                    return None
                above, _, name = path.rpartition("/")
                if above != folder:
                    folder, upto = above, captured(above)
                    files: list[tuple[str, int]] = []
                    part.folders.append((above if _may_get_files(above, upto) else _version_of(above), files))
                if path > upto:
                    files.append((name, size))
                last = path
            if len(page) < TICDC_LIST_FILES_MAX:
                return None
            if upto > last:
                return upto
        return None


def _may_get_files(folder: str, upto: str) -> bool:
    return not upto or upto.startswith(f"{folder}/")


def _version_of(folder: str) -> str:
    return "/".join(folder.split("/")[:_VERSION_PARTS])
