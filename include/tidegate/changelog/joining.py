"""Images of many small segments, written as rows of changelogs together.

In:  Imaged values, segment by segment.
Out: the same, in lists whose images are alike: each becomes one Arrow table (rows.as_changes).

To write a row as JSON is cheap, to begin is not: a few rows of each of a thousand segments cost as
much as a thousand times as many rows of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from tidegate.changelog.rows import Imaged, Name
from tidegate.limits import CHANGELOG_JOINED_BYTES, CHANGELOG_TABLE_JOINED_BYTES

_IMAGED_BYTES: Final = 2048  # of the values beside the rows


class Joining:
    """Waiting images by table. Their memory is bounded, of each table and of all."""

    def __init__(self) -> None:
        self._waiting = dict[Name, list[Imaged]]()
        self._table_bytes = dict[Name, int]()
        self._bytes = 0

    def take(self, imaged: Imaged) -> Iterator[list[Imaged]]:
        """The images that can wait no longer, in order."""
        name = imaged.name
        if name in self._waiting and not self._waiting[name][-1].is_like(imaged):
            yield self._out(name)
        self._waiting.setdefault(name, []).append(imaged)
        more = imaged.nbytes + _IMAGED_BYTES
        self._table_bytes[name] = self._table_bytes.get(name, 0) + more
        self._bytes += more
        if self._table_bytes[name] >= CHANGELOG_TABLE_JOINED_BYTES:
            yield self._out(name)
        elif self._bytes >= CHANGELOG_JOINED_BYTES:
            yield from self.rest()

    def rest(self) -> Iterator[list[Imaged]]:
        """All that wait."""
        for name in list(self._waiting):
            yield self._out(name)

    def _out(self, name: Name) -> list[Imaged]:
        self._bytes -= self._table_bytes.pop(name)
        return self._waiting.pop(name)


def joined(segments: Iterable[Iterable[Imaged]]) -> Iterator[list[list[Imaged]]]:
    """The images of all segments, as lists of images that are alike: after a segment those that can
    wait no longer, at the end the rest.
    """
    joining = Joining()
    for images in segments:
        if full := [parts for imaged in images for parts in joining.take(imaged)]:
            yield full
    yield list(joining.rest())
